"""The interface of an authorizer, which decides what a caller may do to a resource. It is named in
`authorizer.class.name` as `module:Class` or `path/to/file.py:Class`.

    from minicontroller import policies

    class OwnTopics(policies.Authorizer):
        def authorize(self, requester, actions):
            own = requester.principal.removeprefix("User:") + "."
            return [action.resource_name.startswith(own) for action in actions]

An authorizer is asked on the node that holds the client's connection and on the active controller,
always under the client's own principal and address. It answers at once: the node waits for it.
Super users (`super.users`) may do everything and are not asked about, and neither are the requests
that the cluster's nodes send to each other.

An `AuthorizerError` refuses the whole request with the error code of its class. Everything else
means that the authorizer is broken, which denies the action and is logged: another exception, or a
list that is not of one bool for each action.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from ..protocol.acls import AclOperation, AclResourceType, kafka_name
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode

API_KEYS = frozenset(ApiKey)


class Requester(msgspec.Struct, frozen=True, kw_only=True):
    """The client that wants something, as the node that holds its connection knows it."""

    principal: str
    """`User:alice`; `User:ANONYMOUS` for a client that has not authenticated."""
    client_host: str
    client_id: str | None = None
    api_key: int = -1
    """Kafka's number of the client's request; -1 if unknown."""

    @property
    def api(self) -> str:
        """Kafka's name of the client's request: `Metadata`, `CreateTopics`."""
        return kafka_name(ApiKey(self.api_key)) if self.api_key in API_KEYS else f"API {self.api_key}"


class Action(msgspec.Struct, frozen=True):
    """The operation that a client asks for, and the resource that it is about."""

    operation: AclOperation
    resource_type: AclResourceType
    resource_name: str


class AuthorizerError(Exception):
    """The authorizer cannot decide. The whole request is refused with UNKNOWN_SERVER_ERROR (-1), or
    the code of a class below. The exception's text is the message that the client gets.
    """

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR


class TopicAuthorizationError(AuthorizerError):
    """Refuses a request with TOPIC_AUTHORIZATION_FAILED (29)."""

    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorizationError(AuthorizerError):
    """Refuses a request with GROUP_AUTHORIZATION_FAILED (30)."""

    code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class ClusterAuthorizationError(AuthorizerError):
    """Refuses a request with CLUSTER_AUTHORIZATION_FAILED (31)."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class SecurityDisabledError(AuthorizerError):
    """Refuses a request with SECURITY_DISABLED (54)."""

    code = ErrorCode.SECURITY_DISABLED


class UndecidedError(AuthorizerError):
    """Refuses a request with REQUEST_TIMED_OUT (7), after which clients try again: what decides
    cannot be reached at the moment.
    """

    code = ErrorCode.REQUEST_TIMED_OUT


class Authorizer:
    """Decides what callers may do."""

    follows_acls: ClassVar[bool] = False
    """Whether the authorizer leaves decisions to the cluster's ACLs by answering None. If not,
    requests about ACLs are refused with SECURITY_DISABLED, because nobody would follow the ACLs.
    """

    def configure(self, configs: Mapping[str, str]) -> None:
        """Receive the node's configuration without its secrets, once, before anything else."""

    def authorize(self, requester: Requester, actions: Sequence[Action]) -> Sequence[bool | None]:
        """Return, for each action in order, whether the requester may do it. None leaves an action
        to the cluster's ACLs, which an authorizer with `follows_acls` may do.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release what the authorizer holds. The node has stopped."""
