"""AlterPartition (56): the leader of a partition grows or shrinks its ISR.

Only authenticated brokers may send it. The order of the checks is Kafka's
(KafkaController.processAlterPartition); an accepted change leaves the leader epoch alone.
"""

import msgspec

from ...admin.permissions import CLUSTER_ACTION
from ...admin.spec import Sender
from ...cluster.entities import NO_TOPIC_ID, Partition, Topic
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.leadership import RECOVERED, RECOVERING
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    PartitionData,
    TopicData,
    TopicResult,
)
from ..active import partition_states
from ..active.active_controller import LocalController
from ..active.jobs import ControllerMoved, Draft, StagedElement


async def handle(
    place: LocalController, context: RequestContext, request: AlterPartitionRequest
) -> AlterPartitionResponse:
    return await alter(place, request, context.header.api_version)


async def alter(place: LocalController, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
    """Answer a request of the active controller's own node, which arrives by call instead of by
    network.
    """
    controller = place.active
    if controller is None:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    broker = controller.image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    by_id, old_version = version >= 2, version < 2

    async def plan(draft: Draft) -> list[tuple[TopicResult, StagedElement]]:
        return [_alter_topic(draft, topic, controller.epoch, by_id, old_version) for topic in request.topics]

    try:
        planned = await controller.writer.write(plan, urgent=True)
    except ControllerMoved:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    refused = [(result, element) for result, element in planned if element.refusal is not None]
    for result, element in refused:
        _take_back(result, element)
    if refused:
        controller.states_are_stale([element.topic for _, element in refused if element.topic is not None])
    return AlterPartitionResponse(topics=[result for result, _ in planned])


def _take_back(result: TopicResult, element: StagedElement) -> None:
    """Replace an accepted result by an error if the store refused the write, or if its outcome is
    unknown.
    """
    assert element.refusal is not None
    result.partitions = [
        AlterPartitionResult(
            partition_index=partition.partition_index, error_code=partition.error_code or element.refusal.code
        )
        for partition in result.partitions
    ]


def _alter_topic(
    draft: Draft, data: TopicData, epoch: int, by_id: bool, old_version: bool
) -> tuple[TopicResult, StagedElement]:
    topic = draft.image.topic_by_id(data.topic_id) if by_id else draft.image.topic(data.topic_name)
    results, accepted = [], {}
    for wanted in data.partitions:
        try:
            partition = _judged(draft.image, topic, wanted, by_id, old_version)
        except Refusal as refusal:
            results.append(AlterPartitionResult(partition_index=wanted.partition_index, error_code=refusal.code))
            continue
        assert topic is not None
        if partition is not topic.partitions[wanted.partition_index]:
            accepted[wanted.partition_index] = partition
        results.append(
            AlterPartitionResult(
                partition_index=wanted.partition_index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                isr=list(partition.isr),
                leader_recovery_state=partition.leader_recovery_state,
                partition_epoch=partition.partition_epoch,
            )
        )
    if topic is not None and accepted:
        element = partition_states.stage_states(draft, topic, accepted, epoch)
    else:
        element = draft.decide()  # completed only after the writes that this answer rests on
    return TopicResult(topic_name=data.topic_name, topic_id=data.topic_id, partitions=results), element


def _judged(image: Image, topic: Topic | None, wanted: PartitionData, by_id: bool, old_version: bool) -> Partition:
    """Return the partition with the requested change, or the same object if nothing changes. Raises
    Refusal.
    """
    if topic is None or (by_id and topic.topic_id == NO_TOPIC_ID):
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    now = topic.partition(wanted.partition_index)
    if now is None or not now.has_state or topic.marked_for_deletion:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    isr = tuple(state.broker_id for state in wanted.new_isr_with_epochs) or tuple(wanted.new_isr)
    if wanted.leader_epoch > now.leader_epoch or wanted.partition_epoch > now.partition_epoch:
        raise Refusal(ErrorCode.NOT_CONTROLLER)  # the leader knows a newer epoch, so a newer controller exists
    if wanted.leader_epoch < now.leader_epoch:
        raise Refusal(ErrorCode.FENCED_LEADER_EPOCH)
    if (isr, wanted.leader_recovery_state) == (now.isr, now.leader_recovery_state):
        return now
    if wanted.partition_epoch < now.partition_epoch:
        raise Refusal(ErrorCode.INVALID_UPDATE_VERSION)
    if wanted.leader_recovery_state not in (RECOVERED, RECOVERING):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if wanted.leader_recovery_state == RECOVERING and (len(isr) > 1 or now.leader_recovery_state == RECOVERED):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if not isr or len(set(isr)) != len(isr) or any(replica not in now.replicas for replica in isr):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if any(not image.is_live(replica) for replica in isr):
        raise Refusal(ErrorCode.OPERATION_NOT_ATTEMPTED if old_version else ErrorCode.INELIGIBLE_REPLICA)
    return msgspec.structs.replace(
        now, isr=isr, leader_recovery_state=wanted.leader_recovery_state, partition_epoch=now.partition_epoch + 1
    )


API = ServedApi(
    key=ApiKey.ALTER_PARTITION,
    handler=handle,
    sender=Sender.NODE,
    permissions=(CLUSTER_ACTION,),
)
