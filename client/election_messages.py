"""Makes requests that elect leaders, and results of their responses; pure."""

from collections.abc import Sequence

from ..protocol.messages.elect_leaders import ElectionType, ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import Results, TopicPartition, result_of


def election(partitions: Sequence[TopicPartition] | None, *, unclean: bool, timeout_ms: int) -> ElectLeadersRequest:
    topics: dict[str, list[int]] = {}
    for partition in partitions or ():
        topics.setdefault(partition.topic, []).append(partition.partition)
    named = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics.items()]
    return ElectLeadersRequest(
        election_type=ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED,
        topic_partitions=None if partitions is None else named,
        timeout_ms=timeout_ms,
    )


def elected(answer: WireStruct) -> Results[TopicPartition, None]:
    """Return the results by partition; a refused request has its error in each of them."""
    assert isinstance(answer, ElectLeadersResponse)
    return {
        TopicPartition(topic.topic, row.partition_id): result_of(row.error_code, row.error_message, None)
        for topic in answer.replica_election_results
        for row in topic.partition_result
    }


def all_elected(answer: WireStruct) -> Results[TopicPartition, None] | AdminError:
    """Return the results of a request for all partitions, or the error that refused it."""
    assert isinstance(answer, ElectLeadersResponse)
    if answer.error_code and not answer.replica_election_results:
        return AdminError(answer.error_code)
    return elected(answer)
