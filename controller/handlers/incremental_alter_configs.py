"""IncrementalAlterConfigs (44) sets, deletes, appends to and subtracts from single configs of a
resource.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import trio

from ...admin.changes import Change, Outcome, kind_and_name
from ...admin.config_permissions import ALTER_CONFIGS_OF_CLUSTER
from ...admin.configs.alterations import (
    IncrementalChange,
    alter_broker,
    alter_topic,
    check_incremental,
    check_operations,
)
from ...admin.incremental_alter_configs import SPEC
from ...admin.requested_changes import configured_resource, operands, operation_kinds
from ...cluster.errors import Refusal
from ...network.serving.api import Handler, served
from ...network.serving.context import RequestContext
from ...process.settings import log_levels
from ...process.time_slices import in_time_slices
from ...protocol.config_resources import ConfigOperation, ResourceType
from ...protocol.error_codes import ErrorCode
from ...protocol.header import DecidedElement
from ...protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from .config_changes import Alteration, AlterationPlanner, alter, check_own_id, refused_here
from .controller_port import ControllerPort
from .own_changes import OwnConfigs, refused_of_own

Text = TypeVar("Text", str, str | None)

PATIENCE_SECONDS = 10.0
"""The seconds that a node waits until the controller has judged and recorded new levels of loggers,
even if the client has disconnected.
"""


async def receive(
    port: ControllerPort,
    own: OwnConfigs,
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
    ask_controller: Handler,
) -> IncrementalAlterConfigsResponse:
    decided = await refused_here(
        port,
        context,
        request.resources,
        lambda resource: check_incremental(_steps(resource)),
        lambda resource: _check_of_type(port, context, resource),
        loggers=True,
    )
    decided |= await refused_of_own(port, context, request.resources, _alteration, own, refused=decided)
    for index, resource in enumerate(request.resources):
        if resource.resource_type == ResourceType.BROKER_LOGGER and index not in decided:
            kind, name = kind_and_name(resource.resource_type, resource.resource_name)
            wanted = _by_our_names(operands(resource))
            decided[index] = Outcome(
                Change(name, kind, wanted, _by_our_names(operation_kinds(resource))),
                levels=_levels(wanted),
            )
    if request.validate_only or all(outcome.refusal is not None for outcome in decided.values()):
        return _response(
            request.resources, await alter(port, context, request, decided, ask_controller, overrides=own.overrides)
        )
    with trio.move_on_after(PATIENCE_SECONDS, shield=True):
        # A client that disconnects now does not stop changes that are judged and recorded.
        outcomes = await alter(port, context, request, decided, ask_controller, overrides=own.overrides)
        for resource, outcome in zip(request.resources, outcomes, strict=True):
            if resource.resource_type == ResourceType.BROKER_LOGGER and outcome.refusal is None:
                _alter_loggers(resource)
        return _response(request.resources, outcomes)
    raise Refusal(ErrorCode.REQUEST_TIMED_OUT, "The controller did not record the loggers' new levels in time.")


async def handle(
    port: ControllerPort, _own: OwnConfigs, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Answer a request at the active controller."""
    alterations = await in_time_slices(_alteration(port, resource) for resource in request.resources)
    outcomes = await AlterationPlanner(port, context, request, alterations).carry_out()
    return _response([*context.origin.decided, *request.resources], outcomes)


def _response(
    resources: Sequence[IncrementalAlterConfigsResource | DecidedElement], outcomes: Sequence[Outcome]
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResourceResponse(
                error_code=outcome.code,
                error_message=outcome.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, outcome in zip(resources, outcomes, strict=True)
        ]
    )


def _alteration(port: ControllerPort, resource: IncrementalAlterConfigsResource) -> Alteration:
    steps, config = _steps(resource), port.configs.current
    per_broker = resource.resource_name != ""
    return Alteration(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        requested=configured_resource(resource),
        topic_configs=lambda topic: alter_topic(topic.name, topic.configs, steps, config),
        broker_configs=lambda before: alter_broker(before, steps, config, per_broker=per_broker),
        check_before_topic=lambda: check_operations(steps),
    )


def _steps(resource: IncrementalAlterConfigsResource) -> list[IncrementalChange]:
    return [IncrementalChange(config.name, config.config_operation, config.value) for config in resource.configs]


def _check_of_type(port: ControllerPort, context: RequestContext, resource: IncrementalAlterConfigsResource) -> None:
    """Check a resource for errors that the receiving node finds by itself."""
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        context.check_cluster(ALTER_CONFIGS_OF_CLUSTER)
        _check_loggers(port, resource)
    elif resource.resource_type == ResourceType.BROKER:
        for config in resource.configs:
            if config.config_operation not in set(ConfigOperation):
                raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {config.config_operation}")


def _check_loggers(port: ControllerPort, resource: IncrementalAlterConfigsResource) -> None:
    check_own_id(port, resource.resource_name)
    wanted: dict[str, str | None] = {}
    for config in resource.configs:
        if config.config_operation not in (ConfigOperation.SET, ConfigOperation.DELETE):
            operation = _operation_name(config.config_operation)
            text = f"{operation} operation is not allowed for the BROKER_LOGGER resource"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        ours = log_levels.logger_name(config.name)
        if ours is None:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"Logger {config.name} does not exist!")
        level = config.value if config.config_operation == ConfigOperation.SET else None
        if config.config_operation == ConfigOperation.DELETE and ours == log_levels.ROOT:
            text = f"Removing the log level of the {log_levels.ROOT} logger is not allowed"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        if config.config_operation == ConfigOperation.SET and level not in log_levels.LEVELS:
            text = f"Cannot set the log level of {config.name} to {level} as it is not a supported log level"
            valid = ", ".join(sorted(log_levels.LEVELS))
            raise Refusal(ErrorCode.INVALID_CONFIG, f"{text}. Valid log levels are {valid}")
        if wanted.setdefault(ours, level) != level:
            text = f"The logger {ours} is named twice, the second time as {config.name}, with two levels."
            raise Refusal(ErrorCode.INVALID_REQUEST, text)


def _operation_name(operation: int) -> str:
    return ConfigOperation(operation).name if operation in set(ConfigOperation) else f"UNKNOWN({operation})"


def _by_our_names(loggers: Mapping[str, Text]) -> dict[str, Text]:
    return {log_levels.KAFKA_LOGGERS.get(name, name): value for name, value in loggers.items()}


def _levels(wanted: Mapping[str, str | None]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the levels before and after the change, by our names of the loggers."""
    return log_levels.levels_of(wanted), log_levels.levels_after(wanted)


def _alter_loggers(resource: IncrementalAlterConfigsResource) -> None:
    for name, level in operands(resource).items():
        log_levels.set_level(name, level)


API = served(SPEC, handle, receiver=receive)
