"""A whole folder: what its files claim to be, which contradict each other, what is new, what is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidencedesk.documents import find_sources, read_document
from evidencedesk.errors import (
    DocumentConflict,
    EmbedderMismatch,
    EmbedderUnavailable,
    EvidenceDeskError,
    SourceChanged,
    SourceError,
    StoreError,
)
from evidencedesk.index.upkeep import withdraw_in
from evidencedesk.index.writing import Index, Written, disagreement
from evidencedesk.records import (
    PRUNE_LIMIT,
    Document,
    Failed,
    IngestProgress,
    IngestReport,
    Progress,
    Skipped,
    SourceDocument,
    Status,
    StatusChange,
    require_number,
)
from evidencedesk.store import Snapshot, StoredDocument, Transaction, content_hash, newly_stale
from evidencedesk.versions import version_sort_key


@dataclass(frozen=True, slots=True)
class Claim:
    """What one file of a run says it is."""

    path: str
    doc_id: str
    place: tuple[str, str, str]
    """Family, language and sortable version: only one document can have it."""
    content_hash: str
    declared_status: Status | None


@dataclass(slots=True)
class Tally:
    """An ingest report while it grows."""

    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    actions: dict[str, str] = field(default_factory=dict)
    superseded: set[str] = field(default_factory=set)
    withdrawn: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    embedded: int = 0
    stale_answers: set[int] = field(default_factory=set)

    def count(self, doc_id: str, written: Written) -> None:
        self.actions[doc_id] = written.action
        self.note_changes(written.changes)
        self.notes += written.notes
        self.stale_answers |= written.stale_answers

    def note_changes(self, changes: Iterable[StatusChange]) -> None:
        for change in changes:
            (self.superseded.add if change.after == "superseded" else self.superseded.discard)(change.doc_id)

    def fail(self, path: str, error: EvidenceDeskError) -> None:
        self.failed.append(Failed(path, error.line if isinstance(error, SourceError) else None, str(error)))

    def with_action(self, action: str) -> tuple[str, ...]:
        return tuple(doc_id for doc_id, done in self.actions.items() if done == action)


@dataclass(frozen=True, slots=True)
class StandIn:
    """Takes the embedder's place in a dry run, whose vectors are thrown away with the copy they are written to."""

    name: str
    dimension: int
    fingerprint: str
    languages: frozenset[str] | None = None

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), self.dimension), dtype=np.float32)

    embed_queries = embed_documents


