"""Reads snapshots of the Delta Lake tables, and commits changes to them.

A file belongs to a table from the commit that adds it until the commit that removes it, so a reader
of one snapshot never sees half a change. Files are written under unique names before they are
committed; uncommitted ones are vacuumed. Each commit carries the number of its change as an
application transaction, so that of two runs that change a table at once one fails, and has changed
nothing.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction
from pyarrow import fs

from .datafiles import ANEW, TARGET_BYTES, DataFile, NewFiles, batches, numbers, of_clusters
from .failures import PipelineError
from .location import Location, reason
from .schemas import CLUSTER, TIME, Table

APPLICATION = "minicontroller"
"""The name of the application transactions; their versions are the numbers of changes."""
ROWS = "minicontroller.rows"
"""The key in a commit's metadata of the number of rows that it adds."""
SMALL_BYTES = TARGET_BYTES // 8
MANY = 16
"""How many small files a cluster has when they are merged, so that a row is rewritten a few times
at most.
"""
STATE = "_state"
"""The folder of what the ingest keeps for itself, beside the tables."""
OLD_STATE = f"{STATE}/state.json"
"""The file in which versions before Delta tables kept the state of the ingest."""
CLEARING = f"{STATE}/clearing"
"""An object that is there while the tables are removed by `ingest --anew`."""
KEPT_HOURS = 24
"""How many hours a file stays that no snapshot names any more, or none yet."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TablesError(PipelineError):
    """The tables cannot be used."""


class ChangedMeanwhileError(TablesError):
    """Another run has changed a table since the snapshot was taken."""


class Snapshot:
    def __init__(self, table: Table, delta: DeltaTable | None) -> None:
        self.table = table
        self.delta = delta
        self.version = -1 if delta is None else delta.version()
        self.change = 0 if delta is None else delta.transaction_version(APPLICATION) or 0
        """The number of the change that was the last one; 0 before the first one."""

    @property
    def is_ours(self) -> bool:
        """Whether this program made the table, and whatever is in it."""
        if self.delta is None or self.change:
            return True
        names = {field.name for field in self.delta.schema().fields}
        is_alike = bool(self.delta.metadata().partition_columns) == self.table.is_partitioned
        return is_alike and names <= set(self.table.schema.names) and not self.delta.file_uris()

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        if self.delta is None:
            return ()
        actions = pa.table(self.delta.get_add_actions(flatten=True))
        columns = {name: numbers(actions[name]) for name in actions.column_names}
        return tuple(self._file(action) for action in pa.table(columns).to_pylist())

    def _file(self, action: Mapping[str, Any]) -> DataFile:
        low, high, nulls = (
            {name: value for name in self.table.statistics if (value := action.get(f"{kind}.{name}")) is not None}
            for kind in ("min", "max", "null_count")
        )
        cluster_id, path = action.get(f"partition.{CLUSTER}"), unquote(action["path"])
        return DataFile(path, cluster_id, action["num_records"], action["size_bytes"], low, high, nulls)

    def commits(self, most: int) -> list[tuple[int, int]]:
        """Return the newest changes: milliseconds since 1970, rows. Raises TablesError, OSError."""
        try:
            history = [] if self.delta is None else self.delta.history(most * MANY)
        except DeltaError as error:  # an entry of the log that no snapshot needs
            raise TablesError(f"The log of {self.table.value} cannot be read: {reason(error)}: {ANEW}.") from None
        return [(each["timestamp"], each[ROWS]) for each in history if each.get(ROWS)][:most]

    def lags_behind(self, events: "Snapshot") -> bool:
        """Whether the table lacks something of the events: an ingest is at work, or was ended."""
        return self.change < events.change

    def of_clusters(self) -> Mapping[str, list[DataFile]]:
        return of_clusters(self.files)


@dataclass(frozen=True)
class Tables:
    location: Location

    def snapshot(self, table: Table) -> Snapshot:
        """Read what a table holds now; nothing if it was never written. Raises TablesError."""
        try:
            found = Snapshot(table, DeltaTable(self.folder(table).uri, storage_options=self.location.storage_options()))
        except TableNotFoundError:
            return Snapshot(table, None)
        except (DeltaError, OSError) as error:
            damaged = f": {ANEW}" if isinstance(error, DeltaError) else ""
            raise TablesError(f"{self.folder(table)} cannot be read: {reason(error)}{damaged}.") from None
        if not found.is_ours:
            raise TablesError(f"{self.folder(table)} is a table of another program: take another folder.")
        return found

    def snapshots(self) -> Mapping[Table, Snapshot]:
        """Read what all tables hold now. Raises TablesError."""
        history = self.snapshot(Table.TOPIC_HISTORY)  # before the events, so that it is never ahead of them
        return {table: history if table is Table.TOPIC_HISTORY else self.snapshot(table) for table in Table}

    def require(self) -> Snapshot:
        """Return the snapshot of the events. Raises TablesError if nothing was ingested."""
        self.check_form()
        events = self.snapshot(Table.EVENTS)
        if events.delta is None:
            raise TablesError(
                f"There are no tables in {self.location}: `minicontroller pipeline ingest --audit DIR --tables {self.location}` makes them."
            )
        return events

    def check_form(self) -> None:
        """Raise TablesError for tables that are being removed, or of a version before Delta."""
        self.check_folders()
        for name, why in (
            (CLEARING, "is being rebuilt, or a run that rebuilt it was interrupted"),
            (OLD_STATE, "was written by an older version of this program, in another format"),
        ):
            if self.location.filesystem().get_file_info(name).type != fs.FileType.NotFound:
                raise TablesError(
                    f"{self.location} {why}: `minicontroller pipeline ingest --anew` rebuilds it from all audit files."
                )

    def check_folders(self) -> None:
        """Raise TablesError if there is a file in the place of a folder."""
        folders = [self.folder(table) for table in Table] + [self.location.child(STATE)]
        for folder in folders if self.location.is_local else ():
            if folder.path.is_file():
                raise TablesError(f"{folder} is a file in the place of a folder of the tables: move it away.")

    def commit(
        self,
        before: Snapshot,
        change: int,
        adds: Iterable[DataFile] = (),
        removes: Iterable[DataFile] = (),
        *,
        are_rows_new: bool = True,
    ) -> Snapshot:
        """Change a table in one step, and return it. Raises ChangedMeanwhileError, TablesError."""
        delta = before.delta or self._created(before.table)
        there = {field.name for field in delta.schema().fields}
        if new := [field for field in Schema.from_arrow(before.table.schema).fields if field.name not in there]:
            delta.alter.add_columns(new)  # the table is of an older version
        now = time.time_ns() // 1_000_000
        adds = list(adds)
        actions: list[AddAction | RemoveAction] = [
            *(RemoveAction(file.path, are_rows_new, now, file.size, dict(_partitions(file))) for file in removes),
            *(
                AddAction(file.path, file.size, _partitions(file), now, are_rows_new, _statistics(before.table, file))
                for file in adds
            ),
        ]
        try:
            delta.create_write_transaction(
                actions,
                mode="append",
                schema=delta.schema(),
                partition_by=delta.metadata().partition_columns,
                commit_properties=CommitProperties(
                    custom_metadata={ROWS: sum(file.rows for file in adds) if are_rows_new else 0},
                    app_transactions=[Transaction(APPLICATION, change)],
                ),
            )
        except CommitFailedError as error:
            after = self.snapshot(before.table)
            if after.change == change and {file.path for file in adds} <= {file.path for file in after.files}:
                return after  # an object store made the commit, and its answer was lost
            raise ChangedMeanwhileError(
                f"Another run has changed {self.location} meanwhile ({reason(error)})."
            ) from None
        except (DeltaError, OSError) as error:
            if self.snapshot(before.table).version < before.version:
                raise ChangedMeanwhileError(f"{self.folder(before.table)} was removed meanwhile.") from None
            raise TablesError(f"{self.folder(before.table)} cannot be changed: {reason(error)}.") from None
        return self.snapshot(before.table)

    def merge_small(self, before: Snapshot) -> int:
        """Merge small files where there are many, in the order of the log, and return how many
        fewer there are. Raises TablesError, OSError.

        delta-rs lets two compactions at once succeed, each of which adds all rows; of two commits
        with the same application transaction one fails.
        """
        small = defaultdict[str | None, list[DataFile]](list)
        for file in before.files:
            if file.size < SMALL_BYTES:
                small[file.cluster_id].append(file)
        many = [files for files in small.values() if len(files) >= MANY]
        if not many:
            return 0
        removes = list(chain.from_iterable(many))
        adds: list[DataFile] = []
        merged = NewFiles(self.location, before.table, adds)
        for files in many:
            in_order = sorted(files, key=lambda file: [file.low.get(name, 0) for name in ("epoch", "sequence")])
            for rows in batches(self.location, before.table, in_order, before.table.in_files.names):
                merged.write(files[0].cluster_id, rows)
        merged.finish()
        try:
            self.commit(before, before.change, adds, removes, are_rows_new=False)
        except ChangedMeanwhileError:  # the other run merges them itself
            return 0
        self.vacuum(before.table)
        return len(removes) - len(adds)

    def vacuum(self, table: Table) -> None:
        """Remove the files that no snapshot of the last KEPT_HOURS names. Raises TablesError."""
        delta = self.snapshot(table).delta
        try:
            if delta is not None:
                delta.vacuum(KEPT_HOURS, dry_run=False, enforce_retention_duration=False, full=True)
        except (DeltaError, OSError) as error:
            raise TablesError(f"{self.folder(table)} cannot be vacuumed: {reason(error)}.") from None

    def folder(self, table: Table) -> Location:
        return self.location.child(table.value)

    def _created(self, table: Table) -> DeltaTable:
        try:
            return DeltaTable.create(
                self.folder(table).uri,
                table.schema,
                partition_by=[CLUSTER] if table.is_partitioned else None,
                configuration={
                    "delta.dataSkippingStatsColumns": ",".join(table.statistics),
                    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
                    "delta.logRetentionDuration": "interval 7 days",
                },
                storage_options=self.location.storage_options(),
            )
        except (DeltaError, OSError) as error:
            if "already exists" in str(error):
                raise ChangedMeanwhileError(f"Another run has made {self.folder(table)} meanwhile.") from None
            raise TablesError(f"{self.folder(table)} cannot be made: {reason(error)}.") from None


def _partitions(file: DataFile) -> Mapping[str, str | None]:
    return {} if file.cluster_id is None else {CLUSTER: file.cluster_id}


def _statistics(table: Table, file: DataFile) -> str:
    """Return the statistics of a file as Delta's log has them."""
    low, high = (
        {
            name: (EPOCH + timedelta(microseconds=int(value))).isoformat(timespec="milliseconds")
            if table.schema.field(name).type == TIME
            else value
            for name, value in bounds.items()
        }
        for bounds in (file.low, file.high)
    )
    found = {"numRecords": file.rows, "minValues": low, "maxValues": high, "nullCount": file.nulls}
    return msgspec.json.encode(found).decode()
