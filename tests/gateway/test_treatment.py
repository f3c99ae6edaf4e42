"""What happens to a request is decided from its head, the client's login and the gateway's
settings; whatever these are, the decision keeps the rules of docs/gateway.md.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.gateway.apis import APIS, WITHOUT_DELEGATION_TOKENS
from minicontroller.gateway.identity.login import ABSENT, DONE, UNDER_WAY, LoginState, Stage
from minicontroller.gateway.requests import RequestHead
from minicontroller.gateway.treatment import (
    MOST_LOGIN_BYTES,
    MOST_WHOLE_BYTES,
    Passage,
    Service,
    Treatment,
    treatment_of,
)
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.errors import InvalidFrameSize, ProtocolError, UnsupportedApi, UnsupportedVersion

services = st.sampled_from(
    [
        Service(APIS),
        Service(WITHOUT_DELEGATION_TOKENS, authenticates=True),
        Service(WITHOUT_DELEGATION_TOKENS, authenticates=True, forwards=True),
    ]
)
keys = st.sampled_from(sorted(APIS)) | st.integers(-1, 100)
heads = st.builds(RequestHead, keys, st.integers(-1, 20), st.integers(0, 9))
sizes = st.sampled_from([8, MOST_LOGIN_BYTES, MOST_LOGIN_BYTES + 1, MOST_WHOLE_BYTES, MOST_WHOLE_BYTES + 1, 2**31])
logins = st.sampled_from([ABSENT, UNDER_WAY, DONE, LoginState(Stage.DONE, "the session has expired")])
LOGIN = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


@given(heads, sizes, services, logins, st.booleans())
def test_any_head(head: RequestHead, size: int, service: Service, login: LoginState, is_judged: bool) -> None:
    """A request is refused for a reason that holds, or goes one way, and is held if that fits."""
    try:
        treatment = treatment_of(head, size, service, login, is_judged=is_judged)
    except UnsupportedApi:
        assert head.api_key not in service.apis
    except UnsupportedVersion:
        assert head.version not in versions_of(service, head.api_key) and head.api_key != ApiKey.API_VERSIONS
    except InvalidFrameSize:
        assert size > MOST_LOGIN_BYTES
    except ProtocolError:
        assert service.authenticates and login is not DONE and head.api_key not in LOGIN
    else:
        check(treatment, head, size, service, login, is_judged=is_judged)


def check(
    treatment: Treatment, head: RequestHead, size: int, service: Service, login: LoginState, *, is_judged: bool
) -> None:
    assert treatment.api is service.apis[head.api_key]
    is_spoken = head.version in versions_of(service, head.api_key)
    assert is_spoken == (treatment.passage is not Passage.ANSWER)
    is_login = head.api_key in LOGIN
    assert is_login == (treatment.passage in (Passage.LOG_IN, Passage.WATCH))
    assert not is_login or (treatment.passage is Passage.LOG_IN) == service.authenticates
    assert not is_login or size <= MOST_LOGIN_BYTES
    assert treatment.passage is not Passage.FORWARD or (service.forwards and treatment.api.is_forwarded)
    assert treatment.is_judged == (is_judged and treatment.passage in (Passage.PASS, Passage.FORWARD))
    assert not treatment.is_held or size <= MOST_WHOLE_BYTES
    if service.authenticates and treatment.passage in (Passage.PASS, Passage.FORWARD):
        assert login is DONE or (login is ABSENT and head.api_key == ApiKey.API_VERSIONS)


def versions_of(service: Service, api_key: int) -> range:
    api = service.apis[api_key]
    return range(api.oldest, api.newest + 1)


@pytest.mark.parametrize(
    ("api", "version", "is_judged", "passage"),
    [
        (ApiKey.PRODUCE, 9, False, Passage.PASS),
        (ApiKey.METADATA, 12, True, Passage.PASS),
        (ApiKey.API_VERSIONS, 5, False, Passage.ANSWER),
        (ApiKey.SASL_AUTHENTICATE, 2, False, Passage.LOG_IN),
        (ApiKey.CREATE_TOPICS, 7, True, Passage.FORWARD),
        (ApiKey.OFFSET_COMMIT, 9, True, Passage.PASS),
        (ApiKey.UPDATE_FEATURES, 1, False, Passage.FORWARD),
        (ApiKey.UNREGISTER_BROKER, 0, False, Passage.FORWARD),
    ],
)
def test_where_requests_go(api: ApiKey, version: int, is_judged: bool, passage: Passage) -> None:
    """With `identity=envelope`, changes of metadata go to the controller, the rest to brokers."""
    service = Service(WITHOUT_DELEGATION_TOKENS, authenticates=True, forwards=True)
    treatment = treatment_of(RequestHead(api, version, 0), 100, service, DONE, is_judged=is_judged)
    assert (treatment.passage, treatment.is_judged) == (passage, is_judged)
