"""The logs of a cluster whose nodes are those of one process: each partition has one log, which its
replicas share.
"""

from collections.abc import Iterator

from ...cluster.cache import ImageChanges
from ...cluster.entities import Topic
from ...cluster.image import Image
from ..log import PartitionLog
from ..memory import Memory
from ..settings import LogSettings
from .waiting import Place, Watchers


class KeptLogs:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        """The memory that all logs share."""
        self.watchers = Watchers()
        self.revision = 0
        """Rises whenever a log changes."""
        self._logs: dict[Place, PartitionLog] = {}
        self._nobody_wrote_to: dict[int, PartitionLog] = {}
        """By leader epochs, what stands for every log that nobody has written to, and is never
        written to itself.
        """

    def __iter__(self) -> Iterator[tuple[Place, PartitionLog]]:
        return iter(list(self._logs.items()))

    def places(self) -> list[Place]:
        """Return the partitions that somebody has written to."""
        return list(self._logs)

    def seen(self, topic: Topic, index: int) -> PartitionLog:
        log = self._logs.get((topic.topic_id, index))
        return self._empty(topic.partitions[index].leader_epoch) if log is None else log

    def _empty(self, epoch: int) -> PartitionLog:
        log = self._nobody_wrote_to.get(epoch)
        if log is None:
            log = self._nobody_wrote_to[epoch] = PartitionLog("", LogSettings(), Memory(0))
            log.begin_epoch(epoch)
        return log

    def written(self, topic: Topic, index: int, settings: LogSettings) -> PartitionLog:
        """Return the log of a partition, to be written to under these settings; it begins with its
        first writer. The caller says by `changed` what has come of it.
        """
        place = topic.topic_id, index
        log = self._logs.get(place)
        if log is None:
            log = self._logs[place] = PartitionLog(f"{topic.name}-{index}", settings, self.memory)
            log.begin_epoch(topic.partitions[index].leader_epoch)
        log.settings = settings
        return log

    def changed(self, place: Place) -> None:
        self.revision += 1
        self.watchers.wake(place)

    def publish(self, before: Image, _after: Image, changes: ImageChanges) -> None:
        """Drop the logs of topics that are gone, and wake who waits at a partition whose leader may
        have changed.
        """
        for name in changes.removed:
            if (topic := before.topics.get(name)) is not None:
                self._forget(topic)
        for topic in changes.topics:
            former = before.topics.get(topic.name)
            if former is not None and former.topic_id != topic.topic_id:
                self._forget(former)
            for index, partition in enumerate(topic.partitions):
                if (log := self._logs.get((topic.topic_id, index))) is not None:
                    log.begin_epoch(partition.leader_epoch)
            self._wake(topic)

    def _forget(self, topic: Topic) -> None:
        for index in range(len(topic.partitions)):
            log = self._logs.pop((topic.topic_id, index), None)
            if log is not None:
                log.close()
        self._wake(topic)

    def _wake(self, topic: Topic) -> None:
        for index in range(len(topic.partitions)):
            self.changed((topic.topic_id, index))
