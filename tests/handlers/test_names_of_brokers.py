"""However a broker is written, it is one: for the check of duplicates, for policies, in the audit
log and on the page.
"""

from pathlib import Path

import pytest

from minicontroller.policies import AlterBrokerConfigsRequest, ClusterState, PolicyViolation, TopicManagementPolicy
from minicontroller.policies.legacy import AlterConfigMetadata, LegacyPolicies
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages import alter_configs, incremental_alter_configs
from tests.audit.logs import decisions_in
from tests.handlers.altering import BROKER, BROKER_LOGGER, NODE_1, codes
from tests.handlers.ruling import ruling
from tests.rules.reading import rules

OTHERS = NODE_1[1:]
KEY = "log.cleaner.threads"


class Kept:
    """Broker 1 stays as it is."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def validate(self, request_metadata: AlterConfigMetadata) -> None:
        self.asked.append(request_metadata.resource.name)
        if request_metadata.resource.name == "1":
            raise PolicyViolation("kept")


def replacing(*names: str) -> alter_configs.AlterConfigsRequest:
    config = alter_configs.AlterableConfig(name=KEY, value="2")
    return alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=[config])
            for name in names
        ]
    )


def stepping(
    *names: str, kind: int = BROKER, key: str = KEY, value: str = "2"
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    config = incremental_alter_configs.IncrementalAlterableConfig(name=key, value=value)
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.IncrementalAlterConfigsResource(
                resource_type=kind, resource_name=name, configs=[config]
            )
            for name in names
        ]
    )


@pytest.mark.parametrize("name", NODE_1)
async def test_no_way_of_writing_it_passes_a_policy(name: str, tmp_path: Path) -> None:
    """The policy and the audit log get the broker's number, and the answer repeats the spelling of
    the request.
    """
    kept = Kept()
    async with ruling({"audit.dir": str(tmp_path)}, policy=LegacyPolicies(alter=kept)) as cluster:
        rows = [
            *(await cluster.ask(replacing(name), 2)).responses,
            *(await cluster.ask(stepping(name), 1)).responses,
        ]
        known = [(each.kind, each.name) for each in cluster.node.recent_decisions]
    assert [(row.resource_name, row.error_code) for row in rows] == [(name, ErrorCode.POLICY_VIOLATION)] * 2
    assert kept.asked == ["1", "1"]
    assert [(each.resource, each.name) for each in decisions_in(tmp_path)] == known == [("broker", "1")] * 2


RULES = """
[[rule]]
name = "kept"
operations = "alter_broker"
condition = 'request.broker != "1"'
"""


class InPython(TopicManagementPolicy):
    """Decides as `RULES` does."""

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        if request.broker == "1":
            raise PolicyViolation("kept")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    ("policy", "text"), [(TopicManagementPolicy(), RULES), (InPython(), "")], ids=["rules", "class"]
)
async def test_rules_and_classes(policy: TopicManagementPolicy, text: str, name: str) -> None:
    """Rules and classes are both asked about a change of a broker's configs, under its number."""
    async with ruling(policy=policy) as cluster:
        assert cluster.node.policy is not None
        if text:
            cluster.node.policy.use(rules(text))
        answers = [await cluster.ask(replacing(name), 2), await cluster.ask(stepping(name), 1)]
        default = await cluster.ask(stepping(""), 1)
    assert [codes(answer) for answer in answers] == [[ErrorCode.POLICY_VIOLATION]] * 2
    assert codes(default) == [0]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", [BROKER, BROKER_LOGGER])
async def test_one_broker_twice(name: str, kind: int, tmp_path: Path) -> None:
    """Two ways of writing it in one request are one resource that is there twice, which is refused
    both times, under its number.
    """
    async with ruling({"audit.dir": str(tmp_path)}) as cluster:
        answers = [await cluster.ask(stepping("1", name, kind=kind, key="root", value="INFO"), 1)]
        if kind == BROKER:
            answers.append(await cluster.ask(replacing(name, "1"), 2))
    for answer in answers:
        assert codes(answer) == [ErrorCode.INVALID_REQUEST] * 2
        assert all("at most once" in (row.error_message or "") for row in answer.responses)
    assert {each.name for each in decisions_in(tmp_path)} == {"1"}
