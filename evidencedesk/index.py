"""The write way: files -> documents -> chunks -> embeddings -> store, one transaction a document.

Texts are embedded before the write lock is taken, and only those that the file holds no vector of. Inside the
transaction everything is looked at again, because another process may have written meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evidencedesk import bm25, vectors
from evidencedesk.chunking import chunk_document
from evidencedesk.documents import find_sources, read_document
from evidencedesk.embeddings import Embedder, EmbedderIdentity, embed_in_batches
from evidencedesk.errors import (
    DocumentConflict,
    EmbedderError,
    EmbedderMismatch,
    EmbedderUnavailable,
    EvidenceDeskError,
    SourceChanged,
    SourceError,
    StoreError,
)
from evidencedesk.records import (
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
from evidencedesk.versions import version_sort_key

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


class _RolledBack(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Index:
    """Writes documents into a store; `embedder` None: the desk has none, and its chunks get no vectors."""

    store: Store
    settings: Settings
    embedder: Embedder | None
    now: Callable[[], datetime]

    def update(self, source: SourceDocument) -> UpdateReport:
        """Store one document, replacing what its doc_id held before, in one transaction. Writes.

        DocumentConflict when another doc_id holds that version of the line; BadVectors or EmbedderError when the
        embedder fails. On any error nothing was written.
        """
        prepared = self._prepare(source, root=None)
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
        root_name = (
            (folder.resolve().name if folder.is_dir() else folder.resolve().parent.name) if root is None else root
        )
        paths, skipped = find_sources(folder)
        tally = _Tally(skipped=list(skipped))
        every_claim = _read_claims(folder, paths, tally)
        claims = _without_conflicts(every_claim, tally)
        if dry_run:
            return self._rehearse(folder, root_name, paths, claims, tally, progress)
        if self._something_is_due():
            tally.note_changes(self.promote())
        for done, claim in enumerate(claims, 1):
            with _failures_of(claim.path, tally):
                if self._is_unchanged(claim, root_name):
                    tally.actions[claim.doc_id] = "unchanged"
                else:
                    prepared = self._prepare(_read_again(folder, claim), root_name)
                    new_vectors = self._embed(prepared)
                    with self.store.write(f"storing {claim.doc_id}") as transaction:
                        tally.count(claim.doc_id, self._write(transaction, prepared, new_vectors))
                    tally.embedded += len(new_vectors)
            if progress is not None:
                progress(IngestProgress(done, len(claims), tally.embedded, claim.path))
        with self.store.read() as snapshot:
            return _report(snapshot, root_name, paths, claims, tally, dry_run=False)

    def _rehearse(
        self, folder: Path, root: str, paths: Sequence[str], claims: Sequence[_Claim], tally: _Tally,
        progress: Progress | None,
    ) -> IngestReport:  # fmt: skip
        """Do everything but embed in one transaction and roll it back: the same steps give the same report."""
        would_embed: set[str] = set()
        try:
            with self.store.write("rehearsing") as transaction:
                tally.note_changes(_apply_due(transaction, self.now()))
                for done, claim in enumerate(claims, 1):
                    with _failures_of(claim.path, tally):
                        prepared = self._prepare(_read_again(folder, claim), root)
                        would_embed |= self._missing(transaction, prepared.text_hashes)
                        tally.count(claim.doc_id, self._write(transaction, prepared, None))
                    if progress is not None:
                        progress(IngestProgress(done, len(claims), len(would_embed), claim.path))
                tally.embedded = len(would_embed)
                report = _report(transaction, root, paths, claims, tally, dry_run=True)
                raise _RolledBack
        except _RolledBack:
            return report

    def promote(self) -> tuple[StatusChange, ...]:
        """Apply what has come due since the last write: scheduled documents begin, others end. Writes."""
        with self.store.write("promoting") as transaction:
            now = self.now()
            changes = _apply_due(transaction, now)
            transaction.note_next_change(now)
            return changes

    # ------------------------------------------------------------ before the lock

    def _something_is_due(self) -> bool:
        """Whether time alone has changed what is in force; an unchanged folder is otherwise no reason to write."""
        with self.store.read() as snapshot:
            return snapshot.scope_at(None, self.now()).as_of is not None

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
        texts = [passage.indexed_text for passage in passages]
        hashes = tuple(hashlib.sha256(text.encode("utf-8")).hexdigest() for text in texts)
        return _Prepared(source, passages, hashes, tuple(tokens(text) for text in texts), root)

    def _missing(self, snapshot: Snapshot, text_hashes: Iterable[str]) -> set[str]:
        if self.settings.embedder_key is None:
            return set()
        return vectors.missing(snapshot.connection, self.settings.embedder_key, text_hashes)

    def _embed(self, prepared: _Prepared) -> dict[str, NDArray[np.float32]]:
        """Unit vectors, by text hash, of those texts that the file holds no vector of. Writes nothing."""
        with self.store.read() as snapshot:
            missing = self._missing(snapshot, prepared.text_hashes)
        if not missing:
            return {}
        if self.embedder is None:
            raise EmbedderUnavailable(
                embedder=str(self.settings.embedder),
                problem="this desk was opened without it, and new text needs vectors",
            )
        first = {
            text_hash: n for n, text_hash in reversed(list(enumerate(prepared.text_hashes))) if text_hash in missing
        }
        places = sorted(first.values())
        made = embed_in_batches(
            self.embedder,
            [prepared.passages[n].indexed_text for n in places],
            [f"{prepared.source.doc_id}:c{n}" for n in places],
        )
        return {prepared.text_hashes[n]: vector for n, vector in zip(places, made, strict=True)}

    # ------------------------------------------------------------ inside the transaction

    def _write(
        self, transaction: Transaction, prepared: _Prepared, new_vectors: Mapping[str, NDArray[np.float32]] | None
    ) -> _Written:
        """Store a document, its postings and vectors, and settle its line; `new_vectors` None: a rehearsal."""
        source, now = prepared.source, self.now()
        self._same_settings(transaction)
        _refuse_conflict(transaction, source)
        due = _apply_due(transaction, now)
        former = transaction.stored(source.doc_id)
        root, path = prepared.root, source.path
        if root is None:
            root, path = ("", path) if former is None else (former.root, former.path)
        if new_vectors is not None and self.settings.embedder_key is not None:
            vectors.put(transaction.connection, self.settings.embedder_key, new_vectors)
            if self._missing(transaction, prepared.text_hashes):
                raise EmbedderError(
                    embedder=str(self.settings.embedder), problem="vectors vanished while it worked; run it again"
                )
        if former is not None and former.content_hash == content_hash(source.source):
            moved = (former.root, former.path) != (root, path)
            if moved:
                transaction.move(former.doc_key, root=root, path=path)
            transaction.note_next_change(now)
            return _Written("updated" if moved else "unchanged", former.status, due)
        if former is not None:
            if former.status == "current":
                bm25.leave_force(transaction.connection, former.doc_key)
            bm25.remove_chunks(transaction.connection, former.doc_key)
        counted = [
            (passage, text_hash, len(terms))
            for passage, text_hash, terms in zip(prepared.passages, prepared.text_hashes, prepared.terms, strict=True)
        ]
        keys = transaction.put_document(replace(source, path=path), counted, root=root, now=now)
        bm25.add_chunks(transaction.connection, dict(zip(keys, prepared.terms, strict=True)))
        lines = {(source.family, source.lang)} | ({(former.family, former.lang)} if former is not None else set())
        changes = [change for family, lang in sorted(lines) for change in _settle(transaction, family, lang, now)]
        transaction.note_next_change(now)
        stored = transaction.stored(source.doc_id)
        if stored is None:
            raise LookupError(source.doc_id)
        if former is not None:
            # Its row was judged anew, which is a change only where the outcome differs from what it was.
            changes = [c for c in changes if c.doc_id != source.doc_id or c.after != former.status]
        return _Written("added" if former is None else "updated", stored.status, (*due, *changes))

    def _same_settings(self, transaction: Transaction) -> None:
        """Another process may have given the file another embedder since it was opened."""
        settings = transaction.settings()
        if settings is None or settings.embedder != self.settings.embedder:
            stored = "none" if settings is None else str(settings.embedder)
            given = str(self.settings.embedder)
            raise EmbedderMismatch(embedder=given, problem="", stored=stored, given=given)


def set_up(
    store: Store, *, now: datetime, text_version: str, chunker_version: str, max_chunk_chars: int,
    embedder: EmbedderIdentity | None,
) -> None:  # fmt: skip
    """Write the settings of a new desk, unless another process was first. Writes."""
    with store.write("setting up") as transaction:
        if transaction.settings() is None:
            transaction.set_up(
                now=now, text_version=text_version, chunker_version=chunker_version, max_chunk_chars=max_chunk_chars,
                embedder=embedder,
            )  # fmt: skip


def _settle(transaction: Transaction, family: str, lang: str, now: datetime) -> list[StatusChange]:
    """Settle a line and carry every change of what is in force into the lexical statistics."""
    changes = transaction.settle_line(family, lang, now)
    for doc_key, change in changes:
        if change.before == "current":
            bm25.leave_force(transaction.connection, doc_key)
        if change.after == "current":
            bm25.enter_force(transaction.connection, doc_key)
    return [change for _, change in changes]


def _apply_due(transaction: Transaction, now: datetime) -> tuple[StatusChange, ...]:
    lines = transaction.due_lines(now)
    return tuple(change for family, lang in lines for change in _settle(transaction, family, lang, now))


def _refuse_conflict(transaction: Transaction, source: SourceDocument) -> None:
    place = version_sort_key(source.version)
    for other in transaction.stored_in_line(source.family, source.lang):
        if other.version_sort == place and other.doc_id != source.doc_id:
            raise DocumentConflict(
                doc_id=source.doc_id, path=source.path, other=f"{other.doc_id} ({other.path})",
                problem=f"both are version {source.version} of {source.family} in {source.lang}; "
                "give one of them another version, family or lang, or withdraw the other",
            )  # fmt: skip


# ---------------------------------------------------------------- a run over a folder


@contextmanager
def _failures_of(path: str, tally: _Tally) -> Iterator[None]:
    """What goes wrong with one file is noted and stops nothing; what goes wrong with the store stops the run."""
    try:
        yield
    except StoreError:
        raise
    except EvidenceDeskError as error:
        tally.fail(path, error)


def _read_claims(folder: Path, paths: Sequence[str], tally: _Tally) -> list[_Claim]:
    claims = []
    for path in paths:
        with _failures_of(path, tally):
            source = read_document(folder, path)
            place = (source.family, source.lang, version_sort_key(source.version))
            claims.append(_Claim(path, source.doc_id, place, content_hash(source.source), source.declared_status))
    return claims


def _read_again(folder: Path, claim: _Claim) -> SourceDocument:
    """Read a file for writing; it was only looked at before, so that memory does not grow with the folder."""
    source = read_document(folder, claim.path)
    if source.doc_id != claim.doc_id or content_hash(source.source) != claim.content_hash:
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


def _report(
    snapshot: Snapshot, root: str, paths: Sequence[str], claims: Sequence[_Claim], tally: _Tally, *, dry_run: bool
) -> IngestReport:
    stored = snapshot.stored_under(root)
    status_of = {document.doc_id: document.status for document in stored}
    # What could not be looked at, a folder without rights included, is not known to be gone.
    unread = [skipped.path for skipped in tally.skipped]
    present, claimed_ids, claimed_paths = set(paths), {c.doc_id for c in claims}, {c.path for c in claims}

    def gone(document: StoredDocument) -> bool:
        if document.status == "withdrawn" or document.doc_id in claimed_ids:
            return False
        if any(document.path == path or document.path.startswith(f"{path}/") for path in unread):
            return False
        # A file that is there but holds another document now: one that was current is missing, while one that a
        # newer version overwrote in place is where it should be, in the past.
        return document.path not in present or (document.status == "current" and document.path in claimed_paths)

    notes = [
        note
        for claim in claims
        if claim.doc_id in tally.actions and claim.doc_id in status_of
        for note in _disagreement(claim.path, claim.doc_id, claim.declared_status, status_of[claim.doc_id])
    ]
    return IngestReport(
        added=tally.with_action("added"),
        updated=tally.with_action("updated"),
        unchanged=tally.with_action("unchanged"),
        superseded=tuple(sorted(tally.superseded)),
        missing=tuple(document.doc_id for document in stored if gone(document)),
        skipped=tuple(tally.skipped),
        failed=tuple(tally.failed),
        embedded=tally.embedded,
        notes=tuple(notes),
        dry_run=dry_run,
    )


def _disagreement(path: str, doc_id: str, declared: Status | None, status: Status) -> Iterator[str]:
    if declared is not None and declared != status:
        yield f"{path}: its front matter says {declared}, but {doc_id} is {status} by its version and dates"
