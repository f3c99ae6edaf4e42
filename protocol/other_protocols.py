"""Recognizes streams of other protocols by their first four bytes, which stand where Kafka's
protocol has the size of its first frame.

Rule: nothing that a client of Kafka begins with is taken for another protocol. As sizes these bytes
are negative or above 200 MiB, and a first request never is so large.
"""

TLS, HTTP, PROXY, TEXT = "TLS", "HTTP", "a PROXY header", "text"
FIRST_BYTES = 4
_WORDS = {
    **dict.fromkeys((b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN", b"PROP"), HTTP),
    **dict.fromkeys((b"PRI ", b"HTTP"), HTTP),  # HTTP/2, and answers
    **dict.fromkeys((b"PROX", b"\r\n\r\n"), PROXY),  # versions 1 and 2
    b"SSH-": "SSH",
    b"AMQP": "AMQP",
}
_TLS_RECORDS = range(0x14, 0x18)
_TEXT = frozenset(range(0x20, 0x7F)) | frozenset(b"\t\r\n")
_ADVICE = {
    TLS: "TLS arrived on a connection without TLS: only one end has a security protocol with SSL",
    PROXY: f"{PROXY} arrived instead of Kafka's protocol: have the load balancer send none to this address",
}


def protocol_of(first: bytes) -> str | None:
    """Return the name of the protocol whose stream begins so; None for Kafka's, for one that is not
    known, and for less than FIRST_BYTES.
    """
    if len(first) < FIRST_BYTES or first[0] == 0:
        return None
    first = first[:FIRST_BYTES]
    if _is_tls(first):
        return TLS
    if _is_mqtt(first):
        return "MQTT"
    return _WORDS.get(first) or (TEXT if _TEXT.issuperset(first) else None)


def explained(name: str) -> str:
    """Return a sentence that says what arrived instead of Kafka's protocol, and what to check."""
    other = f"{name} arrived instead of Kafka's protocol: the address is not that of a Kafka listener or client"
    return _ADVICE.get(name, other)


def _is_tls(first: bytes) -> bool:
    """Whether it is a record of SSL 3.0 to TLS 1.3, or a hello in the form of SSL 2.0, which old
    clients of TLS send, too.
    """
    kind, major, minor, last = first
    return (kind in _TLS_RECORDS and major == 3 and minor <= 4) or (kind >= 0x80 and minor == 1 and last in (0, 3))


def _is_mqtt(first: bytes) -> bool:
    """Whether it is a CONNECT with the name `MQTT` or `MQIsdp`, whose length comes before it."""
    kind, length, more, last = first
    named = (more == 0 and last in (4, 6)) if length < 0x80 else (more < 0x80 and last == 0)
    return kind == 0x10 and named
