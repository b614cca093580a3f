-- Every version of every text in order, with status and validity; line_position counts versions within the line.
CREATE VIEW document_history AS
SELECT d.family, d.lang, d.version, d.doc_id, d.title, d.status, d.valid_from, d.valid_to,
       (SELECT count(*) FROM documents e
        WHERE e.family = d.family AND e.lang = d.lang AND e.version_sort <= d.version_sort) AS line_position,
       d.effective_from, d.effective_to, d.came_in_at, d.changed_at, d.withdrawn_at, d.withdrawn_reason,
       d.root, d.path, (SELECT count(*) FROM chunks c WHERE c.doc_key = d.doc_key) AS chunk_count
FROM documents d
