"""What a file needs over the years: withdraw, compact, another embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evidencedesk import bm25, vectors
from evidencedesk.embeddings import Embedder, embed_in_batches, identity
from evidencedesk.errors import NotFound
from evidencedesk.index.writing import apply_due, text_hash_of
from evidencedesk.records import EmbedderIdentity, ReembedReport, StatusChange
from evidencedesk.store import Store, StoredDocument, Transaction
from evidencedesk.text import tokens

_REEMBED_BATCH = 256
_LAST_KEY = (1 << 63) - 1


def withdraw(store: Store, doc_id: str, reason: str) -> tuple[StatusChange, ...]:
    """Take a document out of force from now on; nothing older of its line comes back to life. Writes.

    Gives the changes of status, none when it was withdrawn already (a pruned one now counts as withdrawn by hand).
    NotFound when there is no such doc_id; ValueError without a reason.
    """
    if not reason.strip():
        raise ValueError("reason must say why the document is withdrawn")
    with store.write(f"withdrawing {doc_id}") as transaction:
        stored = transaction.stored(doc_id)
        if stored is None:
            raise NotFound(kind="document", name=doc_id)
        due = apply_due(transaction)
        changes = withdraw_in(transaction, stored, reason.strip(), pruned=False)
        return (*due, *changes)


def withdraw_in(transaction: Transaction, document: StoredDocument, reason: str, *, pruned: bool) -> list[StatusChange]:
    """Withdraw inside the caller's transaction; `pruned`: because its file vanished, so that it may come back."""
    former = transaction.stored(document.doc_id)
    if former is None or (former.status == "withdrawn" and not former.pruned):
        return []
    if former.status == "current":
        bm25.leave_force(transaction.connection, former.doc_key)
    transaction.withdraw(former.doc_key, reason, pruned=pruned)
    changes = bm25.settle_line(transaction, former.family, former.lang)
    transaction.note_next_change()
    if former.status == "withdrawn":
        return changes
    return [StatusChange(former.doc_id, former.status, "withdrawn"), *changes]


def compact(store: Store) -> None:
    """Make everything anew that is derived from documents and chunks, and give unused space back. Writes.

    Statuses and validities, hashes, the lexical index and its statistics, views and indexes, in one transaction;
    vectors that are damaged, or that no chunk has any more, are dropped.
    """
    with store.write("compacting") as transaction:
        for family, lang in transaction.lines():
            transaction.settle_line(family, lang)
        bm25.rebuild(transaction, _derived_anew(transaction))
        settings = transaction.settings
        if settings is not None and settings.embedder_key is not None and settings.embedder is not None:
            vectors.drop_damaged(transaction.connection, settings.embedder_key, settings.embedder.dimension)
        vectors.drop_unused(transaction.connection)
        if settings is not None and settings.embedder_key is not None:
            vectors.rebuild(transaction.connection, settings.embedder_key)
        transaction.note_next_change()
        transaction.restore_schema_objects()
    store.database.vacuum()


def _derived_anew(transaction: Transaction) -> Iterator[tuple[int, list[str]]]:
    """Key and terms of every chunk, in the order of keys; writes what else is derived from its text on the way."""
    for key, stored, text_hash, term_count in transaction.derived_between(0, _LAST_KEY):
        terms = tokens(stored.chunk.indexed_text)
        derived = (text_hash_of(stored.chunk.indexed_text), len(terms))
        if derived != (text_hash, term_count):
            transaction.set_derived(key, *derived)
        yield key, terms


def reembed(
    store: Store, embedder: Embedder | None, progress: Callable[[int, int], None] | None = None
) -> ReembedReport:
    """Give the file another embedder (None: keyword search only). Writes.

    Every indexed text is embedded outside of the write lock and stored beside the vectors that still answer, batch
    by batch, so a run that was stopped goes on where it was. The switch is one transaction, made only when no text
    lacks a vector; then the former vectors go. `progress` gets (texts done, texts in all) after each batch.
    """
    wanted = None if embedder is None else identity(embedder)
    embedded = 0
    while embedder is not None and wanted is not None:
        with store.write("preparing another embedder") as transaction:
            key = transaction.embedder_key(wanted)
            texts = transaction.indexed_texts()
            missing = sorted(vectors.missing(transaction.connection, key, texts))
            if not missing:
                return _switch(transaction, wanted, len(texts), embedded)
        for start in range(0, len(missing), _REEMBED_BATCH):
            names = missing[start : start + _REEMBED_BATCH]
            made = embed_in_batches(embedder, [texts[name] for name in names], [f"text {name[:12]}" for name in names])
            with store.write("storing vectors") as transaction:
                vectors.put(transaction.connection, key, dict(zip(names, made, strict=True)))
            embedded += len(names)
            if progress is not None:
                progress(len(texts) - len(missing) + start + len(names), len(texts))
    with store.write("dropping vectors") as transaction:
        return _switch(transaction, None, len(transaction.indexed_texts()), 0)


def _switch(transaction: Transaction, wanted: EmbedderIdentity | None, texts: int, embedded: int) -> ReembedReport:
    former = None if transaction.settings is None else transaction.settings.embedder
    transaction.use_embedder(wanted)
    return ReembedReport(former, wanted, texts, embedded)
