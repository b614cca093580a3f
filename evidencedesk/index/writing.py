"""One document at a time: chunks -> embeddings -> store, in one transaction.

Texts are embedded before the write lock is taken, and only those that the file holds no vector of. Inside the
transaction everything is looked at again, because another process may have written meanwhile.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evidencedesk import bm25, vectors
from evidencedesk.chunking import chunk_document
from evidencedesk.embeddings import Embedder, embed_in_batches, identity, longer_than_limit
from evidencedesk.errors import (
    DeskDamaged,
    DocumentConflict,
    EmbedderError,
    EmbedderMismatch,
    EmbedderUnavailable,
    NoContentError,
    UnreadableSource,
)
from evidencedesk.records import EmbedderIdentity, Passage, SourceDocument, Status, StatusChange, UpdateReport
from evidencedesk.store import Settings, Snapshot, Store, StoredDocument, Transaction, content_hash, newly_stale
from evidencedesk.text import tokens
from evidencedesk.versions import full_doc_id, version_sort_key


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document ready to be written: its passages, what names their vectors, and their search terms."""

    source: SourceDocument
    passages: tuple[Passage, ...]
    text_hashes: tuple[str, ...]
    terms: tuple[list[str], ...]
    root: str | None
    """None: a document that is there keeps the root and path it has."""


@dataclass(frozen=True, slots=True)
class Written:
    """What writing one document did."""

    action: Literal["added", "updated", "unchanged"]
    status: Status
    changes: tuple[StatusChange, ...]
    notes: tuple[str, ...] = ()
    stale_answers: frozenset[int] = frozenset()
    """Recorded answers that this write made stale."""


