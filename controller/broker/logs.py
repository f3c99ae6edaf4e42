"""The port by which handlers ask for the logs of this node's replicas: in which directories they
lie, and what they hold.

`Logs` itself is the answer of a node that keeps no records. Every log is empty, and nobody writes
to one. Replicas are spread over the directories by their names, so a restart changes nothing but
the moves that an administrator has asked for, which are forgotten.

Rule: handlers ask about partitions that exist, once they have checked permissions and leadership.
"""

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import msgspec

from ...cluster.entities import Topic
from ...cluster.image import Image
from ...process.settings.node_config import NodeConfig
from ...process.steps import Steps
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_producers import ActiveProducer
from ...protocol.messages.list_offsets import EARLIEST_LOCAL_TIMESTAMP, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ...protocol.messages.write_txn_markers import TransactionMarker

AT_AN_END = frozenset({LATEST_TIMESTAMP, EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP})
"""The timestamps for which an empty log has an offset."""


class LogBounds(msgspec.Struct, frozen=True):
    """The bounds of one partition's log, as offsets. `end` and `size`, in bytes, are those of this
    node's replica.
    """

    start: int = 0
    high_watermark: int = 0
    end: int = 0
    size: int = 0


class FoundOffset(msgspec.Struct, frozen=True):
    """The place in a log to which a timestamp of ListOffsets leads, with the time of the record if
    it was found by its time.
    """

    offset: int
    leader_epoch: int
    timestamp: int = -1


EMPTY_LOG = LogBounds()


class Logs:
    def __init__(self, config: NodeConfig) -> None:
        self.paths = list(dict.fromkeys(_absolute(path) for path in config.log_dirs))
        """The node's directories (`log.dirs`, or `log.dir`), each once, in the order of the
        configuration, written as Kafka tells them.
        """
        self.revision = 0
        """Rises whenever a replica moves."""
        self._moved: dict[tuple[bytes, int], str] = {}
        """The directories of replicas that were moved, by topic id and partition."""

    @property
    def state(self) -> object:
        """A value that is another one once a log has changed or a replica has moved: rows that were
        encoded with another one may be wrong.
        """
        return self.revision

    # ------------------------------------------------------------------ directories

    def path_of(self, topic: Topic, index: int) -> str:
        """Return the directory of this node's replica of a partition."""
        usual = self.paths[crc32(f"{topic.name}-{index}".encode()) % len(self.paths)]
        return self._moved.get((topic.topic_id, index), usual)

    def move(self, path: str, topic: Topic, index: int) -> None:
        """Move this node's replica of a partition to another of the directories. A replica that is
        not there yet will begin its life in it.
        """
        self._moved[topic.topic_id, index] = path
        self.revision += 1

    def forget_all_but(self, image: Image) -> None:
        """Forget moves in topics that are gone."""
        self.revision += 1
        self._moved = {
            (topic_id, index): path
            for (topic_id, index), path in self._moved.items()
            if (topic := image.topic_by_id(topic_id)) is not None and topic.partition(index) is not None
        }

    # ------------------------------------------------------------------ records

    def log_of(self, _topic: Topic, _index: int) -> LogBounds:
        return EMPTY_LOG

    def find(self, topic: Topic, index: int, timestamp: int, *, committed: bool = False) -> Steps[FoundOffset | None]:  # noqa: ARG002
        """Return the offset for a time in milliseconds since 1970, or for one of the negative
        timestamps of ListOffsets, among all records or the committed ones only.
        """
        yield from ()  # a log with many records takes steps
        return FoundOffset(0, topic.partitions[index].leader_epoch) if timestamp in AT_AN_END else None

    def offsets_before(self, _topic: Topic, _index: int, timestamp: int, count: int) -> Sequence[int]:
        """Return the newest offsets at which a segment begins that is not newer than a time, at
        most so many, as version 0 of ListOffsets asks for them.
        """
        return [0] if timestamp in AT_AN_END and count > 0 else []

    def delete_records(self, topic: Topic, index: int, _offset: int) -> int:
        """Delete the records before an offset, or with -1 before the high watermark, and return the
        low watermark.
        """
        return self.log_of(topic, index).start

    def producers(self, _topic: Topic, _index: int) -> Sequence[ActiveProducer]:
        return ()

    def write_marker(self, _topic: Topic, _index: int, _marker: TransactionMarker) -> ErrorCode:
        """End a producer's transaction in a partition that this node leads."""
        return ErrorCode.NONE


def _absolute(path: str) -> str:
    """Return a path as Java's File has it: absolute, without a slash at its end or two in a row."""
    return str(Path(path).absolute()).replace("//", "/")  # a Path keeps two at its beginning
