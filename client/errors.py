"""The errors of the administrative client, and the results that have them.

Rule: the error of one element of a batch is a value in the result (`AdminError`), and no exception
for the others. Exceptions concern a whole call: no node is reached (`ClusterUnreachable`), or the
configuration cannot be used (`ConfigurationError`).
"""

from collections.abc import Sequence
from typing import TypeVar

from ..protocol.error_codes import ErrorCode

T = TypeVar("T")
K = TypeVar("K")

IN_DOUBT = "IN_DOUBT"
"""The name of an error that is none of Kafka's: the request was sent, and no answer came."""

MEANINGS: dict[int, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the node met an unexpected error; its log says more",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic",
    ErrorCode.LEADER_NOT_AVAILABLE: "it has no leader yet",
    ErrorCode.REQUEST_TIMED_OUT: "not completed within the time limit; it may still be carried out",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic name is not valid",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "you are not authorized to do this to the topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "you are not authorized to do this in the cluster",
    ErrorCode.UNSUPPORTED_VERSION: "the node does not support this",
    ErrorCode.TOPIC_ALREADY_EXISTS: "a topic of this name exists already",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions is not valid",
    ErrorCode.INVALID_REPLICATION_FACTOR: "the replication factor is not valid",
    ErrorCode.INVALID_CONFIG: "a config is not valid",
    ErrorCode.NOT_CONTROLLER: "the cluster had no controller for the whole time",
    ErrorCode.INVALID_REQUEST: "the request is not valid",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.TOPIC_DELETION_DISABLED: "the cluster deletes no topics (delete.topic.enable=false)",
}
"""Messages for errors that a broker sends without one, as it does in older versions."""
GROUP_MEANINGS: dict[int, str] = {
    ErrorCode.NOT_COORDINATOR: "the node no longer coordinates the group",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "the group has no coordinator yet",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is loading its groups",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "you may not do this to the group",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "you may not do this to the topic",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.INVALID_GROUP_ID: "this cannot be the name of a group",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members, which set its offsets themselves",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read the topic",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata is too long",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "the group has no room for more offsets",
}
"""Messages for errors of responses about groups, which have none."""
ON_ITS_WAY = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
"""The errors of a group whose coordinator is to be looked up again."""


class ClusterUnreachable(Exception):  # noqa: N818 - the world's fault
    """No node of the cluster answered; the message is a sentence."""


class AdminError(Exception):
    """The error of one element, or of a request: Kafka's code, and a message."""

    def __init__(self, code: int, message: str | None = None, *, in_doubt: bool = False) -> None:
        super().__init__(code, message)
        self.code = code
        self.in_doubt = in_doubt
        """Whether the change was made is unknown, because no answer came."""
        self._message = message

    @property
    def name(self) -> str:
        """Kafka's name of the code, or IN_DOUBT."""
        if self.in_doubt:
            return IN_DOUBT
        try:
            return ErrorCode(self.code).name
        except ValueError:
            return f"ERROR_{self.code}"

    @property
    def message(self) -> str:
        """The broker's message, or the meaning of the code."""
        if self._message:
            return self._message
        return MEANINGS.get(self.code, "the node gave no reason")

    def __str__(self) -> str:
        return f"{self.message} ({self.name})"


def in_doubt(text: str) -> AdminError:
    """Make the error of an element for which no answer came."""
    return AdminError(ErrorCode.NETWORK_EXCEPTION, text, in_doubt=True)


Results = dict[K, T | AdminError]
"""The value or the error of each element of a batch (K117-2)."""


def check(code: int, message: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise AdminError(code, message)


def result_of(code: int, message: str | None, value: T) -> T | AdminError:
    return value if code == ErrorCode.NONE else AdminError(code, message)


def value_of(result: T | AdminError) -> T:
    if isinstance(result, AdminError):
        raise result
    return result


def each_of(elements: Sequence[K], found: Results[K, T]) -> Results[K, T]:
    """Return the results in the order of the elements; an element that the answer leaves out has
    an error of its own.
    """
    silent = AdminError(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer does not mention it")
    return {element: found.get(element, silent) for element in elements}
