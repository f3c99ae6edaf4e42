"""Tries whether an object store keeps one of two runs from overwriting what the other has
committed.

Rule: a store is asked by what writes to it later. Several commits, of which one may succeed, are
sent at the same moment; a store that ignores the condition lets all of them succeed.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import CommitProperties, Transaction

from .delta import STATE, TablesError
from .location import Location, reason

AT_ONCE = 4
FOLDER = f"{STATE}/probe"
SCHEMA = pa.schema([("probe", pa.int32())])
PROMISE = CommitProperties(app_transactions=[Transaction("probe", 1)])
OVERWRITES = (
    "{} overwrites objects, because it ignores If-None-Match: two concurrent runs would overwrite each "
    "other's files. Use another store, or a newer version of this one."
)


def probe(tables: Location) -> None:
    """Raise TablesError if tables in this store would not be safe from a second run. OSError."""
    if tables.is_local:
        return
    place = tables.child(FOLDER)
    try:
        _remove(tables)  # what a run that was ended left
        DeltaTable.create(place.uri, SCHEMA, storage_options=tables.storage_options())
        snapshots = [DeltaTable(place.uri, storage_options=tables.storage_options()) for _ in range(AT_ONCE)]
        together = Barrier(AT_ONCE)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            made = sum(threads.map(lambda table: _is_made(table, together), snapshots))
    except DeltaError as error:
        raise TablesError(f"Nothing can be written to {tables}: {reason(error)}.") from None
    finally:
        with suppress(OSError):
            _remove(tables)
    if made != 1:
        raise TablesError(OVERWRITES.format(tables))


def _is_made(table: DeltaTable, together: Barrier) -> bool:
    together.wait()
    try:
        table.create_write_transaction(
            [], mode="append", schema=table.schema(), partition_by=[], commit_properties=PROMISE
        )
    except CommitFailedError:
        return False
    return True


def _remove(tables: Location) -> None:
    with suppress(FileNotFoundError):
        tables.filesystem().delete_dir(FOLDER)
