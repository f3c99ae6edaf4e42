"""The errors that a request or a configuration may meet.

A `Refusal` becomes the response to a request that cannot be granted. What the store fails at is a
`store.base.StoreError`, and bytes that nobody can read are a `protocol.errors.ProtocolError`.
Whatever else is raised while a request is answered is a bug of ours.
"""

from collections.abc import Callable
from typing import TypeVar

from ..protocol.error_codes import ErrorCode

T = TypeVar("T")

MAX_STRING_BYTES = 32_767
"""The longest string of the protocol."""
MAX_TEXT = 8_000
"""How many characters fit into it, whatever they are."""
LEFT_OUT = "[...]"
"""Stands where the middle of a text was left out."""


class Refusal(Exception):  # noqa: N818 - it is an answer, not a defect
    """A request, or one element of it, is refused with `code`. The client gets `message`, which
    says what has to be changed.

    `reason` goes to the log and the page of the node, where Kafka sends the client no message.
    """

    def __init__(self, code: ErrorCode, message: str | None = None, *, reason: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.reason = reason
        self.message = None if message is None else fitting(message)


class EarlyRefusal(Refusal):
    """A request was refused before a handler saw it."""


class TooManyChanges(EarlyRefusal):
    """A request asks for more than `requests.bounds` allows. It is recorded as a whole, and not
    element by element.
    """


class NotANode(EarlyRefusal):
    """A request that only nodes of the cluster send came from a client that has not proved to be
    one.
    """


def fitting(text: str) -> str:
    """Return the text, shortened in its middle so that a string of the protocol holds it. Its end
    often says what is wrong.
    """
    if len(text) <= MAX_TEXT or len(text.encode()) <= MAX_STRING_BYTES:
        return text
    return f"{text[: MAX_TEXT // 2]}{LEFT_OUT}{text[len(text) - MAX_TEXT // 2 + len(LEFT_OUT) :]}"


class ConfigurationError(Exception):
    """The configuration is wrong. The message has a sentence, on a line of its own, for each
    mistake: it names file, line and key, and says what to do.
    """


class Mistakes:
    """Collects the mistakes of a configuration, so that one error reports all of them."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def note(self, sentence: str) -> None:
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    def read(self, read: Callable[[], T], instead: T) -> T:
        """Return what `read` returns. If it raises ConfigurationError, note its mistakes and return
        `instead`.
        """
        try:
            return read()
        except ConfigurationError as error:
            for sentence in str(error).split("\n"):
                self.note(sentence)
            return instead

    def end(self) -> None:
        if self.sentences:
            raise ConfigurationError("\n".join(self.sentences))


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group, since a message can tell only one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
