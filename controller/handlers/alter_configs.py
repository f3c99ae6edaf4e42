"""AlterConfigs (33) replaces all configs of a resource: configs that the request leaves out return
to their defaults.
"""

from collections.abc import Sequence

from ...admin.alter_configs import SPEC
from ...admin.changes import Outcome
from ...admin.configs.alterations import check_replacement, replace_broker, replace_topic
from ...admin.requested_changes import configured_resource
from ...network.serving.api import Handler, served
from ...network.serving.context import RequestContext
from ...process.time_slices import in_time_slices
from ...protocol.header import DecidedElement
from ...protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from .config_changes import Alteration, AlterationPlanner, alter, refused_here
from .controller_port import ControllerPort
from .own_changes import OwnConfigs, refused_of_own


async def receive(
    port: ControllerPort,
    own: OwnConfigs,
    context: RequestContext,
    request: AlterConfigsRequest,
    ask_controller: Handler,
) -> AlterConfigsResponse:
    refused = await refused_here(
        port, context, request.resources, lambda resource: check_replacement(_entries(resource))
    )
    refused |= await refused_of_own(port, context, request.resources, _alteration, own, refused=refused)
    outcomes = await alter(port, context, request, refused, ask_controller, overrides=own.overrides)
    return _response(request.resources, outcomes)


async def handle(
    port: ControllerPort, _own: OwnConfigs, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Answer a request at the active controller."""
    alterations = await in_time_slices(_alteration(port, resource) for resource in request.resources)
    outcomes = await AlterationPlanner(port, context, request, alterations).carry_out()
    return _response([*context.origin.decided, *request.resources], outcomes)


def _response(
    resources: Sequence[AlterConfigsResource | DecidedElement], outcomes: Sequence[Outcome]
) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=outcome.code,
                error_message=outcome.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, outcome in zip(resources, outcomes, strict=True)
        ]
    )


def _alteration(port: ControllerPort, resource: AlterConfigsResource) -> Alteration:
    entries, config = _entries(resource), port.configs.current
    per_broker = resource.resource_name != ""
    return Alteration(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        requested=configured_resource(resource),
        topic_configs=lambda topic: replace_topic(topic.name, entries, config),
        broker_configs=lambda _before: replace_broker(entries, config, per_broker=per_broker),
    )


def _entries(resource: AlterConfigsResource) -> list[tuple[str, str | None]]:
    return [(config.name, config.value) for config in resource.configs]


API = served(SPEC, handle, receiver=receive)
