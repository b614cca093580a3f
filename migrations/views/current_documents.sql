-- Documents in force as of the last write, one a line of versions.
CREATE VIEW current_documents AS
SELECT doc_id, family, version, lang, title, valid_from, valid_to, root, path, came_in_at, changed_at, doc_key
FROM documents
WHERE status = 'current'
