"""Whose fault it was: a `Refusal` is the answer to a wish that cannot be granted; the world's
faults are `store.base.StoreError`; a peer's are `protocol.errors.ProtocolError`; whatever else is
raised while a request is answered is our own bug.
"""

from ..protocol.error_codes import ErrorCode

MAX_STRING_BYTES = 32_767
"""Of a string of the protocol."""
MAX_TEXT = 8_000
"""Characters that fit it whatever they are."""
LEFT_OUT = "[...]"
"""Stands where a text was too long."""


class Refusal(Exception):  # noqa: N818 - it is an answer, not an accident
    """A request, or one element of it, is refused: what `code` says, and `message` for the human
    who has to mend it.

    `reason` is for whoever operates the node, where Kafka tells the client nothing.
    """

    def __init__(self, code: ErrorCode, message: str | None = None, *, reason: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.reason = reason
        self.message = None if message is None else fitting(message)


class TurnedAway(Refusal):
    """A request was refused before a handler saw it."""


class TooMuch(TurnedAway):
    """A request asks for more than anybody does: it is recorded as one, and not
    element by element.
    """


class NoNode(TurnedAway):
    """A request that only nodes of the cluster send came from somebody who had not proved to be
    one.
    """


def fitting(text: str) -> str:
    """Shorten a text in its middle so that a string of the protocol holds it: its end often says
    what is wrong.
    """
    if len(text) <= MAX_TEXT or len(text.encode()) <= MAX_STRING_BYTES:
        return text
    return f"{text[: MAX_TEXT // 2]}{LEFT_OUT}{text[len(text) - MAX_TEXT // 2 + len(LEFT_OUT) :]}"


class ConfigurationError(Exception):
    """The configuration is wrong; the message is a sentence that names file, line and key, and says
    what to do.
    """


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group: tasks that ran beside each other may have failed together,
    and one sentence is told.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
