"""The benchmarks' own look into ZooKeeper. Nothing else here imports kazoo, whose errors become
`DriverError` at this edge.
"""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import KazooException  # type: ignore[import-untyped]
from kazoo.handlers.threading import KazooTimeoutError  # type: ignore[import-untyped]

from .driver import DriverError


@contextlib.contextmanager
def connected(hosts: str | None) -> Iterator[Any]:
    """A client while the block lasts."""
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    client = KazooClient(hosts=hosts)
    try:
        client.start()
        yield client
    except (KazooException, KazooTimeoutError) as error:
        raise DriverError(f"ZooKeeper: {error!r}") from error
    finally:
        client.stop()
        client.close()
