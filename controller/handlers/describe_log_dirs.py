"""DescribeLogDirs (35) returns the directories that a node is configured with, and in which of them
its replicas would lie. Replicas have no records here, so each has 0 bytes and no lag.

The size of a directory's volume is unknown (-1), because nothing is written there.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import cast

from ...admin.permissions import Permission
from ...cluster.entities import Topic
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...network.serving.kept_rows import Joined
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
from ..broker.log_dirs import LogDirs
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


def handle(
    view: BrokerView, log_dirs: LogDirs, context: RequestContext, request: DescribeLogDirsRequest
) -> Steps[DescribeLogDirsResponse]:
    if not context.may(DESCRIBE_CLUSTER):
        has_code = context.api_version >= ERROR_SINCE
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED if has_code else 0)
    if request.topics is None:
        directories = yield from _everything(view, log_dirs, context.api_version)
    else:
        directories = yield from _asked(view, log_dirs, context.api_version, request.topics)
    return DescribeLogDirsResponse(results=cast("list[DescribeLogDirsResult]", directories))


def _everything(view: BrokerView, log_dirs: LogDirs, version: int) -> Steps[Joined]:
    """Return the directories with all replicas. They are kept until the image changes, and each
    topic until it changes.
    """
    image, moves, paths = view.cache.image, log_dirs.moves, log_dirs.paths
    kept = view.encoded.log_dirs.get(image, (version, moves))
    if kept is not None:
        return kept
    fragments = view.encoded.replicas
    fragments.follow(moves, VERSIONS_KEPT * len(paths) * len(image.topics))
    found: dict[str, list[bytes]] = {path: [] for path in paths}
    for name, topic in image.topics.items():
        yield
        for path, rows in found.items():
            row = partial(_all_replicas, view, log_dirs, version, path)
            fragment, count = fragments.of(moves, (version, path, name), topic, row)
            if count:
                rows.append(fragment)
    made = _directories(found, version)
    view.encoded.log_dirs.keep(image, (version, moves), made, made.size)
    return made


def _all_replicas(view: BrokerView, log_dirs: LogDirs, version: int, path: str, topic: Topic) -> tuple[bytes, int]:
    """Return this node's replicas of a topic in one directory, encoded, and their number."""
    indexes = _by_directory(view, log_dirs, topic, range(len(topic.partitions))).get(path, [])
    return _topic(version, topic, indexes), len(indexes)


def _asked(
    view: BrokerView, log_dirs: LogDirs, version: int, topics: Iterable[DescribableLogDirTopic]
) -> Steps[Joined]:
    """Return the directories with this node's replicas of the named partitions."""
    image = view.cache.image
    asked: dict[str, set[int]] = {}
    for named in topics:
        asked.setdefault(named.topic, set()).update(named.partitions)
    found: dict[str, list[bytes]] = {path: [] for path in log_dirs.paths}
    for name, partitions in asked.items():
        yield
        topic = image.topics.get(name)
        if topic is None:
            continue
        for path, indexes in _by_directory(view, log_dirs, topic, sorted(partitions)).items():
            found[path].append(_topic(version, topic, indexes))
    return _directories(found, version)


def _by_directory(view: BrokerView, log_dirs: LogDirs, topic: Topic, indexes: Iterable[int]) -> dict[str, list[int]]:
    """Return those of the partitions of which this node has a replica, by directory."""
    found: dict[str, list[int]] = {}
    for index in indexes:
        partition = topic.partition(index)
        if partition is not None and view.broker_id in partition.replicas:
            found.setdefault(log_dirs.path_of(topic, index), []).append(index)
    return found


def _topic(version: int, topic: Topic, indexes: Iterable[int]) -> bytes:
    partitions = [DescribeLogDirsPartition(partition_index=index) for index in indexes]
    return encoder(DescribeLogDirsTopic, version)(DescribeLogDirsTopic(name=topic.name, partitions=partitions))


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
