"""Whose fault it was: a `Refusal` is the answer to a wish that cannot be granted; the world's faults are `store.base.StoreError`;
a peer's are `protocol.errors.ProtocolError`; whatever else is raised while a request is answered is our own bug.
"""

from ..protocol.error_codes import ErrorCode


class Refusal(Exception):  # noqa: N818 - it is an answer, not an accident
    """A request, or one element of it, is refused: what `code` says, and `message` for the human who has to mend it."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class ConfigurationError(Exception):
    """The configuration is wrong: one sentence that names file, line and key, and tells what to do."""
