"""DuckDB in a task: it sorts in bounded memory, and in a temporary folder what has more."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import duckdb

from ..location import reason

MEMORY = "512MB"
"""How much memory DuckDB has in a process; beyond it, it writes to a temporary folder."""


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database for the block. Raises OSError for what DuckDB cannot do."""
    try:
        with _duckdb().cursor() as found:
            yield found
    except duckdb.Error as error:
        raise OSError(0, f"DuckDB cannot sort there: {reason(error)}", str(_folder())) from None


@cache
def _folder() -> Path:
    return Path(gettempdir(), f"minicontroller-{uuid4().hex}")


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1, "memory_limit": MEMORY, "temp_directory": str(_folder())})
