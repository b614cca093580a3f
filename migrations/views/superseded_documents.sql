-- Every superseded document beside the one that replaced it, when, and why.
CREATE VIEW superseded_documents AS
SELECT old.doc_id AS old_doc_id, new.doc_id AS new_doc_id, old.family, old.lang,
       old.version AS old_version, new.version AS new_version,
       old.title AS old_title, new.title AS new_title, old.path AS old_path, new.path AS new_path,
       old.valid_from AS old_valid_from, new.valid_from AS superseded_at,
       CASE WHEN old.valid_to = old.valid_from
            THEN 'never in force: ' || new.doc_id || ' had already begun'
            ELSE new.doc_id || ' took effect' END AS why
FROM documents old
JOIN documents new ON new.doc_key = (
    -- The earliest start of any higher version ended the old one; a version withdrawn before it began did not.
    SELECT n.doc_key FROM documents n
    WHERE n.family = old.family AND n.lang = old.lang AND n.version_sort > old.version_sort
      AND (n.withdrawn_at IS NULL OR n.withdrawn_at > n.valid_from)
    ORDER BY n.valid_from, n.version_sort LIMIT 1)
WHERE old.status = 'superseded'
