"""OffsetCommit (8) sets offsets of a group, as administrators do who reset a group.

The controller keeps them; the node that was asked must be the group's coordinator, as in Kafka. The
checks and their order are Kafka's. A group has no members, so a commit in the name of one is
refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec

from ...admin.groups import READ_GROUP, READ_TOPIC, requested
from ...admin.offset_commit import SPEC, operations_kept, operations_of, with_offsets
from ...clock import now_ms
from ...cluster.errors import Refusal
from ...cluster.groups import CommittedOffset
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.time_slices import TimeSlice
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.offset_commit import (
    CommittedOffsetResult,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResult,
)
from .controller_port import ControllerPort
from .entity_changes import change_entity, refusing
from .groups import has_partition, reached_coordinator


class _Checked(msgspec.Struct):
    """The offsets of a request, divided into those that may be kept and those that are refused."""

    errors: dict[str, list[tuple[int, ErrorCode]]] = {}
    """The partitions that are refused wherever the request names them, by topic."""
    offsets: dict[str, dict[int, CommittedOffset | ErrorCode]] = {}
    """The offsets that may be kept, or why not, by topic. The last one of a partition counts."""
    first: ErrorCode = ErrorCode.NONE
    """The first of the codes."""

    def refuse(self, topic: str, partitions: Iterable[int], code: ErrorCode) -> None:
        self.errors.setdefault(topic, []).extend((index, code) for index in partitions)
        self.first = self.first or code

    def take(self, topic: str, partition: int, offset: CommittedOffset | ErrorCode) -> None:
        self.offsets.setdefault(topic, {})[partition] = offset
        if isinstance(offset, ErrorCode):
            self.first = self.first or offset

    def refuse_all(self, code: ErrorCode) -> None:
        for offsets in self.offsets.values():
            offsets.update({index: code for index, each in offsets.items() if isinstance(each, CommittedOffset)})

    @property
    def kept(self) -> dict[str, dict[int, CommittedOffset]]:
        found = {
            name: {index: each for index, each in offsets.items() if isinstance(each, CommittedOffset)}
            for name, offsets in self.offsets.items()
        }
        return {name: offsets for name, offsets in found.items() if offsets}


async def handle(port: ControllerPort, context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Answer a request at the active controller."""
    topics = port.controller.serving().image.topics
    checked = await _checked(port, context, request)
    kept = checked.kept
    if kept and not reached_coordinator(port, context, request.group_id):
        checked.refuse_all(ErrorCode.NOT_COORDINATOR)
    elif kept or checked.first:
        plan, operations = refusing(Refusal(checked.first)), operations_of(request)
        if kept:
            plan = partial(
                with_offsets,
                request=request,
                kept=kept,
                topics=topics,
                owner=context.requester.principal,
                is_operator=context.is_operator,
            )
            operations = operations_kept(kept)
        outcome = await change_entity(port, context, request, requested(request.group_id, operations), plan)
        if outcome.refusal is not None:
            checked.refuse_all(outcome.code)
    if checked.first == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return _refused(request)
    return _response(checked)


async def _checked(port: ControllerPort, context: RequestContext, request: OffsetCommitRequest) -> _Checked:
    checked, time_slice = _Checked(), TimeSlice()
    may_group = context.may(READ_GROUP, request.group_id)
    denied = context.without(READ_TOPIC, [topic.name for topic in request.topics]) if may_group else frozenset()
    topics, now = port.controller.serving().image.topics, now_ms()
    longest = port.configs.static.integer("offset.metadata.max.bytes")
    for topic in request.topics:
        await time_slice.pause()
        indexes = [each.partition_index for each in topic.partitions]
        if not may_group:
            checked.refuse(topic.name, indexes, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        elif topic.name in denied:
            checked.refuse(topic.name, indexes, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            for each in topic.partitions:
                if not has_partition(topics, topic.name, each.partition_index):
                    checked.refuse(topic.name, [each.partition_index], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                elif len(each.committed_metadata or "") > longest:
                    checked.take(topic.name, each.partition_index, ErrorCode.OFFSET_METADATA_TOO_LARGE)
                else:
                    checked.take(topic.name, each.partition_index, _offset(each, now))
    return checked


def _offset(asked: OffsetCommitPartition, now: int) -> CommittedOffset:
    return CommittedOffset(asked.committed_offset, asked.committed_leader_epoch, asked.committed_metadata or "", now)


def _refused(request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Return the answer to a caller who may not use the group: each row of the request, refused."""
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    return OffsetCommitResponse(
        topics=[
            OffsetCommitTopicResult(
                name=topic.name,
                partitions=[
                    CommittedOffsetResult(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _response(checked: _Checked) -> OffsetCommitResponse:
    """Return the answer, in which a topic has one row. What was refused comes first, among topics
    and among the partitions of one.
    """
    names = dict.fromkeys([*checked.errors, *checked.offsets])
    return OffsetCommitResponse(
        topics=[
            OffsetCommitTopicResult(
                name=name,
                partitions=[
                    CommittedOffsetResult(partition_index=index, error_code=code)
                    for index, code in [*checked.errors.get(name, ()), *_codes(checked.offsets.get(name, {}))]
                ],
            )
            for name in names
        ]
    )


def _codes(offsets: Mapping[int, CommittedOffset | ErrorCode]) -> Iterator[tuple[int, ErrorCode]]:
    for index, each in offsets.items():
        yield index, each if isinstance(each, ErrorCode) else ErrorCode.NONE


API = served(SPEC, handle)
