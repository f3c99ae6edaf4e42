"""Requests whose answers differed in random walks (`make walk`), until they were mended."""

from tests.conformance.case import APPEND, BROKER, SET, SUBTRACT, TOPIC, Body, each_version

UNKNOWN = "walked-unknown"


def incremental(kind: int, name: str, *changes: tuple[str, int, str]) -> Body:
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    return {"resources": [{"resource_type": kind, "resource_name": name, "configs": configs}]}


def replaced(kind: int, name: str, key: str, value: str) -> Body:
    resource = {"resource_type": kind, "resource_name": name, "configs": [{"name": key, "value": value}]}
    return {"resources": [resource]}


CASES = [
    *[
        case
        for name, operation in (("append", APPEND), ("subtract", SUBTRACT))
        for case in each_version(
            f"{name} to what is no list, of an unknown topic",
            "IncrementalAlterConfigs",
            incremental(TOPIC, UNKNOWN, ("retention.ms", operation, "1")),
        )
    ],
    *each_version(
        "bad value of an unknown topic",
        "IncrementalAlterConfigs",
        incremental(TOPIC, UNKNOWN, ("retention.ms", SET, "x"), ("cleanup.policy", APPEND, "compact")),
    ),
    *[
        case
        for threads in ("50", "1")
        for case in [
            *each_version(f"{threads} threads", "AlterConfigs", replaced(BROKER, "1", "background.threads", threads), node_1=True),
            *each_version(
                f"{threads} threads", "IncrementalAlterConfigs", incremental(BROKER, "1", ("background.threads", SET, threads)), node_1=True
            ),
        ]
    ],
]  # fmt: skip
