"""DuckDB in memory, in a task and at the driver: one thread, bounded memory, and a folder of its
own below that of temporary files for what has no room.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import duckdb

SORTING = "512MB"
"""How much memory `database` has in a process."""


def connected(memory: str = "1GB", **settings: str) -> duckdb.DuckDBPyConnection:
    """Open an empty database, which has so much memory, with other settings of DuckDB."""
    return duckdb.connect(config={"threads": 1, "memory_limit": memory, "temp_directory": str(_folder()), **settings})


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database for the block. Raises OSError for what DuckDB cannot do."""
    try:
        with _shared().cursor() as found:
            yield found
    except duckdb.Error as error:
        raise failure(error) from None


def failure(error: duckdb.Error) -> OSError:
    """Return the error that says in a sentence what DuckDB cannot do, and what to do."""
    why = str(error).partition("\n")[0].rstrip(".")
    return OSError(0, f"DuckDB cannot work there ({why}): make room, or name another folder by TMPDIR", str(_folder()))


@cache
def _folder() -> Path:
    return Path(gettempdir(), f"minicontroller-{uuid4().hex}")


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    return connected(SORTING)
