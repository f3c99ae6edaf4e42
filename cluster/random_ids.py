"""New ids of topics and clusters."""

import os


def new_id() -> bytes:
    """Return 16 random bytes whose text does not start with a dash, which command lines would take
    for an option (Kafka: Uuid.randomUuid).
    """
    while True:
        value = bytearray(os.urandom(16))
        if value[0] >> 2 != 62:  # the six bits that base64 writes as a dash
            value[6] = (
                0x40 | value[6] & 0x0F
            )  # a UUID of version 4, made without the object, which costs more than the rest
            value[8] = 0x80 | value[8] & 0x3F
            return bytes(value)
