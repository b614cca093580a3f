-- Recorded answers whose cited text is no longer in force, the old text beside what is in force instead. Judged by
-- the clock, at the instant that the answer was about; sentence_changed: is the cited sentence no longer in the new text?
CREATE VIEW stale_answers AS
SELECT a.answer_key AS answer_id, a.asked_at, a.as_of, a.question, a.text AS answer, c.claim_number,
       c.chunk_id AS old_chunk_id, c.doc_id AS old_doc_id, new.doc_id AS new_doc_id, c.version AS old_version,
       new.version AS new_version, c.family, c.lang, c.path AS old_path, c.line_start, c.line_end,
       CASE WHEN old.doc_key IS NULL THEN 'removed'
            WHEN new.doc_key = old.doc_key THEN 'corrected'
            WHEN old.status = 'withdrawn' THEN 'withdrawn: ' || old.withdrawn_reason
            WHEN new.doc_key IS NOT NULL THEN 'superseded'
            WHEN old.valid_to <= coalesce(a.as_of, strftime('%Y-%m-%d %H:%M:%f', 'now')) THEN 'expired'
            ELSE 'not in force then' END AS why,
       new.valid_from AS new_valid_from, c.quote AS cited_sentence, c.text AS cited_text,
       CASE WHEN new.doc_key IS NOT NULL THEN instr(
                -- White space apart: a paragraph that was wrapped anew says the same.
                replace(replace(replace(replace(new.source, char(13), ''), char(10), ' '), '  ', ' '), '  ', ' '),
                replace(replace(replace(replace(coalesce(nullif(c.quote, ''), c.text),
                    char(13), ''), char(10), ' '), '  ', ' '), '  ', ' ')) = 0
       END AS sentence_changed
FROM answers a
JOIN answer_citations c ON c.answer_key = a.answer_key
LEFT JOIN documents old ON old.doc_id = c.doc_id
-- A document that was moved to another family or language is looked for where it is now.
LEFT JOIN documents new ON new.family = coalesce(old.family, c.family) AND new.lang = coalesce(old.lang, c.lang)
     AND new.valid_from <= coalesce(a.as_of, strftime('%Y-%m-%d %H:%M:%f', 'now'))
     AND (new.valid_to IS NULL OR new.valid_to > coalesce(a.as_of, strftime('%Y-%m-%d %H:%M:%f', 'now')))
WHERE a.abstained = 0 AND c.verdict = 'retrieved' AND c.support = 'supported'
  AND NOT (new.doc_key IS NOT NULL AND new.doc_id = c.doc_id
           AND EXISTS (SELECT 1 FROM chunks k WHERE k.doc_key = new.doc_key AND k.text = c.text))
