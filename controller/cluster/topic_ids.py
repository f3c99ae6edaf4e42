"""New topic ids."""

import base64
import uuid


def new_topic_id() -> bytes:
    """Random; never one whose text starts with a dash, which command lines would take for an option (Kafka: Uuid.randomUuid)."""
    while True:
        topic_id = uuid.uuid4().bytes
        if not base64.urlsafe_b64encode(topic_id).startswith(b"-"):
            return topic_id
