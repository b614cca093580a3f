"""The write way: files -> documents -> chunks -> embeddings -> store, one transaction a document.

Texts are embedded before the write lock is taken, and only those that the file holds no vector of. Inside the
transaction everything is looked at again, because another process may have written meanwhile.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evidencedesk import bm25, vectors
from evidencedesk.chunking import chunk_document
from evidencedesk.documents import find_sources, read_document
from evidencedesk.embeddings import Embedder, embed_in_batches, identity
from evidencedesk.errors import (
    DeskDamaged,
    DocumentConflict,
    EmbedderError,
    EmbedderMismatch,
    EmbedderUnavailable,
    EvidenceDeskError,
    NoContentError,
    SourceChanged,
    SourceError,
    StoreError,
    UnreadableSource,
)
from evidencedesk.records import (
    EmbedderIdentity,
    Failed,
    IngestProgress,
    IngestReport,
    Passage,
    Skipped,
    SourceDocument,
    Status,
    StatusChange,
    UpdateReport,
)
from evidencedesk.store import Settings, Snapshot, Store, StoredDocument, Transaction, content_hash
from evidencedesk.text import tokens
from evidencedesk.versions import full_doc_id, version_sort_key

Progress = Callable[[IngestProgress], None]


@dataclass(frozen=True, slots=True)
class _Claim:
    """What one file of a run says it is."""

    path: str
    doc_id: str
    place: tuple[str, str, str]
    """Family, language and sortable version: only one document can have it."""
    content_hash: str
    declared_status: Status | None


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A document ready to be written: its passages, what names their vectors, and their search terms."""

    source: SourceDocument
    passages: tuple[Passage, ...]
    text_hashes: tuple[str, ...]
    terms: tuple[list[str], ...]
    root: str | None
    """None: a document that is there keeps the root and path it has."""


@dataclass(frozen=True, slots=True)
class _Written:
    """What writing one document did."""

    action: Literal["added", "updated", "unchanged"]
    status: Status
    changes: tuple[StatusChange, ...]


@dataclass(slots=True)
class _Tally:
    """An ingest report while it grows."""

    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    actions: dict[str, str] = field(default_factory=dict)
    superseded: set[str] = field(default_factory=set)
    embedded: int = 0

    def count(self, doc_id: str, written: _Written) -> None:
        self.actions[doc_id] = written.action
        self.note_changes(written.changes)

    def note_changes(self, changes: Iterable[StatusChange]) -> None:
        for change in changes:
            (self.superseded.add if change.after == "superseded" else self.superseded.discard)(change.doc_id)

    def fail(self, path: str, error: EvidenceDeskError) -> None:
        self.failed.append(Failed(path, error.line if isinstance(error, SourceError) else None, str(error)))

    def with_action(self, action: str) -> tuple[str, ...]:
        return tuple(doc_id for doc_id, done in self.actions.items() if done == action)


