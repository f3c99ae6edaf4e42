"""DescribeLogDirs (35) returns the directories that a node is configured with, and in which of them
its replicas would lie. Replicas have no records here, so each has 0 bytes and no lag.

The size of a directory's volume is unknown (-1), because nothing is written there.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from zlib import crc32

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ..requests.context import RequestContext
from ..requests.permissions import Permission
from ..requests.spec import Spec
from ..requests.time_slices import TimeSlice
from .node import Node

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE,
    AclResourceType.CLUSTER,
    "CLUSTER_AUTHORIZATION_FAILED for the request; before version 3 no directory",
)
ERROR_SINCE = 3
"""The first version with an error for the whole request."""


async def handle(node: Node, context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not context.may(DESCRIBE_CLUSTER):
        has_code = context.api_version >= ERROR_SINCE
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED if has_code else 0)
    asked: dict[str, set[int]] | None = None
    if request.topics is not None:
        asked = {}
        for topic in request.topics:
            asked.setdefault(topic.topic, set()).update(topic.partitions)
    log_dirs = _log_dirs(node)
    found: dict[str, list[DescribeLogDirsTopic]] = {log_dir: [] for log_dir in log_dirs}
    async for name, indexes in _replicas(node, asked):
        rows: dict[str, list[DescribeLogDirsPartition]] = {}
        for index in indexes:
            log_dir = log_dirs[crc32(f"{name}-{index}".encode()) % len(log_dirs)]
            rows.setdefault(log_dir, []).append(DescribeLogDirsPartition(partition_index=index))
        for log_dir, partitions in rows.items():
            found[log_dir].append(DescribeLogDirsTopic(name=name, partitions=partitions))
    results = [DescribeLogDirsResult(log_dir=log_dir, topics=topics) for log_dir, topics in found.items()]
    return DescribeLogDirsResponse(results=results)


def _log_dirs(node: Node) -> list[str]:
    """Return the configured directories, without repetitions."""
    text = node.config.string("log.dirs") or node.config.string("log.dir")
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


async def _replicas(node: Node, asked: Mapping[str, Collection[int]] | None) -> AsyncIterator[tuple[str, list[int]]]:
    """Yield the partitions, by topic, of which this node has a replica and which are asked for."""
    image, time_slice = node.cache.image, TimeSlice()
    for name in list(image.topics) if asked is None else asked:
        await time_slice.pause()
        topic = image.topics.get(name)
        if topic is None:
            continue
        indexes = range(len(topic.partitions)) if asked is None else sorted(asked[name])
        hosted = [
            index
            for index in indexes
            if 0 <= index < len(topic.partitions) and node.broker_id in topic.partitions[index].replicas
        ]
        if hosted:
            yield name, hosted


API = Spec(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_CLUSTER,),
)
