-- BM25's n: in how many chunks in force each search term stands.
CREATE VIEW bm25_terms AS
SELECT t.term, t.chunks_in_force + coalesce(c.change, 0) AS n
FROM lexical_terms t LEFT JOIN lexical_changes c ON c.term_key = t.term_key
WHERE t.chunks_in_force + coalesce(c.change, 0) > 0
