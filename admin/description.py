"""The description of a request for whoever judges, records or logs it."""

from typing import Protocol

from ..protocol.api_keys import ApiKey
from ..protocol.header import RequestOrigin
from .spec import Changes


class RequestDescription(Protocol):
    """The description of a request for the policy's log, the audit log and the page: who sent it,
    how, and when. A node has a `RequestContext`.
    """

    @property
    def api_key(self) -> ApiKey: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def origin(self) -> RequestOrigin: ...
    @property
    def listener(self) -> str:
        """The name of the listener on which the caller connected."""

    @property
    def forwarded(self) -> bool:
        """Whether another node of the cluster sent it on."""

    @property
    def arrived(self) -> float:
        """The time of arrival in seconds, by trio's clock."""

    @property
    def changes(self) -> Changes | None:
        """The declared changes of the API that the client used."""

    @property
    def policy_api(self) -> str:
        """Kafka's name of the API that the client used, as policies see it."""
