"""How fast, how right and how large: this product and what people would install in its place, on the same data.

`python -m benchmarks.speed`; README.md beside this folder says what is measured. `data` makes what every system is
given, `systems` has one class for each of them, `serving` and `cold` run one in a process of its own, `measure` asks
them in turn, `report` prints.
"""
