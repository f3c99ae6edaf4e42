"""Who handles which API: the table, and what a handler is.

Rule: an API that is in this table is advertised, and one that is not closes the connection. A read
returns its answer at once and costs no task; what has to wait returns an awaitable. What tells of
topics waits for what clients of this node know already (K4-6).
"""

from collections.abc import Awaitable, Mapping
from functools import wraps
from inspect import isawaitable
from typing import Any

from ...protocol.api_keys import ApiKey
from ..requests.context import Handler, RequestContext
from . import (
    alter_configs,
    alter_partition,
    api_versions,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_topic_partitions,
    envelope,
    find_coordinator,
    incremental_alter_configs,
    leader_and_isr,
    list_groups,
    metadata,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    update_metadata,
)

Request = Any
Response = Any


def up_to_date(handler: Handler) -> Handler:
    """Make a handler that answers from an image that holds all that clients of this node know of
    (K4-6).
    """

    async def handle_later(node: Any, context: RequestContext, request: Request) -> Response:
        await node.cache.wait_expected_update()
        answer = handler(node, context, request)
        return await answer if isawaitable(answer) else answer

    @wraps(handler)
    def handle(node: Any, context: RequestContext, request: Request) -> Response | Awaitable[Response]:
        return handle_later(node, context, request) if node.cache.is_behind else handler(node, context, request)

    return handle


HANDLERS: Mapping[ApiKey, Handler] = {
    ApiKey.METADATA: up_to_date(metadata.handle),
    ApiKey.LEADER_AND_ISR: leader_and_isr.handle,
    ApiKey.STOP_REPLICA: stop_replica.handle,
    ApiKey.UPDATE_METADATA: update_metadata.handle,
    ApiKey.CONTROLLED_SHUTDOWN: controlled_shutdown.handle,
    ApiKey.FIND_COORDINATOR: up_to_date(find_coordinator.handle),
    ApiKey.DESCRIBE_GROUPS: describe_groups.handle,
    ApiKey.LIST_GROUPS: list_groups.handle,
    ApiKey.SASL_HANDSHAKE: sasl_handshake.handle,
    ApiKey.API_VERSIONS: api_versions.handle,
    ApiKey.CREATE_TOPICS: create_topics.handle,
    ApiKey.DELETE_TOPICS: delete_topics.handle,
    ApiKey.DESCRIBE_CONFIGS: up_to_date(describe_configs.handle),
    ApiKey.ALTER_CONFIGS: alter_configs.handle,
    ApiKey.SASL_AUTHENTICATE: sasl_authenticate.handle,
    ApiKey.CREATE_PARTITIONS: create_partitions.handle,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs.handle,
    ApiKey.ALTER_PARTITION: alter_partition.handle,
    ApiKey.ENVELOPE: envelope.handle,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: up_to_date(describe_topic_partitions.handle),
}
