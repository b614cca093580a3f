"""Runs the migrations: over the connection handed in by evidencedesk, or for `alembic` on the command line.

Both ways take the same connection recipe and the same one transaction; views are dropped first and made again
last, so that a migration may change any table under them.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from alembic import context

from evidencedesk import connections, models, schema


def _run(connection: sa.Connection) -> None:
    schema.drop_views(connection)
    context.configure(
        connection=connection,
        target_metadata=models.Base.metadata,
        version_table=schema.VERSION_TABLE,
        # One transaction around everything is ours to begin: the driver must not commit between statements.
        transactional_ddl=False,
        include_name=lambda name, kind, _parents: kind != "table" or name in models.Base.metadata.tables,
    )
    context.run_migrations()
    schema.create_views(connection)


handed_in = context.config.attributes.get("connection")
if handed_in is not None:
    _run(handed_in)
else:
    url = context.config.get_main_option("sqlalchemy.url") or ""
    database = context.get_x_argument(as_dictionary=True).get("db") or sa.make_url(url).database or ""
    schema.exists(Path(database))  # refuses another program's file before anything is written to it
    with (
        closing(connections.connect_database(Path(database), journal=None)) as opened,
        opened.upgrading() as connection,
    ):
        if schema.needs_identity(connection):
            schema.write_identity(connection)
        _run(connection)
