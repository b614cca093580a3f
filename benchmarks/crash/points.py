"""Points in a write: before and after each statement that the driver runs, and before each row of many."""

from __future__ import annotations

import os
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from evidencedesk import connections
from evidencedesk.connections import Driver

_IS_NO_WRITE = re.compile(
    r"\s*(SELECT|EXPLAIN|BEGIN\s*$|PRAGMA (?!(application_id|journal_mode|page_size) ?=))", re.IGNORECASE
)
Reached = Callable[[Any, str, Literal["before", "after"]], None]
"""Gets the driver's connection, the statement and when."""


def watched(driver: Driver, reached: Reached) -> Driver:
    """The driver with a call of `reached` around each statement that writes, and before each row of many."""
    module = driver.module

    def watch(connection: Any, statement: str, run: Callable[[], Any]) -> Any:
        if _IS_NO_WRITE.match(statement):
            return run()
        reached(connection, statement, "before")
        given = run()
        reached(connection, statement, "after")
        return given

    class Cursor(module.Cursor):
        def execute(self, statement: str, *parameters: Any) -> Any:
            if statement.startswith("BEGIN"):
                self.connection.only_reads = statement == "BEGIN"
            return watch(self.connection, statement, lambda: super(Cursor, self).execute(statement, *parameters))

        def executemany(self, statement: str, rows: Any) -> Any:
            def one_by_one() -> Iterator[Any]:
                for row in rows:
                    reached(self.connection, statement, "before")
                    yield row

            given = super().executemany(statement, one_by_one())
            reached(self.connection, statement, "after")
            return given

    class Connection(module.Connection):
        def cursor(self, factory: type[Any] = Cursor) -> Any:
            return super().cursor(factory)

        only_reads = True

        def commit(self) -> None:
            self._end("COMMIT", super().commit)

        def rollback(self) -> None:
            self._end("ROLLBACK", super().rollback)

        def _end(self, statement: str, run: Callable[[], None]) -> None:
            # SQLAlchemy ends transactions without a statement, also those that are not there or only read.
            watch(self, statement, run) if self.in_transaction and not self.only_reads else run()

    def connect(*arguments: Any, **options: Any) -> Any:
        return module.connect(*arguments, factory=Connection, **options)

    return Driver(driver.name, SimpleNamespace(**{**vars(module), "connect": connect}), driver.loads_vec)


def use(driver: Driver) -> None:
    """Let every file that is opened from now on in this process be opened with that driver."""
    connections.find_driver = lambda: driver  # type: ignore[assignment]


def in_child(work: Callable[[], Any], answer: Path) -> int:
    """Fork, do `work` in the child, write what it gives to `answer`; gives the child's process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        answer.write_bytes(pickle.dumps(work()))
        os._exit(0)
    except BaseException:  # noqa: BLE001 - whatever it is, the child must not go on as its parent
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)
