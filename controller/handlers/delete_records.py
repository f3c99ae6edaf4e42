"""DeleteRecords (21) deletes the records of partitions before an offset.

Clients send it to the leaders of the partitions. The leader has the controller decide, under the
caller's name, which judges and records the deletion, and then deletes. The order of the checks is
Kafka's (ReplicaManager.deleteRecordsOnLocalLog).
"""

from collections.abc import Callable, Mapping

import msgspec

from ...admin import questions
from ...admin.changes import Change, Outcome
from ...admin.delete_records import DELETE_TOPIC, KNOWS_POLICIES, NO_WATERMARK, SPEC
from ...admin.requested_changes import topics_with_deleted_records
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...network.serving.api import Handler, served
from ...network.serving.context import NO_NAMES, RequestContext
from ...policies.configs.canonical import canonical_configs
from ...policies.configs.effective import EffectiveConfigs
from ...protocol.dry_runs import is_dry_run
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from ..active.jobs import Draft
from ..broker.logs import Logs
from .changes import carry_out
from .controller_port import ControllerPort
from .parts import PartsOfTopics
from .planning import answered_code, default_configs, judge_change

HIGH_WATERMARK = -1
"""The offset that stands for the end of a partition."""
CLEANUP_POLICY, DELETE = "cleanup.policy", "delete"

Partition = tuple[str, int]
"""A topic's name and the index of a partition."""


async def receive(
    port: ControllerPort, logs: Logs, context: RequestContext, request: DeleteRecordsRequest, ask_controller: Handler
) -> DeleteRecordsResponse:
    """Answer a request of a client at the node that received it: partitions that it does not lead
    itself, and the others as the controller decides.
    """
    if port.cache.is_behind:
        await port.cache.wait_expected_update()
    wanted = {
        (topic.resource, index): offset
        for topic in topics_with_deleted_records(request)  # of a partition that is named twice the last offset counts
        for index, offset in (topic.delete_records_offsets or {}).items()
    }
    image = port.cache.image
    elsewhere = {
        (name, index): code
        for name, index in wanted
        if context.may(DELETE_TOPIC, name) and (code := _refused_here(port, image, name, index)) is not None
    }
    left = {partition: offset for partition, offset in wanted.items() if partition not in elsewhere}
    codes: dict[Partition, int] = dict(elsewhere)
    throttle_time_ms = 0
    if left:
        asked = msgspec.structs.replace(_request(left, request.timeout_ms), unknown_tags=request.unknown_tags)
        response = await ask_controller(context, asked)
        throttle_time_ms = response.throttle_time_ms
        codes |= {
            (topic.name, row.partition_index): row.error_code for topic in response.topics for row in topic.partitions
        }
    # A controller that does not know of dry runs answers nothing, and deletes nothing.
    codes = {each: codes.get(each, ErrorCode.UNSUPPORTED_VERSION) for each in wanted}
    allowed = {each: wanted[each] for each, code in codes.items() if not code}
    return _response(codes, throttle_time_ms, _delete(logs, image, allowed, is_dry_run=is_dry_run(request)))


def _delete(logs: Logs, image: Image, wanted: Mapping[Partition, int], *, is_dry_run: bool) -> Mapping[Partition, int]:
    """Delete the records of partitions before these offsets, and return the low watermarks."""
    found: dict[Partition, int] = {}
    for (name, index), offset in wanted.items():
        topic = image.topic(name)
        if topic is not None and topic.partition(index) is not None:
            log = logs.log_of(topic, index)
            found[name, index] = log.start if is_dry_run else logs.delete_records(topic, index, offset)
    return found


def _refused_here(port: ControllerPort, image: Image, name: str, index: int) -> ErrorCode | None:
    """Return why another node has to be asked; None if this node leads the partition, or if the
    controller refuses it in any case, because the topic is internal.
    """
    topic = image.topic(name)
    partition = None if topic is None else topic.partition(index)
    if topic is None or partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.is_internal or partition.leader == port.broker_id:
        return None
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


