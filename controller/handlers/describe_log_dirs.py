"""DescribeLogDirs (35) returns the directories that a node is configured with, and its replicas by
directory.

The size of a directory's volume is unknown (-1), because nothing is written there.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import cast

from ...admin.permissions import Permission
from ...cluster.entities import Topic
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...network.serving.kept_rows import Fragments, Joined, KeptRows
from ...process.steps import Steps
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.compiler import encoder
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ..broker.logs import LogBounds, Logs
from ..broker.view import BrokerView

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE,
    AclResourceType.CLUSTER,
    "CLUSTER_AUTHORIZATION_FAILED for the request; before version 3 no directory",
)
VERSIONS_KEPT = 2
"""For so many versions the replicas of each topic are kept encoded."""
ERROR_SINCE = 3
"""The first version with an error for the whole request."""


class KeptReplicas:
    """Encoded answers about all replicas of this node, and the topics in them."""

    def __init__(self) -> None:
        self.directories = KeptRows[Joined]()
        self.topics = Fragments()
        """By version, directory and name."""


def handle(
    view: BrokerView, logs: Logs, kept: KeptReplicas, context: RequestContext, request: DescribeLogDirsRequest
) -> Steps[DescribeLogDirsResponse]:
    if not context.may(DESCRIBE_CLUSTER):
        has_code = context.header.api_version >= ERROR_SINCE
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED if has_code else 0)
    rows = ReplicaRows(view, logs, context.header.api_version)
    directories = yield from rows.everything(kept) if request.topics is None else rows.named(request.topics)
    return DescribeLogDirsResponse(results=cast("list[DescribeLogDirsResult]", directories))


class ReplicaRows:
    """Answers one request from the image at its beginning."""

    def __init__(self, view: BrokerView, logs: Logs, version: int) -> None:
        self._image = view.cache.image
        self._broker_id = view.broker_id
        self._logs = logs
        self._version = version
        self._encode = encoder(DescribeLogDirsTopic, version)

    def everything(self, kept: KeptReplicas) -> Steps[Joined]:
        """Return the directories with all replicas. They are kept until the image changes, and each
        topic until it changes, unless a replica moves or a log changes.
        """
        state = self._logs.state
        known = kept.directories.get(self._image, (self._version, state))
        if known is not None:
            return known
        fragments, paths = kept.topics, self._logs.paths
        fragments.follow(state, VERSIONS_KEPT * len(paths) * len(self._image.topics))
        found: dict[str, list[bytes]] = {path: [] for path in paths}
        for name, topic in self._image.topics.items():
            yield
            for path, rows in found.items():
                row = partial(self._all_replicas, path)
                fragment, count = fragments.of(state, (self._version, path, name), topic, row)
                if count:
                    rows.append(fragment)
        made = _directories(found, self._version)
        kept.directories.keep(self._image, (self._version, state), made, made.size)
        return made

    def _all_replicas(self, path: str, topic: Topic) -> tuple[bytes, int]:
        """Return this node's replicas of a topic in one directory, encoded, and their number."""
        indexes = self._by_directory(topic, range(len(topic.partitions))).get(path, [])
        return self._topic(topic, indexes), len(indexes)

    def named(self, topics: Iterable[DescribableLogDirTopic]) -> Steps[Joined]:
        asked: dict[str, set[int]] = {}
        for named in topics:
            asked.setdefault(named.topic, set()).update(named.partitions)
        found: dict[str, list[bytes]] = {path: [] for path in self._logs.paths}
        for name, partitions in asked.items():
            yield
            topic = self._image.topics.get(name)
            if topic is None:
                continue
            for path, indexes in self._by_directory(topic, sorted(partitions)).items():
                found[path].append(self._topic(topic, indexes))
        return _directories(found, self._version)

    def _by_directory(self, topic: Topic, indexes: Iterable[int]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index in indexes:
            partition = topic.partition(index)
            if partition is not None and self._broker_id in partition.replicas:
                found.setdefault(self._logs.path_of(topic, index), []).append(index)
        return found

    def _topic(self, topic: Topic, indexes: Iterable[int]) -> bytes:
        partitions = [_replica(index, self._logs.log_of(topic, index)) for index in indexes]
        return self._encode(DescribeLogDirsTopic(name=topic.name, partitions=partitions))


def _replica(index: int, log: LogBounds) -> DescribeLogDirsPartition:
    lag = max(0, log.high_watermark - log.end)
    return DescribeLogDirsPartition(partition_index=index, partition_size=log.size, offset_lag=lag)


def _directories(found: Mapping[str, list[bytes]], version: int) -> Joined:
    encode = encoder(DescribeLogDirsResult, version)
    return Joined(
        [
            encode(DescribeLogDirsResult(log_dir=path, topics=cast("list[DescribeLogDirsTopic]", topics)))
            for path, topics in found.items()
        ]
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_CLUSTER,),
)
