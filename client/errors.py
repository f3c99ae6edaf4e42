"""How a wish can fail: refused for one element, or nobody reached at all.

Rule: what one element meets is a value in its result (`AdminError`) and never an exception for its
neighbours. Exceptions are for what concerns a whole call: no node is reached (`Unreachable`), or
the configuration cannot be used (`ConfigurationError`).
"""

from ..protocol.error_codes import ErrorCode

IN_DOUBT = "IN_DOUBT"
"""Of no code of Kafka's: the request was sent, and the answer did not come."""

MEANINGS: dict[int, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the node met an error of its own; its log tells more",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic",
    ErrorCode.LEADER_NOT_AVAILABLE: "it has no leader yet",
    ErrorCode.REQUEST_TIMED_OUT: "not complete within the time limit; it may still come about",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "this is no name for a topic",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "you may not do this to this topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "you may not do this in this cluster",
    ErrorCode.UNSUPPORTED_VERSION: "the node does not offer this",
    ErrorCode.TOPIC_ALREADY_EXISTS: "a topic of this name exists already",
    ErrorCode.INVALID_PARTITIONS: "this number of partitions is not possible",
    ErrorCode.INVALID_REPLICATION_FACTOR: "this replication factor is not possible",
    ErrorCode.INVALID_CONFIG: "a config is not valid",
    ErrorCode.NOT_CONTROLLER: "the cluster had no controller for the whole time",
    ErrorCode.INVALID_REQUEST: "the request contradicts itself",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.TOPIC_DELETION_DISABLED: "the cluster deletes no topics (delete.topic.enable=false)",
}
"""For answers without a message of their own, as older versions give them."""


class Unreachable(Exception):  # noqa: N818 - the world's fault
    """No node that could answer was reached; the message is a sentence."""


class AdminError(Exception):
    """Why one element failed: Kafka's code, and the node's message if it gave one."""

    def __init__(self, code: int, message: str | None = None, *, in_doubt: bool = False) -> None:
        super().__init__(code, message)
        self.code = code
        self.in_doubt = in_doubt
        """Whether it happened is unknown: the answer did not come."""
        self._message = message

    @property
    def name(self) -> str:
        """Kafka's name of the error code."""
        if self.in_doubt:
            return IN_DOUBT
        try:
            return ErrorCode(self.code).name
        except ValueError:
            return f"ERROR_{self.code}"

    @property
    def message(self) -> str:
        """The node's own words, or what the code means."""
        if self._message:
            return self._message
        return MEANINGS.get(self.code, "the node gave no reason")

    def __str__(self) -> str:
        return f"{self.message} ({self.name})"


def in_doubt(text: str) -> AdminError:
    """Make the error of an element whose answer did not come."""
    return AdminError(ErrorCode.NETWORK_EXCEPTION, text, in_doubt=True)