async def handle(
    port: ControllerPort, logs: Logs, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Answer a request at the active controller, whichever node leads the partitions. The leader
    does not read the low watermarks of this answer.
    """
    planner = RecordsPlanner(port, logs, context, request)
    planner.denied = await context.denied_in_advance(DELETE_TOPIC, [each.resource for each in planner.wanted])
    outcomes = await carry_out(
        port,
        context,
        request,
        planner.parts,
        timeout_ms=request.timeout_ms,
        validate_only=planner.validate_only,
    )
    codes: dict[Partition, int] = {}
    for outcome in outcomes:
        code = answered_code(context, outcome, since=KNOWS_POLICIES)
        codes |= dict.fromkeys(
            ((outcome.change.resource, index) for index in outcome.change.delete_records_offsets or ()), code
        )
    return _response(codes, 0, {})


class RecordsPlanner:
    """Judges the topics of one request. Those partitions of a topic that are refused for the same
    reason are one change, and those that the policy judges another.
    """

    def __init__(
        self, port: ControllerPort, logs: Logs, context: RequestContext, request: DeleteRecordsRequest
    ) -> None:
        self._port = port
        self._logs = logs
        self._context = context
        self.validate_only = is_dry_run(request)
        self.wanted = [each for each in topics_with_deleted_records(request) if each.delete_records_offsets]
        self.parts = PartsOfTopics(self.wanted, self._plan_topic)
        self.denied = NO_NAMES
        """The topics of a long request that the client might not delete records of when it
        arrived.
        """

    async def _plan_topic(self, draft: Draft, change: Change) -> list[Outcome]:
        name, offsets = change.resource, change.delete_records_offsets or {}
        refused: dict[ErrorCode, dict[int, int]] = {}
        valid: dict[int, int] = {}
        check = self._check_of(draft.image, name)
        for index, offset in offsets.items():
            code = check(index, offset)
            (valid if code is None else refused.setdefault(code, {}))[index] = offset
        outcomes = [
            Outcome(Change(name, delete_records_offsets=rows), refusal=Refusal(code)) for code, rows in refused.items()
        ]
        if valid:
            outcome = Outcome(Change(name, delete_records_offsets=valid), is_done=not self.validate_only)
            try:
                await judge_change(
                    self._port,
                    self._context,
                    draft,
                    outcome,
                    lambda: questions.asked_by(self._context, validate_only=self.validate_only).delete_records(
                        name, valid
                    ),
                )
            except Refusal as refusal:
                outcome.refusal = refusal
            outcomes.insert(0, outcome)
        return outcomes

    def _check_of(self, image: Image, name: str) -> Callable[[int, int], ErrorCode | None]:
        """Return the check of one partition and offset of a topic, which returns the error, if
        any.
        """
        topic = image.topic(name)
        refusal = self._refusal(topic, name)
        if topic is None or refusal is not None:
            return lambda _index, _offset: refusal
        partitions, logs = len(topic.partitions), self._logs
        own = EffectiveConfigs(canonical_configs(topic.configs), default_configs(self._port, image))
        deletes = DELETE in own[CLEANUP_POLICY].split(",")

        def check(index: int, offset: int) -> ErrorCode | None:
            if not 0 <= index < partitions:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not deletes:
                return ErrorCode.POLICY_VIOLATION
            is_there = offset == HIGH_WATERMARK or 0 <= offset <= logs.log_of(topic, index).high_watermark
            return None if is_there else ErrorCode.OFFSET_OUT_OF_RANGE

        return check

    def _refusal(self, topic: Topic | None, name: str) -> ErrorCode | None:
        if name in self.denied or not self._context.may(DELETE_TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None or topic.marked_for_deletion:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.INVALID_TOPIC_EXCEPTION if topic.is_internal else None


# ------------------------------------------------------------------ messages


def _request(wanted: Mapping[Partition, int], timeout_ms: int) -> DeleteRecordsRequest:
    topics: dict[str, list[DeleteRecordsPartition]] = {}
    for (name, index), offset in wanted.items():
        topics.setdefault(name, []).append(DeleteRecordsPartition(partition_index=index, offset=offset))
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name, partitions=rows) for name, rows in topics.items()], timeout_ms=timeout_ms
    )


def _response(
    codes: Mapping[Partition, int], throttle_time_ms: int, low_watermarks: Mapping[Partition, int]
) -> DeleteRecordsResponse:
    topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for (name, index), code in codes.items():
        low_watermark = NO_WATERMARK if code else low_watermarks.get((name, index), 0)
        row = DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=code)
        topics.setdefault(name, []).append(row)
    return DeleteRecordsResponse(
        throttle_time_ms=throttle_time_ms,
        topics=[DeleteRecordsTopicResult(name=name, partitions=rows) for name, rows in topics.items()],
    )


API = served(SPEC, handle, receiver=receive)
