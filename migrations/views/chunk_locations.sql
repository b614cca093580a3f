-- Where every chunk stands: its label's parts, its lines, and whether it is in force.
CREATE VIEW chunk_locations AS
SELECT d.doc_id || ':c' || c.ordinal AS chunk_id, d.doc_id, d.family, d.version, d.lang, d.status, d.title, c.heading,
       d.root, d.path, c.line_start, c.line_end, d.valid_from, d.valid_to, c.text, c.preamble, c.chunk_key, d.doc_key
FROM documents d JOIN chunks c ON c.doc_key = d.doc_key
