"""The errors of this package. Bytes or messages that do not fit raise a `ProtocolError` and nothing
else: any other exception is a bug in this program.
"""


class ProtocolError(Exception):
    """Bytes are not Kafka's protocol, or a message cannot be encoded."""


class MalformedMessage(ProtocolError):  # noqa: N818 - says what is wrong
    """The bytes are not a message of the API and version that were announced."""


class InvalidFrameSize(ProtocolError):  # noqa: N818 - says what is wrong
    """A frame has a size that is not allowed. No memory was reserved for it."""


class UnencodableMessage(ProtocolError):  # noqa: N818 - says what is wrong
    """The version cannot carry the message: a field that the version lacks has a value, a field is
    null that must not be, or a number is out of range.
    """


class UnsupportedRequest(ProtocolError):  # noqa: N818 - says what is wrong
    """A request whose header can be read, and whose API or version is not spoken here. The
    attributes are those of its header.
    """

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        super().__init__(api_key, api_version, correlation_id, client_id)
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id


class UnsupportedApi(UnsupportedRequest):
    """The API of a request is not spoken here."""

    def __str__(self) -> str:
        return f"client {self.client_id!r} asks for the unknown API {self.api_key} in version {self.api_version}"


class UnsupportedVersion(UnsupportedRequest):
    """The API of a request is spoken here, but not in its version."""

    def __str__(self) -> str:
        return f"client {self.client_id!r} asks for API {self.api_key} in the unknown version {self.api_version}"
