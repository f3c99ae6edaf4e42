"""The numbers that Kafka's config APIs share: types of resources, and operations on a config.

Rule: the members are Kafka's, with its names. A request may hold any other number: whoever reads
one compares, and converts only what is known to be a member.
"""

from enum import IntEnum


class ResourceType(IntEnum):
    """The types of what has configs (Kafka's `ConfigResource.Type`)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOperation(IntEnum):
    """The operation of one entry of IncrementalAlterConfigs (KIP-339; Kafka's
    `AlterConfigOp.OpType`).
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3
