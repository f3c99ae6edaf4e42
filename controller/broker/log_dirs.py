"""The directories that a node is configured with, and in which of them each of its replicas lies.

Nothing is written there. Replicas are spread over the directories by their names, so a restart
changes nothing but the moves that an administrator has asked for, which are forgotten.
"""

from pathlib import Path
from zlib import crc32

from ...cluster.entities import Topic
from ...cluster.image import Image
from ...process.settings.node_config import NodeConfig


class LogDirs:
    """The directories of one node (`log.dirs`, or `log.dir`)."""

    def __init__(self, config: NodeConfig) -> None:
        self.paths = list(dict.fromkeys(_absolute(path) for path in config.log_dirs))
        """The directories, each once, in the order of the configuration, written as Kafka tells
        them.
        """
        self._moved: dict[tuple[bytes, int], str] = {}
        """The directories of replicas that were moved, by topic id and partition."""
        self.moves = 0
        """The number of changes of where replicas lie. What was described at another one may be
        wrong.
        """

    def path_of(self, topic: Topic, index: int) -> str:
        """Return the directory of this node's replica of a partition."""
        usual = self.paths[crc32(f"{topic.name}-{index}".encode()) % len(self.paths)]
        return self._moved.get((topic.topic_id, index), usual)

    def move(self, path: str, topic: Topic, index: int) -> None:
        """Move this node's replica of a partition to another of the directories. A replica that is
        not there yet will begin its life in it.
        """
        self._moved[topic.topic_id, index] = path
        self.moves += 1

    def forget_all_but(self, image: Image) -> None:
        """Forget moves in topics that are gone."""
        self.moves += 1
        self._moved = {
            (topic_id, index): path
            for (topic_id, index), path in self._moved.items()
            if (topic := image.topic_by_id(topic_id)) is not None and topic.partition(index) is not None
        }


def _absolute(path: str) -> str:
    """Return a path as Java's File has it: absolute, without a slash at its end or two in a row."""
    return str(Path(path).absolute()).replace("//", "/")  # a Path keeps two at its beginning
