"""DescribeLogDirs (35) returns the directories that a node is configured with, and in which of them
its replicas would lie. Replicas have no records here, so each has 0 bytes and no lag.

The size of a directory's volume is unknown (-1), because nothing is written there.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from typing import cast

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.compiler import encoder
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ..metadata.entities import Topic
from ..metadata.image import Image
from ..metadata.kept_rows import Joined
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
    if request.topics is None:
        return _response(await _everything(node, context))
    asked: dict[str, set[int]] = {}
    for named in request.topics:
        asked.setdefault(named.topic, set()).update(named.partitions)
    return _response(await _described(node, context, node.cache.image, asked))


async def _everything(node: Node, context: RequestContext) -> Joined:
    """Return the directories with all replicas. They are kept until the image changes."""
    image, question = node.cache.image, (context.api_version, node.log_dirs.moves)
    kept = node.described_log_dirs.get(image, question)
    if kept is None:
        kept = await _described(node, context, image, None)
        node.described_log_dirs.keep(image, question, kept, kept.size)
    return kept


async def _described(
    node: Node, context: RequestContext, image: Image, asked: Mapping[str, Collection[int]] | None
) -> Joined:
    """Return the encoded directories with those of the asked partitions of which this node has a
    replica.
    """
    encode = encoder(DescribeLogDirsTopic, context.api_version)
    found: dict[str, list[bytes]] = {path: [] for path in node.log_dirs.paths}
    async for topic, indexes in _replicas(node, image, asked):
        rows: dict[str, list[DescribeLogDirsPartition]] = {}
        for index in indexes:
            partition = DescribeLogDirsPartition(partition_index=index)
            rows.setdefault(node.log_dirs.path_of(topic, index), []).append(partition)
        for path, partitions in rows.items():
            found[path].append(encode(DescribeLogDirsTopic(name=topic.name, partitions=partitions)))
    encode_directory = encoder(DescribeLogDirsResult, context.api_version)
    return Joined(
        [
            encode_directory(DescribeLogDirsResult(log_dir=path, topics=cast("list[DescribeLogDirsTopic]", topics)))
            for path, topics in found.items()
        ]
    )


def _response(directories: Joined) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(results=cast("list[DescribeLogDirsResult]", directories))


async def _replicas(
    node: Node, image: Image, asked: Mapping[str, Collection[int]] | None
) -> AsyncIterator[tuple[Topic, list[int]]]:
    """Yield the partitions, by topic, of which this node has a replica and which are asked for."""
    time_slice = TimeSlice()
    for name in list(image.topics) if asked is None else asked:
        await time_slice.pause()
        topic = image.topics.get(name)
        if topic is None:
            continue
        indexes = range(len(topic.partitions)) if asked is None else sorted(asked[name])
        held = [
            index
            for index in indexes
            if (partition := topic.partition(index)) is not None and node.broker_id in partition.replicas
        ]
        if held:
            yield topic, held


API = Spec(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_CLUSTER,),
)
