"""The errors of logs and codecs, with the codes that clients get."""

from collections.abc import Sequence

import msgspec

from ..protocol.error_codes import ErrorCode

HIDING_START = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class RecordError(msgspec.Struct, frozen=True):
    """Why one record of a batch is refused."""

    index: int
    message: str

    def __str__(self) -> str:
        return f"RecordError(batchIndex={self.index}, message='{self.message}')"


class LogError(Exception):
    """A request that a log refuses, with the error code that the client gets. The message is for
    the client only if single records are refused; otherwise it is for the node's own log, as
    Kafka's are.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        record_errors: Sequence[RecordError] = (),
        *,
        shows_message: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.record_errors = record_errors
        self._shows_message = shows_message

    @property
    def shown(self) -> str | None:
        """Return the message that Produce answers."""
        return self.message if self.record_errors or self._shows_message else None

    @property
    def hides_start(self) -> bool:
        """Return whether Produce answers -1 with this error in place of the log's start."""
        return self.code in HIDING_START


def invalid(message: str) -> LogError:
    return LogError(ErrorCode.INVALID_RECORD, message)


def corrupt(message: str) -> LogError:
    return LogError(ErrorCode.CORRUPT_MESSAGE, message)


class CompressionError(Exception):
    """Bytes that their codec cannot decompress."""


class TooManyBytesError(CompressionError):
    """Bytes that become more than a batch may."""
