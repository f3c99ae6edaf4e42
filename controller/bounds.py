"""How much one request may ask for, and how large it and its answer may be.

Rule: who asks for little costs little, and what would pass a bound is refused with Kafka's own error. Between nodes there is room above
what clients may send: a request grows there by who asked for it, and by the newest version's form.
"""

MAX_ANSWER_BYTES = 100 * 1024 * 1024
"""What clients take at most: librdkafka's `receive.message.max.bytes`."""
ENVELOPE_BYTES = 1024
"""More than stands round an answer in an Envelope."""
MAX_BETWEEN_NODES_BYTES = 128 * 1024 * 1024
"""Of a request or an answer between nodes, however small `socket.request.max.bytes` is: the same for all nodes of a cluster."""
