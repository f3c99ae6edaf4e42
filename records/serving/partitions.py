"""The partition that a client means by a request, as this node has it: who leads it, and in which
epoch. The checks and their order are those of Kafka (Partition.localLogWithEpochOrThrow).
"""

from ...cluster.entities import Partition, Topic
from ...controller.broker.view import BrokerView
from ...protocol.error_codes import ErrorCode

NO_EPOCH = -1


def code_of(partition: Partition, view: BrokerView, epoch: int, *, from_follower: bool = False) -> ErrorCode:
    """Return why this node does not answer a client for a partition, or NONE. `epoch` is the leader
    epoch that the client knows, -1 if it knows none. `from_follower` tells that any replica may
    answer.
    """
    if epoch != NO_EPOCH and epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > partition.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if partition.leader == view.broker_id or (from_follower and view.broker_id in partition.replicas):
        return ErrorCode.NONE
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def found(topic: Topic | None, index: int) -> tuple[Topic, Partition] | None:
    if topic is None or topic.marked_for_deletion:
        return None
    partition = topic.partition(index)
    return None if partition is None else (topic, partition)
