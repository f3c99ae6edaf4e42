"""New ids of topics and clusters."""

import uuid


def new_id() -> bytes:
    """Return 16 random bytes whose text does not start with a dash, which command lines would take for an option (Kafka:
    Uuid.randomUuid).
    """
    while True:
        value = uuid.uuid4().bytes
        if value[0] >> 2 != 62:  # the six bits that base64 writes as a dash
            return value
