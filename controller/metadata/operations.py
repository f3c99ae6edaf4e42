"""Authorized operations: bit fields of what a client may do with a topic, a group or the cluster
(KIP-430).

Rule: bit n stands for the operation with Kafka's code n. Without ACLs every client may do
everything.
"""

NOT_ASKED = -(2**31)
"""Kafka's value of a field that the client did not ask for."""

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = range(3, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(10, 13)


def bit_field(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bit_field(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
GROUP_OPERATIONS = bit_field(READ, DELETE, DESCRIBE)
CLUSTER_OPERATIONS = bit_field(
    CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE
)


def topic_operations(*, asked: bool) -> int:
    return TOPIC_OPERATIONS if asked else NOT_ASKED


def group_operations(*, asked: bool) -> int:
    return GROUP_OPERATIONS if asked else NOT_ASKED


def cluster_operations(*, asked: bool) -> int:
    return CLUSTER_OPERATIONS if asked else NOT_ASKED
