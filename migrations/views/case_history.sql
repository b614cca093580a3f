-- Every case of every run in order, beside its outcome in the run before.
CREATE VIEW case_history AS
SELECT c.case_id, r.run_key AS run_id, r.kind, r.accepted, r.started_at, c.outcome,
       lag(c.outcome) OVER (PARTITION BY c.case_id ORDER BY r.run_key) AS outcome_before,
       c.reason, c.detail, c.question, c.tags, c.as_of, c.answerable, c.keyword_rank, c.vector_rank, c.hybrid_rank,
       c.top_chunk_id, c.top, c.margin, c.cited, r.generation, r.embedder, r.model, r.thresholds, r.code_version
FROM run_cases c JOIN runs r ON r.run_key = c.run_key
