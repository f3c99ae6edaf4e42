"""StopReplica (5) tells this node to stop following partitions.

The node has no logs, so it has nothing to delete and responds without an error at once.
"""

from collections.abc import Awaitable
from functools import partial

from ...admin.permissions import CLUSTER_ACTION
from ...admin.spec import Sender
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.messages.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from .control import ElectedController


def handle(
    elected: ElectedController, _context: RequestContext, request: StopReplicaRequest
) -> StopReplicaResponse | Awaitable[StopReplicaResponse]:
    return elected.obey(request, partial(_stopped, request), lambda error: StopReplicaResponse(error_code=error))


def _stopped(request: StopReplicaRequest) -> StopReplicaResponse:
    named = [(partition.topic_name, partition.partition_index) for partition in request.ungrouped_partitions]
    named += [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    named += [
        (topic.topic_name, state.partition_index) for topic in request.topic_states for state in topic.partition_states
    ]
    return StopReplicaResponse(
        partition_errors=[StopReplicaPartitionError(topic_name=name, partition_index=index) for name, index in named]
    )


API = ServedApi(
    key=ApiKey.STOP_REPLICA,
    handler=handle,
    sender=Sender.NODE,
    permissions=(CLUSTER_ACTION,),
)
