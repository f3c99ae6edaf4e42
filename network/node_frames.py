"""Two frames beside Kafka's protocol, which only nodes of the cluster send each other.

Both are too short to be a request or a response, so that they cannot be taken for one.
"""

GO_AWAY_ID = -1
"""The correlation id of GO_AWAY, which no request has."""
GO_AWAY = (4).to_bytes(4) + GO_AWAY_ID.to_bytes(4, signed=True)
"""Sent by a node that stops, after its last response: it has read no further request. The frame is
a response's header without a response.
"""
CANCELLATION_BYTES = 4


def cancellation(correlation_id: int) -> bytes:
    """Return the frame that says that nobody waits for the answer to a forwarded request."""
    return CANCELLATION_BYTES.to_bytes(4) + correlation_id.to_bytes(4)
