"""An older AlterConfigPolicy is asked what a real Kafka 3.9.2 asks it, request by request."""

from typing import Any

import pytest

from minicontroller.policies.legacy import AlterConfigMetadata, LegacyPolicies
from minicontroller.protocol.messages import alter_configs, incremental_alter_configs
from tests.conformance.releases.kafkas import read
from tests.conformance.releases.policies import CASES, PRESENT, Asked
from tests.handlers.altering import codes
from tests.handlers.ruling import ruling, wanted

RECORDED: list[list[Any]] = read("policies")
OPERANDS, RESULTS = 1, 4
"""The columns of Kafka 3.9.2: as it is, and with alter.config.policy.kraft.compatibility.enable."""
OTHERWISE = {
    "SET to the same in another form": "policies see each value in its one form",
    "broker: SET in another form of the id": "policies see each broker by its one name",
    "an unknown operation": "the request is at fault, and answered so",
}
"""The cases that nodes handle otherwise, and why."""
ONLY_OPERANDS = {"DELETE with a value": "a policy sees that the key is deleted"}
"""The case that they handle otherwise where a policy sees what the request names."""


class Keeping:
    """An older policy that keeps what it is asked, in the form of the recording."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def validate(self, request_metadata: AlterConfigMetadata) -> None:
        resource, line = request_metadata.resource, [request_metadata.resource.type.name]
        line.append(resource.name)
        for key, value in sorted(request_metadata.configs.items()):
            line += [key, "-" if value is None else f"={value}"]
        self.asked.append(line)


def request_of(case: Asked, number: int) -> Any:
    module: Any = alter_configs if case.api == "AlterConfigs" else incremental_alter_configs
    body = case.body(number)
    (resource,) = body["resources"]
    kind = case.api.removesuffix("AlterConfigs")
    configs = [getattr(module, f"{kind}AlterableConfig")(**each) for each in resource["configs"]]
    element = getattr(module, f"{kind}AlterConfigsResource")(**{**resource, "configs": configs})
    return getattr(module, f"{case.api}Request")(resources=[element], validate_only=case.validate_only)


@pytest.mark.parametrize("column", [OPERANDS, RESULTS])
async def test_it_is_asked_as_in_kafka(column: int) -> None:
    """The same requests are asked about, with the same keys and values, and answered alike."""
    assert [row[0] for row in RECORDED] == [case.name for case in CASES]
    policy = Keeping()
    otherwise = {}
    async with ruling(policy=LegacyPolicies(alter=policy, shows_results=column == RESULTS)) as cluster:
        await cluster.make(*(wanted(f"policy-{number}", 1, 1, configs=PRESENT) for number in range(len(CASES))))
        for number, (case, row) in enumerate(zip(CASES, RECORDED, strict=True)):
            policy.asked = []
            version = 2 if case.api == "AlterConfigs" else 1
            (code,) = codes(await cluster.ask(request_of(case, number), version))
            if [code, policy.asked] != row[column]:
                otherwise[case.name] = [code, policy.asked], row[column]
    assert otherwise.keys() == {*OTHERWISE, *(ONLY_OPERANDS if column == OPERANDS else ())}, otherwise
