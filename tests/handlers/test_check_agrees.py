"""`policy check --request` and the server say the same of the same request, whatever the rules, the
topic and the change.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from minicontroller.cli.policy_cases import judged, read_request
from minicontroller.policies import TopicManagementPolicy
from minicontroller.policies.rules.ruleset import read_rule_files
from minicontroller.policies.verdict import refusal
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.handlers.altering import BROKER, TOPIC
from tests.handlers.ruling import Ruling, creating, ruling, wanted

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
NEW = ("sales.new", "ops.new", "sales.eu.new", "x", TRANSACTIONS)
THERE = ("sales.orders", "ops.orders", OFFSETS)
PRINCIPALS = (None, "User:sales", "User:sales.eu", "User:ops", "User:ANONYMOUS", "User:*")
TEXTS: Mapping[str, tuple[str, ...]] = {
    "retention.ms": ("5", " +5", "-1", "604800001", "007"),
    "retention.bytes": ("-2", "9007199254740993", "12"),
    "cleanup.policy": ("compact", " compact", "compact,compact", "delete", "compact,delete"),
    "unclean.leader.election.enable": ("TRUE", " true", "false"),
    "min.insync.replicas": ("1", " 02", "3"),
    "local.retention.ms": ("-2", "4"),
}
OF_BROKERS: Mapping[str, tuple[str, ...]] = {
    "log.retention.ms": ("5", " -1", "604800001"),
    "log.cleanup.policy": ("compact", "delete,delete"),
    "unclean.leader.election.enable": ("TRUE", "false "),
    "log.segment.bytes": (" 1000000",),
}
RULES = (
    "[[name_pattern]]\npattern = '{user}[.].+'",
    "[[name_pattern]]\npattern = '(sales|__).*'",
    "[[partitions]]\nmax = 3",
    "[[partitions]]\nmax = 2\ntopics = ['__*', '{user}.*']",
    "[[replication]]\nmin = 2",
    "[[config_bounds]]\nconfigs = { 'retention.ms' = { max = 604800000, min = 5 }, 'local.retention.ms' = { max = 4 } }",
    "[[config_bounds]]\nconfigs = { 'cleanup.policy' = { allowed = ['delete', ' compact , delete'] } }",
    "[[config_bounds]]\nexcept_topics = '{user}.*'\nconfigs = { 'min.insync.replicas' = { min = 2 }, 'retention.bytes' = { max = 9007199254740992, absent = 'allow' } }",
    "[[config_bounds]]\ntopics = 'ops.*'\nconfigs = { 'unclean.leader.election.enable' = { allowed = 'FALSE' }, 'retention.ms' = { max = 604800000 } }",
    "[[protected_topics]]\ntopics = ['__*', 'ops.*']\nexcept_principals = 'User:ops'",
    "[[quota]]\nowned = '{user}.*'\nmax_topics = 1\nmax_partitions = 3",
    "[[change_window]]\ndays = 'mon-sun'",
    "[[rule]]\nname = 'names'\noperations = ['create', 'alter']\ncondition = '!after.internal || request.automatic || before != null && before.configs == after.configs'",
    "[[rule]]\nname = 'effective'\noperations = ['create', 'alter']\ncondition = 'int(after.effective_configs[\"min.insync.replicas\"]) <= after.replication_factor'",
    "[[rule]]\nname = 'raw'\noperations = ['create', 'alter']\ncondition = '!after.raw_configs.exists(k, after.raw_configs[k].startsWith(\" \"))'",
    "[[rule]]\nname = 'chosen'\noperations = ['create', 'alter']\ncondition = 'after.generated_replica_assignments || request.config_operations != null'",
    "[[rule]]\nname = 'operations'\noperations = ['alter', 'alter_broker']\ncondition = 'request.config_operations == null || !request.config_operations.exists(k, request.config_operations[k] == \"compact\" || request.config_operation_kinds[k] == \"delete\")'",
    "[[rule]]\nname = 'brokers'\noperations = 'alter_broker'\ncondition = 'after.effective_configs[\"retention.ms\"] != \"5\" || principal == null'",
)
BEFORE: Mapping[str, Mapping[str, Any]] = {
    "sales.orders": {"partitions": 2, "replication": 2, "configs": {"min.insync.replicas": " 2", "retention.ms": "5"}},
    "ops.orders": {"partitions": 3, "replication": 3, "configs": {}},
    OFFSETS: {"partitions": 1, "replication": 1, "configs": {"cleanup.policy": "compact"}},
}
ASKED = 40


def toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


class Asking:
    """One random request, as a client sends it and as a file describes it."""

    def __init__(self, random: Random) -> None:
        self.principal = random.choice(PRINCIPALS)
        told: dict[str, Any] = {}
        match random.choice(["create", "create", "grow", "alter", "alter", "broker"]):
            case "create":
                name, partitions, replication = random.choice(NEW), random.randint(1, 4), random.randint(1, 3)
                configs = some(random, TEXTS)
                self.request: Any = creating(wanted(name, partitions, replication, configs=configs), validate_only=True)
                after = {"partitions": partitions, "replication": replication, "configs": configs}
                told = {"operation": "create", "topic": name, "after": after}
            case "grow":
                name = random.choice(THERE)
                count = BEFORE[name]["partitions"] + random.randint(1, 2)
                topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
                self.request = CreatePartitionsRequest(topics=[topic], timeout_ms=9_000, validate_only=True)
                told = {"operation": "alter", "api": "CreatePartitions", "topic": name, "after": {"partitions": count}}
            case "alter":
                name = random.choice(THERE)
                configs = changed(random, BEFORE[name]["configs"], TEXTS)
                self.request = altering(TOPIC, name, BEFORE[name]["configs"], configs)
                told = {"operation": "alter", "topic": name, "after": {"configs": configs}}
            case _:
                broker = random.choice(["", "1"])
                configs = changed(random, {}, OF_BROKERS)
                self.request = altering(BROKER, broker, {}, configs)
                told = {"operation": "alter_broker", "broker": broker, "after": {"configs": configs}}
        who = {} if self.principal is None else {"principal": self.principal}
        self.told = {**told, **who, "validate_only": True, "client_id": "tests", "client_host": "10.0.0.9"}

    def file(self, path: Path) -> Path:
        cluster = {"cluster_size": 3, "topics": BEFORE}
        path.write_text(f"request = {toml(self.told)}\ncluster = {toml(cluster)}\n")
        return path


def some(random: Random, texts: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {key: random.choice(texts[key]) for key in random.sample(sorted(texts), random.randint(0, 2))}


def changed(random: Random, before: Mapping[str, str], texts: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    kept = {key: value for key, value in before.items() if random.random() < 0.7}
    after = {**kept, **some(random, texts)}
    return after if after != before else {**after, next(iter(texts)): "5"}


def altering(
    kind: int, name: str, before: Mapping[str, str], after: Mapping[str, str]
) -> IncrementalAlterConfigsRequest:
    sets = [
        IncrementalAlterableConfig(name=k, config_operation=0, value=v) for k, v in after.items() if before.get(k) != v
    ]
    deletes = [IncrementalAlterableConfig(name=k, config_operation=1, value=None) for k in before if k not in after]
    resource = IncrementalAlterConfigsResource(resource_type=kind, resource_name=name, configs=[*sets, *deletes])
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)


async def answer_of(cluster: Ruling, asking: Asking) -> tuple[int, str | None]:
    version = {"CreateTopicsRequest": 7, "CreatePartitionsRequest": 3}.get(type(asking.request).__name__, 1)
    answer = await cluster.ask(asking.request, version, principal=asking.principal)
    [row] = next(getattr(answer, rows) for rows in ("topics", "results", "responses") if hasattr(answer, rows))
    return row.error_code, row.error_message


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_asked(seed: int, tmp_path: Path) -> None:
    """A request that the server refuses for the rules is refused by the check, in the same words,
    and what passes there passes here.
    """
    random = Random(seed)
    rules = tmp_path / "rules.toml"
    chosen = random.sample(RULES, random.randint(2, 6))
    rules.write_text(
        "\n".join(
            text.replace("]]\n", f"]]\nname = 'rule {i}'\n", 1) if "name =" not in text else text
            for i, text in enumerate(chosen)
        )
    )
    outcomes: list[int] = []

    async def compare() -> None:
        async with ruling({"policy.rules.files": str(rules)}, policy=TopicManagementPolicy()) as cluster:
            cluster.node.port.policy, policy = None, cluster.node.port.policy
            await cluster.make(
                *(
                    wanted(name, each["partitions"], each["replication"], configs=each["configs"])
                    for name, each in BEFORE.items()
                )
            )
            cluster.node.port.policy = policy
            for _ in range(ASKED):
                asking = Asking(random)
                code, message = await answer_of(cluster, asking)
                outcome = judged(read_request(asking.file(tmp_path / "request.toml")), read_rule_files([rules]))
                denied = refusal(outcome.findings)
                shown = rules.read_text(), asking.told, outcome
                assert code in {ErrorCode.NONE, ErrorCode.POLICY_VIOLATION}, (message, *shown)
                assert (code == ErrorCode.POLICY_VIOLATION) is (denied is not None), (message, *shown)
                assert denied is None or denied.message == message, shown
                outcomes.append(code)

    trio.run(compare)
    assert len(outcomes) == ASKED