@dataclass(frozen=True, slots=True)
class Index:
    """Writes documents into a store; `embedder` None: the desk has none, and its chunks get no vectors."""

    store: Store
    settings: Settings
    embedder: Embedder | None

    def update(self, source: SourceDocument) -> UpdateReport:
        """Store one document, replacing what its doc_id held before, in one transaction. Writes.

        DocumentConflict when another doc_id holds that version of the line; BadVectors or EmbedderError when the
        embedder fails. On any error nothing was written.
        """
        _require_consistent(source)
        prepared = self.prepare(source, root=None)
        if source.named_by_path:
            self._refuse_second_name(source)
        new_vectors, notes = self.embed(prepared)
        with self.store.write(f"storing {source.doc_id}") as transaction:
            written = self.write(transaction, prepared, new_vectors)
        return UpdateReport(
            doc_id=source.doc_id,
            action=written.action,
            status=written.status,
            superseded=tuple(change.doc_id for change in written.changes if change.after == "superseded"),
            embedded=len(new_vectors),
            notes=(
                *written.notes,
                *notes,
                *disagreement(source.path, source.doc_id, source.declared_status, written.status),
            ),
            stale_answers=len(written.stale_answers),
        )

    def promote(self) -> tuple[StatusChange, ...]:
        """Apply what has come due since the last write: scheduled documents begin, others end. Writes."""
        with self.store.write("promoting") as transaction:
            return apply_due(transaction)

    def _refuse_second_name(self, source: SourceDocument) -> None:
        """A file without a doc_id is named by its path in the folder it is ingested from, which a bare path lacks."""
        with self.store.read() as snapshot:
            for path in snapshot.paths_ending_in(source.path):
                raise UnreadableSource(
                    path=source.path, line=1,
                    problem=f"it has no doc_id, and may be {path}, which was ingested from its folder; write a doc_id "
                    "into its front matter, or ingest the folder again",
                )  # fmt: skip

    def prepare(self, source: SourceDocument, root: str | None) -> Prepared:
        """Cut a document into passages, with the names of their vectors and their search terms."""
        passages = chunk_document(source, self.settings.max_chunk_chars)
        if not passages:
            raise NoContentError(path=source.path, line=1, problem="no content")
        texts = [passage.indexed_text for passage in passages]
        return Prepared(source, passages, tuple(map(text_hash_of, texts)), tuple(tokens(text) for text in texts), root)

    def missing_vectors(self, snapshot: Snapshot, text_hashes: Iterable[str]) -> set[str]:
        """Those of the text hashes that have no vector of the desk's embedder; none in a desk without one."""
        if self.settings.embedder_key is None:
            return set()
        return vectors.missing(snapshot.connection, self.settings.embedder_key, text_hashes)

    def embed(
        self, prepared: Prepared, on_progress: Callable[[int], None] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], tuple[str, ...]]:
        """Unit vectors, by text hash, of those texts that the file holds no vector of, and notes. Writes nothing.

        What could not be stored is not embedded: a conflict is found before.
        """
        with self.store.read() as snapshot:
            _refuse_conflict(snapshot, prepared.source, prepared.root)
            missing = self.missing_vectors(snapshot, prepared.text_hashes)
        if not missing:
            return {}, ()
        if self.embedder is None:
            raise EmbedderUnavailable(
                embedder=str(self.settings.embedder),
                problem="this desk was opened without it, and new text needs vectors",
            )
        given = identity(self.embedder)
        if given != self.settings.embedder:
            stored = str(self.settings.embedder)
            raise EmbedderMismatch(embedder=str(given), stored=stored, given=str(given))
        places = {text_hash: n for n, text_hash in enumerate(prepared.text_hashes) if text_hash in missing}
        texts = [prepared.passages[n].indexed_text for n in places.values()]
        made = embed_in_batches(
            self.embedder,
            texts,
            [f"{prepared.source.doc_id}:c{n}" for n in places.values()],
            on_progress=on_progress,
        )
        cut = longer_than_limit(self.embedder, texts)
        note = f"{prepared.source.doc_id}: {cut} of its texts are longer than {given.name} reads, and were cut by it"
        return dict(zip(places, made, strict=True)), (note,) if cut else ()

    def keep(self, new_vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Store vectors by the hash of their text, whether or not a chunk has that text yet. Writes.

        No search changes by it. So the codes stay as they are: they follow with the next document that is written.
        """
        if new_vectors and self.settings.embedder_key is not None:
            with self.store.write("keeping vectors") as transaction:
                self._same_settings(transaction)
                vectors.insert(transaction.connection, self.settings.embedder_key, new_vectors)

    # ------------------------------------------------------------ inside the transaction

    def write(
        self, transaction: Transaction, prepared: Prepared, new_vectors: Mapping[str, NDArray[np.float32]]
    ) -> Written:
        """Store a document, its postings and vectors, and settle its line."""
        source = prepared.source
        self._same_settings(transaction)
        _refuse_conflict(transaction, source, prepared.root)
        due = apply_due(transaction)
        former = transaction.stored(source.doc_id)  # as it is now that what was due has been applied
        lines = {(source.family, source.lang)} | ({(former.family, former.lang)} if former is not None else set())
        with newly_stale(transaction, lines) as stale:
            written = self._replace(transaction, prepared, new_vectors, former, lines)
        return replace(written, changes=(*due, *written.changes), stale_answers=frozenset(stale))

    def _replace(
        self,
        transaction: Transaction,
        prepared: Prepared,
        new_vectors: Mapping[str, NDArray[np.float32]],
        former: StoredDocument | None,
        lines: Collection[tuple[str, str]],
    ) -> Written:
        source = prepared.source
        root, path = prepared.root, source.path
        if root is None:
            root, path = ("", path) if former is None else (former.root, former.path)
        if self.settings.embedder_key is not None:
            vectors.put(transaction.connection, self.settings.embedder_key, new_vectors)
            if self.missing_vectors(transaction, prepared.text_hashes):
                problem = "another process dropped vectors meanwhile; run it again"
                raise EmbedderError(embedder=str(self.settings.embedder), problem=problem)
        notes = tuple(_about_withdrawal(former))
        if former is not None and former.content_hash == content_hash(source) and not former.pruned:
            moved = (former.root, former.path) != (root, path)
            if moved:
                transaction.move(former.doc_key, root=root, path=path)
            return Written("updated" if moved else "unchanged", former.status, (), notes)
        if former is not None:
            if former.status == "current":
                bm25.leave_force(transaction.connection, former.doc_key)
            bm25.remove_chunks(transaction.connection, former.doc_key)
        counted = [
            (passage, text_hash, len(terms))
            for passage, text_hash, terms in zip(prepared.passages, prepared.text_hashes, prepared.terms, strict=True)
        ]
        keys = transaction.put_document(replace(source, path=path), counted, root=root)
        bm25.add_chunks(transaction.connection, dict(zip(keys, prepared.terms, strict=True)))
        changes = [change for family, lang in sorted(lines) for change in bm25.settle_line(transaction, family, lang)]
        transaction.note_next_change()
        stored = transaction.stored(source.doc_id)
        if stored is None:
            raise LookupError(f"{source.doc_id} was stored and is not there")
        status = stored.status
        if former is not None:
            # Its row was judged anew, which is a change only where the outcome differs from what it was.
            changes = [c for c in changes if c.doc_id != source.doc_id or c.after != former.status]
        return Written("added" if former is None else "updated", status, tuple(changes), notes)

    def _same_settings(self, transaction: Transaction) -> None:
        """Another process may have given the file another embedder since it was opened."""
        settings = transaction.settings
        if settings is None or settings.embedder != self.settings.embedder:
            stored = "none" if settings is None else str(settings.embedder)
            given = str(self.settings.embedder)
            raise EmbedderMismatch(embedder=given, stored=stored, given=given)


def set_up(
    store: Store, *, text_version: str, chunker_version: str, max_chunk_chars: int,
    embedder: EmbedderIdentity | None,
) -> Settings:  # fmt: skip
    """Write the settings of a new desk, unless another process was first, and give what it has. Writes."""
    with store.write("setting up") as transaction:
        if transaction.settings is None:
            if transaction.lines():
                raise DeskDamaged(
                    path=store.database.path, problem="it holds documents, but the row of its settings is gone"
                )
            transaction.set_up(
                text_version=text_version, chunker_version=chunker_version, max_chunk_chars=max_chunk_chars,
                embedder=embedder,
            )  # fmt: skip
    with store.read() as snapshot:
        if snapshot.settings is None:
            raise LookupError("the desk's settings were not written")
        return snapshot.settings


def _require_consistent(source: SourceDocument) -> None:
    """ValueError for a document made by hand that no file could have given."""
    names = (source.doc_id, source.family)
    if source.doc_id != full_doc_id(source.doc_id, source.version, source.lang) or "" in names:
        raise ValueError(f"doc_id {source.doc_id!r} must end with its version mark, and family must not be empty")
    if any(name != unicodedata.normalize("NFC", name) for name in names):
        raise ValueError(f"doc_id and family must be NFC: {names}")
    if source.effective_from and source.effective_to and source.effective_to <= source.effective_from:
        raise ValueError(f"effective_to of {source.doc_id} must be after its effective_from")


def apply_due(transaction: Transaction) -> tuple[StatusChange, ...]:
    """Settle every line in which something has come due; the first thing that a write does."""
    # The kept instant says whether to look at all: looking reads every document.
    if not transaction.something_is_due:
        return ()
    changes = tuple(
        change for family, lang in transaction.due_lines() for change in bm25.settle_line(transaction, family, lang)
    )
    # An instant may pass that changes no status, such as the start of a version that was superseded before it.
    transaction.note_next_change()
    return changes


def text_hash_of(indexed_text: str) -> str:
    """What names the vectors of an indexed text: its SHA-256, in hexadecimal."""
    return hashlib.sha256(indexed_text.encode("utf-8")).hexdigest()


def _refuse_conflict(snapshot: Snapshot, source: SourceDocument, root: str | None) -> None:
    """DocumentConflict when the text's place in its line is another document's, or the document another folder's."""
    former = snapshot.stored(source.doc_id)
    elsewhere = former is not None and root is not None and former.root not in ("", root)
    if former is not None and elsewhere and former.content_hash != content_hash(source):
        raise DocumentConflict(
            doc_id=source.doc_id, path=source.path, other=f"{former.path} of the folder {former.root}",
            problem="both claim that doc_id with different text; give one another doc_id, or, when this is the same "
            f"folder under a new name, say so with --root {former.root}",
        )  # fmt: skip
    place = version_sort_key(source.version)
    for other in snapshot.stored_in_line(source.family, source.lang):
        if other.version_sort == place and other.doc_id != source.doc_id:
            raise DocumentConflict(
                doc_id=source.doc_id, path=source.path, other=f"{other.doc_id} ({other.path})",
                problem=f"both are version {source.version} of {source.family} in {source.lang}; "
                "give one of them another version, family or lang",
            )  # fmt: skip


def _about_withdrawal(former: StoredDocument | None) -> Iterator[str]:
    if former is not None and former.pruned:
        yield f"{former.doc_id} is reinstated: its file is back"
    elif former is not None and former.status == "withdrawn":
        yield f"{former.doc_id} stays withdrawn: it was withdrawn by hand; give the text a new version"


def disagreement(path: str, doc_id: str, declared: Status | None, status: Status) -> Iterator[str]:
    """The note that the front matter's status is not the rule's, where that is so."""
    if declared is not None and declared != status:
        yield f"{path}: its front matter says {declared}, but {doc_id} is {status} by its version and dates"
