-- Chunks that a leg of the search cannot find because the derived rows are missing; empty when all is well.
CREATE VIEW index_gaps AS
SELECT d.doc_id || ':c' || c.ordinal AS chunk_id, d.status, 'no vector' AS gap
FROM desk s CROSS JOIN chunks c JOIN documents d ON d.doc_key = c.doc_key
WHERE s.embedder_key IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.embedder_key = s.embedder_key AND v.text_hash = c.text_hash)
UNION ALL
SELECT d.doc_id || ':c' || c.ordinal, d.status, 'no postings'
FROM chunks c JOIN documents d ON d.doc_key = c.doc_key
WHERE c.term_count > 0
  AND c.chunk_key > (SELECT coalesce(max(last_key), 0) FROM lexical_segments)
  AND NOT EXISTS (SELECT 1 FROM lexical_unpacked p WHERE p.chunk_key = c.chunk_key)
