"""AlterConfigs (33): the whole set of a resource's configs at once; what is not named goes back to its default."""

from typing import TYPE_CHECKING

import msgspec

from ...protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ..config.alterations import check_replacement, replace_broker, replace_topic
from ..context import RequestContext
from .config_changes import Alteration, Planner, at_controller, judged_here

if TYPE_CHECKING:
    from ..node import Node


async def handle(node: "Node", context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    if context.forwarded:
        return await decide(node, context, request)
    refused = judged_here(node, request.resources, lambda resource: check_replacement(_entries(resource)))
    node.decisions.add(node, context, list(refused.values()), validate_only=request.validate_only)
    rest = [resource for index, resource in enumerate(request.resources) if index not in refused]
    answered = (
        await at_controller(node, context, msgspec.structs.replace(request, resources=rest), decide) if rest else {}
    )
    rows = [
        (resource, refused.get(index) or answered[resource.resource_type, resource.resource_name])
        for index, resource in enumerate(request.resources)
    ]
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=change.code,
                error_message=change.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, change in rows
        ]
    )


async def decide(node: "Node", context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """At the controller."""
    alterations = [_alteration(node, resource) for resource in request.resources]
    changes = await Planner(node, context, alterations, validate_only=request.validate_only).carry_out()
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=change.code,
                error_message=change.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, change in zip(request.resources, changes, strict=True)
        ]
    )


def _alteration(node: "Node", resource: AlterConfigsResource) -> Alteration:
    entries, config = _entries(resource), node.dynamic_configs.current
    per_broker = resource.resource_name != ""
    return Alteration(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        topic_configs=lambda topic: replace_topic(topic.name, entries, config),
        broker_configs=lambda _before: replace_broker(entries, config, per_broker=per_broker),
        operations=dict(entries),
    )


def _entries(resource: AlterConfigsResource) -> list[tuple[str, str | None]]:
    return [(config.name, config.value) for config in resource.configs]