def ingest_folder(
    index: Index,
    folder: Path,
    *,
    root: str | None = None,
    prune: bool = False,
    prune_limit: float = PRUNE_LIMIT,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> IngestReport:
    """Bring in every source of a folder, each document in a transaction of its own. Writes, unless `dry_run`.

    `root` names the folder in the file (default: its own name); documents that came under that name before and
    whose files are gone are reported as missing, and with `prune` withdrawn unless they are superseded. A bad file
    is reported in `failed` and stops nothing. An error of the store or the embedder itself (disk full, locked, no
    endpoint) ends the run; what was committed stays. FileNotFoundError when there is no such folder.
    """
    if not 0 <= require_number("prune_limit", prune_limit) <= 1:
        raise ValueError(f"prune_limit must be a share from 0 to 1, not {prune_limit!r}")
    if dry_run:
        return _rehearse(index, folder, root=root, prune=prune, prune_limit=prune_limit, progress=progress)
    root_name = _root_name(folder, root)
    paths, skipped = find_sources(folder)
    tally = Tally(skipped=list(skipped))
    every_claim = _read_claims(folder, paths, tally)
    claims = _without_conflicts(every_claim, tally)
    with index.store.read() as snapshot:
        something_is_due = snapshot.something_is_due
    if something_is_due:
        tally.note_changes(index.promote())
    for done, claim in enumerate(claims, 1):

        def report_progress(embedded: int, done: int = done - 1, path: str = claim.path) -> None:
            if progress is not None:
                progress(IngestProgress(done, len(claims), tally.embedded + embedded, path))

        with _failures_of(claim.path, tally):
            if _is_unchanged(index, claim, root_name):
                tally.actions[claim.doc_id] = "unchanged"
            else:
                prepared = index.prepare(_read_again(folder, claim), root_name)
                new_vectors, notes = index.embed(prepared, report_progress)
                tally.notes += notes
                tally.embedded += len(new_vectors)
                with index.store.write(f"storing {claim.doc_id}") as transaction:
                    tally.count(claim.doc_id, index.write(transaction, prepared, new_vectors))
        report_progress(0, done)
    with index.store.read() as snapshot:
        missing = [] if folder.is_file() else _missing(snapshot, root_name, paths, every_claim, tally)
    if prune and missing:
        with index.store.write("pruning") as transaction:
            _prune(transaction, root_name, missing, prune_limit, tally)
    with index.store.read() as snapshot:
        return _report(snapshot, claims, tally, missing)


def _rehearse(index: Index, folder: Path, *, progress: Progress | None, **options: Any) -> IngestReport:
    """The same run on a private copy of the file, with a stand-in that embeds nothing."""
    with index.store.private_copy() as copy:
        known = index.settings.embedder
        stand_in = None if known is None else StandIn(known.name, known.dimension, known.fingerprint)
        rehearsal = replace(index, store=copy, embedder=stand_in)
        return replace(ingest_folder(rehearsal, folder, progress=progress, **options), dry_run=True)


def _is_unchanged(index: Index, claim: Claim, root: str) -> bool:
    """Whether the file holds just this text from just this place, with a vector for every chunk."""
    with index.store.read() as snapshot:
        stored = snapshot.stored(claim.doc_id)
        if stored is None or stored.pruned:
            return False
        if (stored.content_hash, stored.root, stored.path) != (claim.content_hash, root, claim.path):
            return False
        return not index.missing_vectors(snapshot, snapshot.text_hashes(stored.doc_key))


def _prune(transaction: Transaction, root: str, missing: Sequence[StoredDocument], limit: float, tally: Tally) -> None:
    """Withdraw the missing documents that are not superseded: these stay where they are, in the past.

    Refused when a file of the run failed, for it may be one of them under a new name, and when more than `limit`
    of the root's documents would go, for then it is likelier that the folder is the wrong one.
    """
    gone = [document for document in missing if document.status != "superseded"]
    alive = [d for d in transaction.stored_under(root) if d.status not in ("superseded", "withdrawn")]
    if gone and tally.failed:
        tally.notes.append(f"nothing was pruned, because {len(tally.failed)} files failed; mend them and run it again")
    elif len(gone) > limit * len(alive):
        problem = (
            f"pruning refused: {len(gone)} of {len(alive)} documents of the root {root} would be withdrawn, more than "
            f"{limit:.0%}; check the folder, or allow more with prune_limit (--prune-limit)"
        )
        tally.failed.append(Failed(root, None, problem))
    else:
        with newly_stale(transaction, {(document.family, document.lang) for document in gone}) as stale:
            for document in gone:
                withdraw_in(transaction, document, "its file vanished from the source", pruned=True)
                tally.withdrawn.append(document.doc_id)
        tally.stale_answers |= stale


@contextmanager
def _failures_of(path: str, tally: Tally) -> Iterator[None]:
    """What goes wrong with one file is noted and stops nothing; without store or embedder no other would do better."""
    try:
        yield
    except (StoreError, EmbedderUnavailable, EmbedderMismatch):
        raise
    except EvidenceDeskError as error:
        tally.fail(path, error)


def _read_claims(folder: Path, paths: Sequence[str], tally: Tally) -> list[Claim]:
    claims = []
    for path in paths:
        with _failures_of(path, tally):
            source = read_document(folder, path)
            place = (source.family, source.lang, version_sort_key(source.version))
            claims.append(Claim(path, source.doc_id, place, content_hash(source), source.declared_status))
    return claims


def _read_again(folder: Path, claim: Claim) -> SourceDocument:
    """Read a file for writing; it was only looked at before, so that memory does not grow with the folder."""
    source = read_document(folder, claim.path)
    if source.doc_id != claim.doc_id or content_hash(source) != claim.content_hash:
        raise SourceChanged(path=claim.path, line=1, problem="it changed while it was read")
    return source


def _without_conflicts(claims: Sequence[Claim], tally: Tally) -> list[Claim]:
    """The claims that contradict no other of the run; which of two was first never decides."""
    by_place: dict[tuple[str, str, str], list[Claim]] = {}
    by_doc_id: dict[str, list[Claim]] = {}
    for claim in claims:
        by_place.setdefault(claim.place, []).append(claim)
        by_doc_id.setdefault(claim.doc_id, []).append(claim)
    accepted: list[Claim] = []
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
    snapshot: Snapshot, claims: Sequence[Claim], tally: Tally, missing: Sequence[StoredDocument]
) -> IngestReport:
    status_of = {summary.doc_id: summary.status for summary in snapshot.summaries()}
    notes = [
        note
        for claim in claims
        if claim.doc_id in tally.actions
        for note in disagreement(claim.path, claim.doc_id, claim.declared_status, status_of[claim.doc_id])
    ]
    return IngestReport(
        added=tally.with_action("added"),
        updated=tally.with_action("updated"),
        unchanged=tally.with_action("unchanged"),
        superseded=tuple(sorted(tally.superseded)),
        missing=tuple(document.doc_id for document in missing),
        withdrawn=tuple(tally.withdrawn),
        skipped=tuple(tally.skipped),
        failed=tuple(tally.failed),
        embedded=tally.embedded,
        notes=(*tally.notes, *notes),
        stale_answers=len(tally.stale_answers),
    )


