-- BM25's n: in how many chunks in force each search term stands.
CREATE VIEW bm25_terms AS
SELECT term, chunks_in_force AS n FROM lexical_terms WHERE chunks_in_force > 0
