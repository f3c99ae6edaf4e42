"""The tables as the back-test reads them: the files of one snapshot of each table.

Rule: a snapshot is taken once for each command, so a command never sees half of what another run
writes meanwhile.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from . import delta
from .delta import Snapshot
from .location import Location
from .schemas import Table


class Tables:
    """The tables of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.location = Location.local(folder)

    @cached_property
    def snapshots(self) -> Mapping[Table, Snapshot]:
        """What all tables hold. Raises TablesError."""
        return delta.Tables(self.location).snapshots()

    @property
    def history_lags(self) -> bool:
        """Whether the topic history lacks events: an ingest is at work, or was interrupted."""
        return self.snapshots[Table.TOPIC_HISTORY].change < self.snapshots[Table.EVENTS].change

    def files(self, table: Table) -> Mapping[str, Sequence[Path]]:
        """Return the files of a table that is partitioned by clusters, by cluster id."""
        folder = self.folder / table.value
        files = self.snapshots[table].of_clusters()
        return {cluster: [folder / file.path for file in of] for cluster, of in files.items()}

    def require(self) -> None:
        """Raise TablesError if nothing was ingested."""
        delta.Tables(self.location).require()