@dataclass(frozen=True, slots=True)
class _StandIn:
    """Takes the embedder's place in a dry run, whose vectors are thrown away with the copy they are written to."""

    name: str
    dimension: int
    fingerprint: str
    languages: frozenset[str] | None = None

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), self.dimension), dtype=np.float32)

    embed_queries = embed_documents


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
        prepared = self._prepare(source, root=None)
        if source.named_by_path:
            self._refuse_second_name(source)
        new_vectors = self._embed(prepared)
        with self.store.write(f"storing {source.doc_id}") as transaction:
            written = self._write(transaction, prepared, new_vectors)
        return UpdateReport(
            doc_id=source.doc_id,
            action=written.action,
            status=written.status,
            superseded=tuple(change.doc_id for change in written.changes if change.after == "superseded"),
            embedded=len(new_vectors),
            notes=tuple(_disagreement(source.path, source.doc_id, source.declared_status, written.status)),
        )

    def ingest(
        self, folder: Path, *, root: str | None = None, dry_run: bool = False, progress: Progress | None = None
    ) -> IngestReport:
        """Bring in every source of a folder, each document in a transaction of its own. Writes, unless `dry_run`.

        `root` names the folder in the file (default: its own name); documents that came under that name before
        and whose files are gone are reported as missing. A bad file is reported in `failed` and stops nothing.
        An error of the store itself (disk full, locked) ends the run; what was committed stays. FileNotFoundError
        when there is no such folder.
        """
        if dry_run:
            return self._rehearse(folder, root, progress)
        place = folder.resolve()
        root_name = root if root is not None else place.name if folder.is_dir() else place.parent.name
        paths, skipped = find_sources(folder)
        tally = _Tally(skipped=list(skipped))
        every_claim = _read_claims(folder, paths, tally)
        claims = _without_conflicts(every_claim, tally)
        with self.store.read() as snapshot:
            something_is_due = snapshot.something_is_due
        if something_is_due:
            tally.note_changes(self.promote())
        for done, claim in enumerate(claims, 1):

            def report_progress(embedded: int, done: int = done - 1, path: str = claim.path) -> None:
                if progress is not None:
                    progress(IngestProgress(done, len(claims), tally.embedded + embedded, path))

            with _failures_of(claim.path, tally):
                if self._is_unchanged(claim, root_name):
                    tally.actions[claim.doc_id] = "unchanged"
                else:
                    prepared = self._prepare(_read_again(folder, claim), root_name)
                    new_vectors = self._embed(prepared, report_progress)
                    tally.embedded += len(new_vectors)
                    with self.store.write(f"storing {claim.doc_id}") as transaction:
                        tally.count(claim.doc_id, self._write(transaction, prepared, new_vectors))
            report_progress(0, done)
        with self.store.read() as snapshot:
            missing = () if folder.is_file() else _missing(snapshot, root_name, paths, every_claim, tally)
            return _report(snapshot, claims, tally, missing)

    def _rehearse(self, folder: Path, root: str | None, progress: Progress | None) -> IngestReport:
        """The same run on a private copy of the file, with a stand-in that embeds nothing."""
        with self.store.private_copy() as copy:
            known = self.settings.embedder
            stand_in = None if known is None else _StandIn(known.name, known.dimension, known.fingerprint)
            rehearsal = replace(self, store=copy, embedder=stand_in)
            return replace(rehearsal.ingest(folder, root=root, progress=progress), dry_run=True)

    def promote(self) -> tuple[StatusChange, ...]:
        """Apply what has come due since the last write: scheduled documents begin, others end. Writes."""
        with self.store.write("promoting") as transaction:
            changes = _apply_due(transaction)
            if changes:
                transaction.note_next_change()
            return changes

    def compact(self) -> None:
        """Make everything anew that is derived from documents and chunks, and give unused space back. Writes.

        Statuses and validities, hashes, the lexical index and its statistics, views and indexes, in one transaction;
        vectors that are damaged are dropped, so that the next ingest makes them again.
        """
        with self.store.write("compacting") as transaction:
            terms_of: dict[int, list[str]] = {}
            for doc_key, _ in transaction.content_hashes():
                for key, (chunk, _, _) in transaction.derived_chunks(doc_key).items():
                    terms_of[key] = tokens(chunk.indexed_text)
                    transaction.set_derived(key, _text_hash(chunk.indexed_text), len(terms_of[key]))
            for family, lang in transaction.lines():
                transaction.settle_line(family, lang)
            bm25.rebuild(transaction, terms_of)
            if self.settings.embedder_key is not None and self.settings.embedder is not None:
                vectors.drop_damaged(
                    transaction.connection, self.settings.embedder_key, self.settings.embedder.dimension
                )
            transaction.note_next_change()
            transaction.restore_schema_objects()
        self.store.database.vacuum()

    # ------------------------------------------------------------ before the lock

    def _refuse_second_name(self, source: SourceDocument) -> None:
        """A file without a doc_id is named by its path in the folder it is ingested from, which a bare path lacks."""
        with self.store.read() as snapshot:
            for path in snapshot.paths_ending_in(source.path):
                raise UnreadableSource(
                    path=source.path, line=1,
                    problem=f"it has no doc_id, and may be {path}, which was ingested from its folder; write a doc_id "
                    "into its front matter, or ingest the folder again",
                )  # fmt: skip

    def _is_unchanged(self, claim: _Claim, root: str) -> bool:
        """Whether the file holds just this text from just this place, with a vector for every chunk."""
        with self.store.read() as snapshot:
            stored = snapshot.stored(claim.doc_id)
            if stored is None or (stored.content_hash, stored.root, stored.path) != (
                claim.content_hash,
                root,
                claim.path,
            ):
                return False
            return not self._missing(snapshot, snapshot.text_hashes(stored.doc_key))

    def _prepare(self, source: SourceDocument, root: str | None) -> _Prepared:
        passages = chunk_document(source, self.settings.max_chunk_chars)
        if not passages:
            raise NoContentError(path=source.path, line=1, problem="no content")
        texts = [passage.indexed_text for passage in passages]
        return _Prepared(source, passages, tuple(map(_text_hash, texts)), tuple(tokens(text) for text in texts), root)

    def _missing(self, snapshot: Snapshot, text_hashes: Iterable[str]) -> set[str]:
        if self.settings.embedder_key is None:
            return set()
        return vectors.missing(snapshot.connection, self.settings.embedder_key, text_hashes)

    def _embed(
        self, prepared: _Prepared, on_progress: Callable[[int], None] | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Unit vectors, by text hash, of those texts that the file holds no vector of. Writes nothing.

        What could not be stored is not embedded: a conflict is found before.
        """
        with self.store.read() as snapshot:
            _refuse_conflict(snapshot, prepared.source, prepared.root)
            missing = self._missing(snapshot, prepared.text_hashes)
        if not missing:
            return {}
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
        made = embed_in_batches(
            self.embedder,
            [prepared.passages[n].indexed_text for n in places.values()],
            [f"{prepared.source.doc_id}:c{n}" for n in places.values()],
            on_progress=on_progress,
        )
        return dict(zip(places, made, strict=True))

    # ------------------------------------------------------------ inside the transaction

    def _write(
        self, transaction: Transaction, prepared: _Prepared, new_vectors: Mapping[str, NDArray[np.float32]]
    ) -> _Written:
        """Store a document, its postings and vectors, and settle its line."""
        source = prepared.source
        self._same_settings(transaction)
        _refuse_conflict(transaction, source, prepared.root)
        due = _apply_due(transaction)
        former = transaction.stored(source.doc_id)
        root, path = prepared.root, source.path
        if root is None:
            root, path = ("", path) if former is None else (former.root, former.path)
        if self.settings.embedder_key is not None:
            vectors.put(transaction.connection, self.settings.embedder_key, new_vectors)
            if self._missing(transaction, prepared.text_hashes):
                problem = "another process dropped vectors meanwhile; run it again"
                raise EmbedderError(embedder=str(self.settings.embedder), problem=problem)
        if former is not None and former.content_hash == content_hash(source):
            moved = (former.root, former.path) != (root, path)
            if moved:
                transaction.move(former.doc_key, root=root, path=path)
            if due:
                transaction.note_next_change()
            return _Written("updated" if moved else "unchanged", former.status, due)
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
        lines = {(source.family, source.lang)} | ({(former.family, former.lang)} if former is not None else set())
        changes = [change for family, lang in sorted(lines) for change in bm25.settle_line(transaction, family, lang)]
        transaction.note_next_change()
        status = next(
            d.status for d in transaction.stored_in_line(source.family, source.lang) if d.doc_id == source.doc_id
        )
        if former is not None:
            # Its row was judged anew, which is a change only where the outcome differs from what it was.
            changes = [c for c in changes if c.doc_id != source.doc_id or c.after != former.status]
        return _Written("added" if former is None else "updated", status, (*due, *changes))

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


def _apply_due(transaction: Transaction) -> tuple[StatusChange, ...]:
    return tuple(
        change for family, lang in transaction.due_lines() for change in bm25.settle_line(transaction, family, lang)
    )


def _text_hash(indexed_text: str) -> str:
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


# ---------------------------------------------------------------- a run over a folder


@contextmanager
def _failures_of(path: str, tally: _Tally) -> Iterator[None]:
    """What goes wrong with one file is noted and stops nothing; without store or embedder no other would do better."""
    try:
        yield
    except (StoreError, EmbedderUnavailable, EmbedderMismatch):
        raise
    except EvidenceDeskError as error:
        tally.fail(path, error)


def _read_claims(folder: Path, paths: Sequence[str], tally: _Tally) -> list[_Claim]:
    claims = []
    for path in paths:
        with _failures_of(path, tally):
            source = read_document(folder, path)
            place = (source.family, source.lang, version_sort_key(source.version))
            claims.append(_Claim(path, source.doc_id, place, content_hash(source), source.declared_status))
    return claims


def _read_again(folder: Path, claim: _Claim) -> SourceDocument:
    """Read a file for writing; it was only looked at before, so that memory does not grow with the folder."""
    source = read_document(folder, claim.path)
    if source.doc_id != claim.doc_id or content_hash(source) != claim.content_hash:
        raise SourceChanged(path=claim.path, line=1, problem="it changed while it was read")
    return source


def _without_conflicts(claims: Sequence[_Claim], tally: _Tally) -> list[_Claim]:
    """The claims that contradict no other of the run; which of two was first never decides."""
    by_place: dict[tuple[str, str, str], list[_Claim]] = {}
    by_doc_id: dict[str, list[_Claim]] = {}
    for claim in claims:
        by_place.setdefault(claim.place, []).append(claim)
        by_doc_id.setdefault(claim.doc_id, []).append(claim)
    accepted: list[_Claim] = []
    for claim in claims:
        rivals = [*by_doc_id[claim.doc_id], *by_place[claim.place]]
        others = list(dict.fromkeys(rival for rival in rivals if rival.path != claim.path))
        if any(other.doc_id != claim.doc_id or other.content_hash != claim.content_hash for other in others):
            problem = "both claim the same version of the same text; keep one, or give it another version or doc_id"
            named = ", ".join(f"{other.doc_id} ({other.path})" for other in others)
            tally.fail(claim.path, DocumentConflict(doc_id=claim.doc_id, path=claim.path, other=named, problem=problem))
        elif others and min(other.path for other in others) < claim.path:
            tally.skipped.append(Skipped(claim.path, f"the same document as {min(other.path for other in others)}"))
        else:
            accepted.append(claim)
    return accepted


def _report(snapshot: Snapshot, claims: Sequence[_Claim], tally: _Tally, missing: tuple[str, ...]) -> IngestReport:
    status_of = {summary.doc_id: summary.status for summary in snapshot.summaries()}
    notes = [
        note
        for claim in claims
        if claim.doc_id in tally.actions
        for note in _disagreement(claim.path, claim.doc_id, claim.declared_status, status_of[claim.doc_id])
    ]
    return IngestReport(
        added=tally.with_action("added"),
        updated=tally.with_action("updated"),
        unchanged=tally.with_action("unchanged"),
        superseded=tuple(sorted(tally.superseded)),
        missing=missing,
        skipped=tuple(tally.skipped),
        failed=tuple(tally.failed),
        embedded=tally.embedded,
        notes=tuple(notes),
    )


def _missing(
    snapshot: Snapshot, root: str, paths: Sequence[str], claims: Sequence[_Claim], tally: _Tally
) -> tuple[str, ...]:
    """doc_ids of the root whose files are gone; `claims` are all that the run read, refused ones included."""
    # What could not be looked at, a folder without rights included, is not known to be gone.
    unread = [skipped.path for skipped in tally.skipped]
    present, claimed_ids, claimed_paths = set(paths), {c.doc_id for c in claims}, {c.path for c in claims}

    def gone(document: StoredDocument) -> bool:
        if document.status == "withdrawn" or document.doc_id in claimed_ids:
            return False
        if any(path in (".", document.path) or document.path.startswith(f"{path}/") for path in unread):
            return False
        # A file that is there but holds another document now: one that is or will be in force is missing,
        # while one that a newer version overwrote in place is where it should be, in the past.
        return document.path not in present or (
            document.status in ("current", "scheduled") and document.path in claimed_paths
        )

    return tuple(document.doc_id for document in snapshot.stored_under(root) if gone(document))


def _disagreement(path: str, doc_id: str, declared: Status | None, status: Status) -> Iterator[str]:
    if declared is not None and declared != status:
        yield f"{path}: its front matter says {declared}, but {doc_id} is {status} by its version and dates"
