"""LeaderAndIsr (4) tells this node which partitions it leads and follows.

The node has no logs, so it has nothing to start and responds without an error at once.
"""

from collections.abc import Awaitable
from functools import partial

from ...admin.permissions import CLUSTER_ACTION
from ...admin.spec import Sender
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from ..broker.view import BrokerView
from .control import ElectedController


def handle(
    view: BrokerView, elected: ElectedController, context: RequestContext, request: LeaderAndIsrRequest
) -> LeaderAndIsrResponse | Awaitable[LeaderAndIsrResponse]:
    return elected.obey(
        request, partial(_followed, view, context, request), lambda error: LeaderAndIsrResponse(error_code=error)
    )


def _followed(view: BrokerView, context: RequestContext, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    if context.header.api_version >= 5:
        return LeaderAndIsrResponse(
            topics=[
                LeaderAndIsrTopicError(
                    topic_id=topic.topic_id,
                    partition_errors=[
                        LeaderAndIsrPartitionError(
                            partition_index=partition.partition_index, error_code=_agree(view, partition.replicas)
                        )
                        for partition in topic.partition_states
                    ],
                )
                for topic in request.topic_states
            ]
        )
    ungrouped = [(state.topic_name, state) for state in request.ungrouped_partition_states]
    grouped = [(topic.topic_name, state) for topic in request.topic_states for state in topic.partition_states]
    return LeaderAndIsrResponse(
        partition_errors=[
            LeaderAndIsrPartitionError(
                topic_name=name, partition_index=state.partition_index, error_code=_agree(view, state.replicas)
            )
            for name, state in ungrouped + grouped
        ]
    )


def _agree(view: BrokerView, replicas: list[int]) -> ErrorCode:
    return ErrorCode.NONE if view.broker_id in replicas else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


API = ServedApi(
    key=ApiKey.LEADER_AND_ISR,
    handler=handle,
    sender=Sender.NODE,
    permissions=(CLUSTER_ACTION,),
)
