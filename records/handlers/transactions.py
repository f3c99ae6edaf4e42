"""What the APIs of transactions share: the codes that their older versions know."""

from ...protocol.error_codes import ErrorCode

FENCED_SINCE = 2
"""The first version whose clients know PRODUCER_FENCED (KIP-588)."""


def code_for(version: int, code: ErrorCode) -> ErrorCode:
    if code == ErrorCode.PRODUCER_FENCED and version < FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
