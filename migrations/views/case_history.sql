-- Every case of every run in order, beside its outcome in the run before that asked it the same question; a change that
-- a gate refused never came to be, so its run is nobody's run before.
CREATE VIEW case_history AS
SELECT c.case_id, r.run_key AS run_id, r.kind, r.accepted, r.started_at, c.outcome,
       (SELECT f.outcome FROM run_cases f JOIN runs b ON b.run_key = f.run_key
        WHERE f.case_id = c.case_id AND f.question = c.question AND b.run_key < r.run_key AND b.accepted IS NOT 0
        ORDER BY b.run_key DESC LIMIT 1) AS outcome_before,
       c.reason, c.detail, c.question, c.tags, c.as_of, c.answerable, c.keyword_rank, c.vector_rank, c.hybrid_rank,
       c.top_chunk_id, c.top, c.margin, c.cited, r.generation, r.embedder, r.model, r.thresholds, r.code_version
FROM run_cases c JOIN runs r ON r.run_key = c.run_key
