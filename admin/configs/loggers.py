"""Changes of the levels of a node's loggers (BROKER_LOGGER), which each node makes itself. In the
audit log and for policies a logger has our name, whichever of its names the request has.
"""

from collections.abc import Mapping
from typing import TypeVar

from ...cluster.errors import Refusal
from ...process.settings import log_levels
from ...protocol.config_resources import ConfigOperation
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResource
from ..changes import Change, Outcome, kind_and_name
from ..requested_changes import operands, operation_kinds

Text = TypeVar("Text", str, str | None)


def check_loggers(resource: IncrementalAlterConfigsResource) -> None:
    """Check what a resource asks of this node's loggers. Raises Refusal."""
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


def accepted_levels(resource: IncrementalAlterConfigsResource) -> Outcome:
    """Return what this node decides about checked levels of its loggers, before and after them."""
    kind, name = kind_and_name(resource.resource_type, resource.resource_name)
    wanted = _by_our_names(operands(resource))
    return Outcome(
        Change(name, kind, wanted, _by_our_names(operation_kinds(resource))),
        levels=(log_levels.levels_of(wanted), log_levels.levels_after(wanted)),
    )


def set_levels(resource: IncrementalAlterConfigsResource) -> None:
    for name, level in operands(resource).items():
        log_levels.set_level(name, level)


def _by_our_names(loggers: Mapping[str, Text]) -> dict[str, Text]:
    return {log_levels.KAFKA_LOGGERS.get(name, name): value for name, value in loggers.items()}
