-- Chunks of the documents in force: what a search of today may find.
CREATE VIEW current_chunks AS
SELECT d.doc_id || ':c' || c.ordinal AS chunk_id, d.doc_id, d.family, d.version, d.lang, d.title, c.heading,
       d.path, c.line_start, c.line_end, c.text, c.chunk_key, d.doc_key
FROM documents d JOIN chunks c ON c.doc_key = d.doc_key
WHERE d.status = 'current'
