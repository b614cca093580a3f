"""How far to trust a desk.

- `run` asks every case of one state of a file, `report` holds the tables over what came of it, `html` writes them.
- `calibration` fits the guard on cases (`logistic`) and says what they can promise (`intervals`).
- `gate` tries a change inside one transaction and commits it only if the cases hold.
- `attacks` alters sentences of the file's own documents (`rewriting`) and counts what the check of claims blocks.
- `metrics` and `intervals` are the figures of all of them, each with what it was counted on.
"""
