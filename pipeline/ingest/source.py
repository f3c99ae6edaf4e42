"""The audit's files as a source of Structured Streaming: what is new in them, in batches.

Rule: an offset says what a batch reads, to the byte; so a batch that is repeated is the same batch.
What was read before is known from the state that the last batch left behind, not from offsets,
which would grow with the number of files. A row is one reader's share of a batch: the lines
themselves are read where they become rows.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from .files import Found, Read, listing, next_reads
from .report import Share
from .state import load

NAME = "audit"
SCHEMA = "share string"
BATCH_BYTES = 512 << 20
PIECE_BYTES = 64 << 20
"""A reader reads so much, or less if there would be too few readers."""
MIN_PIECE_BYTES = 4 << 20


class AuditSource(DataSource):
    """Spark's data source of audit files. Options: `tables` and `folders` (JSON, paths),
    `batch_bytes`, `readers`.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> "AuditReader":  # noqa: N802, ARG002 - Spark's interface
        return AuditReader(self.options)


class AuditReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches, in a process of its own beside the driver."""

    def __init__(self, options: Any) -> None:
        self._tables = Path(options["tables"])
        self._folders = [Path(folder) for folder in msgspec.json.decode(options["folders"], type=list[str])]
        self._batch_bytes = int(options["batch_bytes"])
        self._readers = int(options["readers"])
        self._until: dict[str, Found] | None = None
        self._given: set[Read] = set()
        """Nothing is tried twice by one run, whatever came of it."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"number": 0, "reads": []}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._batch_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = listing(self._folders)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802, ARG002 - we gave it
        found = self._until if self._until is not None else listing(self._folders)
        piece = max(MIN_PIECE_BYTES, min(PIECE_BYTES, self._batch_bytes // self._readers))
        reads = next_reads(
            found, load(self._tables).files, given=self._given, max_bytes=self._batch_bytes, piece_bytes=piece
        )
        if not reads:
            return start
        self._given.update(reads)
        return {"number": start["number"] + 1, "reads": msgspec.to_builtins(reads)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        reads = msgspec.convert(end["reads"], list[Read])
        total = sum(read.size for read in reads)
        each = max(MIN_PIECE_BYTES, min(PIECE_BYTES, total // self._readers))
        return [InputPartition(share) for share in _shares(reads, each)]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        yield (msgspec.json.encode(partition.value).decode(),)


def _shares(reads: Sequence[Read], each: int) -> list[Share]:
    """Divide reads among readers; neighbours stay together, so that many small files become one
    file of a table.
    """
    shares: list[Share] = []
    size = 0
    for read in reads:
        if not shares or size + read.size > each:
            shares.append(Share(len(shares), []))
            size = 0
        shares[-1].reads.append(read)
        size += read.size
    return shares
