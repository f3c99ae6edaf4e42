"""What may go wrong with bytes: each class names who is to blame and what the connection's owner
can still say about it.

Rule: nothing but `ProtocolError` leaves this package for bytes or messages that do not fit; any
other exception is a bug of ours.
"""


class ProtocolError(Exception):
    """Bytes are not Kafka's protocol, or a message cannot be put into bytes."""


class MalformedMessage(ProtocolError):  # noqa: N818 - says what is wrong
    """The peer sent bytes that no message of the announced kind has."""


class InvalidFrameSize(ProtocolError):  # noqa: N818 - says what is wrong
    """The peer announced a frame of a size that is refused before anything is allocated for it."""


class UnencodableMessage(ProtocolError):  # noqa: N818 - says what is wrong
    """We made a message that the asked version cannot carry: a missing field with a value, a null,
    a number out of range.
    """


class UnsupportedRequest(ProtocolError):  # noqa: N818 - says what is wrong
    """A request whose header can be read but whose body cannot: the attributes are what is known of
    its sender.
    """

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        super().__init__(api_key, api_version, correlation_id, client_id)
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id


class UnsupportedApi(UnsupportedRequest):
    """A request's api key is unknown here."""

    def __str__(self) -> str:
        return f"client {self.client_id!r} asks for the unknown API {self.api_key} in version {self.api_version}"


class UnsupportedVersion(UnsupportedRequest):
    """A request's API is known, its version is not. To ApiVersions the answer is version 0 with
    UNSUPPORTED_VERSION (KIP-511).
    """

    def __str__(self) -> str:
        return f"client {self.client_id!r} asks for API {self.api_key} in the unknown version {self.api_version}"
