-- Every citation of every recorded answer: what was asked and answered, from which lines, by which verdicts; an answer
-- that cites nothing has one row.
CREATE VIEW answer_sources AS
SELECT a.answer_key AS answer_id, a.asked_at, a.as_of, a.question, a.text AS answer, a.reason, a.detail,
       k.claim_number, k.text AS claim, k.verdict AS claim_verdict, k.reason AS claim_reason,
       c.chunk_id, c.verdict AS citation_verdict, c.support, c.label, c.version, c.path, c.line_start, c.line_end,
       c.quote AS cited_sentence, c.text AS cited_text,
       a.guard_state, a.guard_measure, a.top, a.margin, a.min_score, a.min_margin, a.probability, a.threshold,
       a.values_source, a.embedder, a.model, a.checker
FROM answers a
LEFT JOIN answer_claims k ON k.answer_key = a.answer_key
LEFT JOIN answer_citations c ON c.answer_key = k.answer_key AND c.claim_number = k.claim_number
