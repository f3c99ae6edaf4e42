"""The levels of loggers, by names that Kafka's brokers and our nodes have."""

from collections.abc import Sequence

from tests.conformance.case import APPEND, BROKER_LOGGER, DELETE, SET, SUBTRACT, Body, Case, each_version

APIS, CONTROLLER = "kafka.server.KafkaApis", "kafka.controller.KafkaController"


def describing(*names: str) -> Body:
    resource = {"resource_type": BROKER_LOGGER, "resource_name": "1", "configuration_keys": list(names)}
    return {"resources": [resource], "include_synonyms": True, "include_documentation": True}


def altering(*steps: tuple[str, int, str | None]) -> Body:
    configs = [{"name": name, "config_operation": operation, "value": level} for name, operation, level in steps]
    resource = {"resource_type": BROKER_LOGGER, "resource_name": "1", "configs": configs}
    return {"resources": [resource], "validate_only": False}


def alter(name: str, *steps: tuple[str, int, str | None]) -> Sequence[Case]:
    return [
        *each_version(f"logger {name}", "IncrementalAlterConfigs", altering(*steps), node_1=True),
        Case(f"loggers after {name}", "DescribeConfigs", 4, describing("root", APIS, CONTROLLER), node_1=True),
    ]


CASES = [
    *alter("root", ("root", SET, "WARN")),
    *each_version(
        "loggers", "DescribeConfigs", describing("root", APIS, "kafka.request.logger", "no.such"), node_1=True
    ),
    *alter("of two", (APIS, SET, "DEBUG"), (CONTROLLER, SET, "TRACE")),
    *alter("deleted", (APIS, DELETE, None)),
    *alter("deleted again", (APIS, DELETE, None), (CONTROLLER, DELETE, None)),
    *alter("root deleted", ("root", DELETE, None)),
    *alter("unknown", ("no.such", SET, "DEBUG")),
    *alter("package", ("org.apache", SET, "DEBUG")),
    *alter("nameless", ("", SET, "DEBUG")),
    *alter("unknown deleted", ("no.such", DELETE, None)),
    *alter("beside an unknown one", (APIS, SET, "DEBUG"), ("no.such", SET, "DEBUG")),
    *alter("in lower case", ("root", SET, "debug")),
    *alter("off", (APIS, SET, "OFF")),
    *alter("without a level", (APIS, SET, "")),
    *alter("null", (APIS, SET, None)),
    *alter("twice", (APIS, SET, "DEBUG"), (APIS, SET, "INFO")),
    *alter("appended", (APIS, APPEND, "DEBUG")),
    *alter("subtracted", (APIS, SUBTRACT, "DEBUG")),
    *alter("with another operation", (APIS, 9, "DEBUG")),
    *alter("root again", ("root", SET, "INFO")),
]
