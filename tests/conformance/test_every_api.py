"""Every API that clients may send is in the tables of the tests, so that none is left untested."""

import pytest

from minicontroller.admin.spec import Sender
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.registry import KAFKA
from tests.conformance.case import VERSIONS
from tests.conformance.differences import ADMIN_APIS
from tests.conformance.scenario import SCENARIOS, SECURED
from tests.support.specs import APIS
from tests.support.wire import MESSAGES

OF_CLIENTS = sorted(key for key, spec in APIS.items() if spec.sender is not Sender.NODE)


@pytest.mark.parametrize("key", OF_CLIENTS, ids=lambda key: key.name)
def test_an_api_of_clients_is_in_every_table(key: ApiKey) -> None:
    """An API can be sent by `Wire`, and is asked of Kafka in all of its versions."""
    api = KAFKA[key].request.__name__.removesuffix("Request")
    missing = [] if api in MESSAGES else ["MESSAGES in tests/support/wire.py (its request and response)"]
    if not any(case.api == api for cases in (*SCENARIOS.values(), *SECURED.values()) for case in cases):
        missing.append(
            "SCENARIOS in tests/conformance/scenario.py (its cases; python -m tests.conformance.record records)"
        )
    if api not in VERSIONS:
        missing.append("VERSIONS in tests/conformance/case.py (the versions that Kafka 3.9 speaks)")
    if key not in ADMIN_APIS:
        missing.append("ADMIN_APIS in tests/conformance/differences.py (its number)")
    assert not missing, f"controller/handlers serves {api}: add it to {', and to '.join(missing)}."
