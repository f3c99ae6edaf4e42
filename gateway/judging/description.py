"""The description of a request that passes through the gateway, for the policy and the records."""

import msgspec

from ...admin.apis import SPECS
from ...admin.spec import Changes
from ...protocol.api_keys import ApiKey
from ...protocol.header import RequestOrigin
from ...protocol.registry import KAFKA


class PassingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A `RequestDescription` of a request at the gateway."""

    api_key: ApiKey
    client_id: str | None
    origin: RequestOrigin
    listener: str
    """The name of the gateway's listener."""
    arrived: float
    """The time of arrival in seconds, by trio's clock."""
    forwarded: bool = False

    @property
    def changes(self) -> Changes | None:
        """The changes of the API. Requests that only ask for topics have them created."""
        declared = SPECS.get(self.api_key)
        return (None if declared is None else declared.changes) or SPECS[ApiKey.CREATE_TOPICS].changes

    @property
    def policy_api(self) -> str:
        return KAFKA[self.api_key].name
