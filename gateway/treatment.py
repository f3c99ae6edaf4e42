"""Decides what happens to a request, once, from its head: pure.

What the head cannot say is left to those who read the whole request: a Metadata that creates no
topic is not judged after all, and configs of brokers are not forwarded.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from ..protocol.api_keys import ApiKey
from ..protocol.errors import InvalidFrameSize, ProtocolError, UnsupportedApi, UnsupportedVersion
from .apis import PassedApi
from .identity.login import LoginState, Stage
from .requests import RequestHead

MOST_LOGIN_BYTES = 128 * 1024
"""The largest request of a login, which is read as a whole. A ticket of Kerberos or a signed token
is not longer.
"""
MOST_WHOLE_BYTES = 8 * 1024 * 1024
"""The largest request that is judged or forwarded, which is held as a whole."""
TOO_EARLY = "a request came before the client had authenticated"


class Passage(Enum):
    """Who answers a request, and how it gets there."""

    ANSWER = "answer"
    """The gateway answers, and drops the request unread."""
    LOG_IN = "log in"
    """The gateway reads a request of a login, and answers it."""
    WATCH = "watch"
    """A request of a login passes to the broker while the gateway learns whose login it is."""
    PASS = "pass"  # noqa: S105 - a passage
    """The broker answers a request that passes in pieces. Addresses in the response are
    rewritten.
    """
    FORWARD = "forward"
    """The controller answers the request under the client's own name."""


class Treatment(msgspec.Struct, frozen=True):
    """What happens to a request."""

    passage: Passage
    api: PassedApi
    is_judged: bool = False
    """Whether it is judged first. The passage is then for what the judgement leaves of it."""

    @property
    def is_held(self) -> bool:
        """Whether the gateway holds the whole request before any of it goes on."""
        return self.is_judged or self.passage is Passage.FORWARD


class Service(msgspec.Struct, frozen=True):
    """What a gateway offers by its configuration."""

    apis: Mapping[int, PassedApi]
    authenticates: bool = False
    """Whether clients log in at the gateway, and not at the broker."""
    forwards: bool = False
    """Whether the controller answers what brokers would forward to it."""

    def is_forwarded(self, api: PassedApi) -> bool:
        """Whether the controller answers requests of an API."""
        return self.forwards and api.is_forwarded


def treatment_of(head: RequestHead, size: int, service: Service, login: LoginState, *, is_judged: bool) -> Treatment:
    """Decide what happens to a request of so many bytes. `is_judged` says whether a request of its
    API is judged.

    Raises:
        UnsupportedApi, UnsupportedVersion: it does not pass.
        InvalidFrameSize: it is too long to be held.
        ProtocolError: the client may not send it now.
    """
    api = service.apis.get(head.api_key)
    if api is None:
        raise UnsupportedApi(head.api_key, head.version, head.correlation_id, None)
    if not api.oldest <= head.version <= api.newest:
        if api.key != ApiKey.API_VERSIONS:
            raise UnsupportedVersion(head.api_key, head.version, head.correlation_id, None)
        return Treatment(Passage.ANSWER, api)
    if api.is_login:
        if size > MOST_LOGIN_BYTES:
            raise InvalidFrameSize(f"a login of {size} bytes is announced, {MOST_LOGIN_BYTES} are allowed")
        return Treatment(Passage.LOG_IN if service.authenticates else Passage.WATCH, api)
    if service.authenticates:
        _check(api, size, login)
    treatment = Treatment(Passage.FORWARD if service.is_forwarded(api) else Passage.PASS, api, is_judged)
    if size > MOST_WHOLE_BYTES and treatment.is_held:
        text = f"a request of {size} bytes is announced, {MOST_WHOLE_BYTES} are allowed for this API"
        raise InvalidFrameSize(text)
    return treatment


def _check(api: PassedApi, size: int, login: LoginState) -> None:
    """Raise ProtocolError for a request that the gateway's own login does not allow now."""
    if login.refusal is not None:
        raise ProtocolError(login.refusal)
    if login.stage is Stage.DONE:
        return
    if api.key != ApiKey.API_VERSIONS or login.stage is Stage.UNDER_WAY:
        raise ProtocolError(TOO_EARLY)
    if size > MOST_LOGIN_BYTES:
        raise InvalidFrameSize(f"a request of {size} bytes before authentication")