def _missing(
    snapshot: Snapshot, root: str, paths: Sequence[str], claims: Sequence[Claim], tally: Tally
) -> list[StoredDocument]:
    """Documents of the root whose files are gone; `claims` are all that the run read, refused ones included."""
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

    return [document for document in snapshot.stored_under(root) if gone(document)]


@dataclass(slots=True)
class Ahead:
    """What was done before a change is tried."""

    replaced: dict[str, Document] = field(default_factory=dict)
    """Documents, by doc_id, whose text the change would replace in place, as they are."""
    embedded: int = 0

    def embed(self, index: Index, source: SourceDocument, root: str | None) -> None:
        """Embed what one document would bring in, and keep its vectors in the file. Writes vectors only."""
        with index.store.read() as snapshot:
            stored = snapshot.stored(source.doc_id)
            if stored is not None and stored.content_hash != content_hash(source):
                self.replaced[source.doc_id] = snapshot.document(source.doc_id)
        new_vectors, _ = index.embed(index.prepare(source, root))
        index.keep(new_vectors)
        self.embedded += len(new_vectors)


def embed_ahead(index: Index, folder: Path, root: str | None, progress: Progress | None = None) -> Ahead:
    """Embed what a folder would bring in, and keep the vectors in the file. Writes vectors only.

    So that a change that is tried under the write lock waits for no embedder. What is wrong with a file is not told
    here: the ingest itself reports it.
    """
    ahead, tally = Ahead(), Tally()
    claims = _without_conflicts(_read_claims(folder, find_sources(folder)[0], tally), tally)
    for done, claim in enumerate(claims, 1):
        with _failures_of(claim.path, tally):
            ahead.embed(index, _read_again(folder, claim), _root_name(folder, root))
        if progress is not None:
            progress(IngestProgress(done, len(claims), ahead.embedded, claim.path))
    return ahead


def _root_name(folder: Path, root: str | None) -> str:
    place = folder.resolve()
    return root if root is not None else place.name if folder.is_dir() else place.parent.name
