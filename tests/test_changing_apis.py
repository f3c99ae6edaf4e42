"""An API that changes the cluster stands in every table that has to know it: those of rules, of the
replay of the audit log, of the command line, of gateways, and of the bounds on requests.
"""

import pytest

from minicontroller.admin.apis import SPECS
from minicontroller.admin.bounds import MAX_CHANGES, check_changes
from minicontroller.admin.spec import Spec
from minicontroller.audit.replay import ALTERATIONS, CREATE_TOPIC, DELETE_RECORDS, DELETE_TOPIC
from minicontroller.cli.policy_requests import KINDS
from minicontroller.cluster.errors import TooManyChanges
from minicontroller.gateway.judging.forms import FORMS
from minicontroller.policies.rules.possible import APIS
from minicontroller.policies.rules.vocabulary import ADMIN_OPERATIONS, OPERATION_OF_API
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.schema import Array, Nested, layout_of

CHANGING = {key: spec for key, spec in SPECS.items() if spec.changes}
OPERATIONS = {spec.api.name: spec.changes.operation for spec in CHANGING.values() if spec.changes}
REPLAYED = {CREATE_TOPIC, DELETE_TOPIC, DELETE_RECORDS, *ALTERATIONS}
"""The operations on topics, whose requests are replayed with the topic's state."""
UNBOUNDED = {
    (ApiKey.CREATE_DELEGATION_TOKEN, "renewers"): "a token is one change, whose bytes are bounded",
}
"""The arrays that may be longer than MAX_CHANGES, and why."""


def test_rules_can_name_every_changing_api() -> None:
    """A rule's condition on `request.api` may name each API that changes the cluster."""
    message = "name it in OPERATION_OF_API of policies/rules/vocabulary.py or APIS of policies/rules/possible.py"
    assert {*APIS} == {*OPERATIONS, "Metadata"}, message


def test_the_replay_knows_every_operation() -> None:
    """The audit log's replay, from which back-tests ask, knows each operation: with the state of a
    topic, or as one whose state policies do not see.
    """
    stateless = {api: operation for api, operation in OPERATIONS.items() if operation not in REPLAYED}
    message = "name it in ALTERATIONS of audit/replay.py or OPERATION_OF_API of policies/rules/vocabulary.py"
    assert stateless == OPERATION_OF_API, message


def test_the_command_line_knows_the_kind_of_every_operation() -> None:
    """`policy test` knows what each operation changes whose state policies do not see."""
    assert {*KINDS} == {*ADMIN_OPERATIONS}, "name it in KINDS of cli/policy_requests.py"


def test_gateways_judge_every_changing_api() -> None:
    """No request that changes the cluster passes a gateway without being judged and recorded."""
    assert {*FORMS} == {*CHANGING}, "give it a form in gateway/judging/forms/"


@pytest.mark.parametrize("spec", CHANGING.values(), ids=lambda spec: spec.api.name)
def test_what_a_request_names_is_bounded(spec: Spec) -> None:
    """A request with more than MAX_CHANGES elements in an array is refused."""
    for field in layout_of(spec.api.request).fields:
        if isinstance(field.kind, Array) and (spec.key, field.name) not in UNBOUNDED:
            element = field.kind.element.cls() if isinstance(field.kind.element, Nested) else ""
            request = spec.api.request()
            setattr(request, field.name, [element] * (MAX_CHANGES + 1))
            with pytest.raises(TooManyChanges):
                check_changes(request)
