-- BM25's N and average length over the chunks in force, and its two constants.
CREATE VIEW bm25_stats AS
SELECT chunks_in_force AS "N", terms_in_force AS total_length,
       CASE WHEN chunks_in_force > 0 THEN 1.0 * terms_in_force / chunks_in_force ELSE 0.0 END AS avg_len,
       1.2 AS k1, 0.75 AS b
FROM lexical_totals
