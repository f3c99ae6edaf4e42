"""AlterReplicaLogDirs (34) moves replicas of the node that is asked to other directories of it,
where DescribeLogDirs shows them. A move is done at once.

The node checks what only it knows, its directories, and has the controller decide about the rest,
under the caller's name, so that moves are judged and recorded like all changes.
"""

from collections.abc import Mapping

from ...admin.alter_replica_log_dirs import (
    ALTER_CLUSTER,
    SPEC,
    Partition,
    Row,
    moved_replicas,
    wanted_directories,
)
from ...admin.changes import Change, Outcome
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...network.serving.api import Handler, served
from ...network.serving.context import RequestContext
from ...process.time_slices import TimeSlice
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)
from ..active.jobs import Draft
from ..broker.logs import Logs
from .changes import carry_out
from .controller_port import ControllerPort
from .parts import Parts, one_by_one
from .planning import judge_admin, judges_api

LONGEST_NAME = 215
"""The most characters of a topic's name, a hyphen and a partition's number together. While Kafka
moves a replica, its folder has 40 more, and a folder's name has at most 255.
"""


async def receive(
    port: ControllerPort,
    logs: Logs,
    context: RequestContext,
    request: AlterReplicaLogDirsRequest,
    ask_controller: Handler,
) -> AlterReplicaLogDirsResponse:
    """Answer a request at the node that received it, and carry out what the controller allows."""
    if port.cache.is_behind:
        await port.cache.wait_expected_update()
    wanted = wanted_directories(request)
    may_alter = context.may(ALTER_CLUSTER, logs_denial=False)  # the controller logs it
    codes: dict[Partition, int] = {}
    time_slice = TimeSlice()
    for partition, path in wanted.items():
        code = _refused_here(port, logs, path, *partition) if may_alter else None
        if code is not None:
            codes[partition] = code
        await time_slice.pause()
    left = {partition: path for partition, path in wanted.items() if partition not in codes}
    throttle_time_ms = 0
    if left:
        response = await ask_controller(context, _request(left))
        throttle_time_ms = response.throttle_time_ms
        for topic in response.results:
            for row in topic.partitions:
                codes[topic.topic_name, row.partition_index] = row.error_code
        for (name, index), path in left.items():
            if codes.get((name, index)) == ErrorCode.NONE:
                codes[name, index] = _move(port, logs, path, name, index)
            await time_slice.pause()
    logs.forget_all_but(port.cache.image)
    return _response({partition: codes[partition] for partition in wanted}, throttle_time_ms)


def _refused_here(port: ControllerPort, logs: Logs, path: str, name: str, index: int) -> ErrorCode | None:
    """Return why a replica cannot move, with the checks in Kafka's order
    (ReplicaManager.alterReplicaLogDirs); None if the controller has to decide.
    """
    if len(f"{name}-{index}".encode("utf-16-le", "surrogatepass")) // 2 > LONGEST_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in logs.paths:
        return ErrorCode.LOG_DIR_NOT_FOUND
    topic = port.cache.image.topics.get(name)
    if topic is None or topic.partition(index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def _move(port: ControllerPort, logs: Logs, path: str, name: str, index: int) -> ErrorCode:
    """Move a replica.

    A replica that this node does not hold yet will be made in the directory: a tool that reassigns
    partitions asks for that first, and again until the replica is there.
    """
    topic = port.cache.image.topics.get(name)
    partition = None if topic is None else topic.partition(index)
    if topic is None or partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    logs.move(path, topic, index)
    return ErrorCode.NONE if port.broker_id in partition.replicas else ErrorCode.REPLICA_NOT_AVAILABLE


async def handle(
    port: ControllerPort, _logs: Logs, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Decide at the active controller what the receiving node may do."""
    planner = MovesPlanner(port, context, request)
    outcomes = await carry_out(
        port,
        context,
        request,
        Parts(planner.requested, lambda change: change, one_by_one(planner.requested, planner.plan)),
        timeout_ms=0,
    )
    codes = {outcome.change.resource: outcome.code for outcome in outcomes}
    return _response({(name, index): codes[name] for name, index in wanted_directories(request)}, 0)


class MovesPlanner:
    """Judges the topics of one request. Nothing of what it asks for is kept in the store."""

    def __init__(self, port: ControllerPort, context: RequestContext, request: AlterReplicaLogDirsRequest) -> None:
        self._port = port
        self._context = context
        self.requested = list(moved_replicas(request))

    async def plan(self, draft: Draft, wanted: Change) -> Outcome:
        refusal = self._refusal(draft.image, wanted.resource)
        outcome = Outcome(wanted, is_done=refusal is None, refusal=refusal)
        try:
            if outcome.refusal is None and judges_api(self._port, self._context):
                await judge_admin(self._port, self._context, draft, outcome)
        except Refusal as refusal:
            outcome.refusal, outcome.is_done = refusal, False
        return outcome

    def _refusal(self, image: Image, name: str) -> Refusal | None:
        if not self._context.may(ALTER_CLUSTER):
            return Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if image.topic(name) is None else None


# ------------------------------------------------------------------ messages


def _request(wanted: Mapping[Partition, str]) -> AlterReplicaLogDirsRequest:
    dirs: dict[str, dict[str, list[int]]] = {}
    for (name, index), path in wanted.items():
        dirs.setdefault(path, {}).setdefault(name, []).append(index)
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=name, partitions=partitions) for name, partitions in topics.items()
                ],
            )
            for path, topics in dirs.items()
        ]
    )


def _response(codes: Mapping[Partition, int], throttle_time_ms: int) -> AlterReplicaLogDirsResponse:
    rows: dict[str, list[Row]] = {}
    for (name, index), code in codes.items():
        rows.setdefault(name, []).append(Row(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=throttle_time_ms,
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions) for name, partitions in rows.items()
        ],
    )


API = served(SPEC, handle, receiver=receive)
