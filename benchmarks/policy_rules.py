"""`python -m benchmarks.policy_rules`: what a request costs that fifty rules judge, beside a class
in Python that judges the same.

Rule: the same sample of requests for both, in turns, and every verdict is compared before anything
is timed.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import trio

from minicontroller.admin.policy.process import PolicyProcess
from minicontroller.admin.policy.runner import PolicyRunner
from minicontroller.policies import ClusterState, CreateTopicRequest, PolicyViolation, TopicManagementPolicy
from minicontroller.policies.loading import POLICY_KEY
from minicontroller.policies.rules.mistakes import RuleSource
from minicontroller.policies.rules.ruleset import RuleSet, load_rules
from minicontroller.policies.states import ClusterSnapshot, requested_state, topic_state

RULES = 50
REQUESTS = 1000
ROUNDS = 5
GOAL_SECONDS = 0.001

CONDITIONS = (
    "after.num_partitions <= {limit}",
    "after.replication_factor >= 3 || after.num_partitions > {limit}",
    '!("retention.ms" in after.configs) || int(after.configs["retention.ms"]) <= 86400000{limit}',
    'request.topic.startsWith("sales.") || principal == "User:team-{limit}"',
    'request.topic.matches("^[a-z][a-z0-9-]*\\\\.[a-z][a-z0-9-]*\\\\.[A-Za-z0-9-]{{1,{limit}}}$")',
)
"""One after the other, with limits that all hold: the dearest case, because every rule is asked to
its end.
"""


class InPython(TopicManagementPolicy):
    """The fifty rules, as somebody would write them in Python."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        state = request.requested_state
        for limit in range(60, 60 + RULES // len(CONDITIONS)):
            retention = state.configs.get("retention.ms")
            if (
                state.num_partitions > limit
                or (state.replication_factor < 3 and state.num_partitions <= limit)
                or (retention is not None and int(retention) > int(f"86400000{limit}"))
                or not (request.topic.startswith("sales.") or request.principal == f"User:team-{limit}")
                or not named_well(request.topic, limit)
            ):
                raise PolicyViolation("no")


def named_well(topic: str, limit: int) -> bool:
    parts = topic.split(".")
    return len(parts) == 3 and all(part.replace("-", "").isalnum() for part in parts) and len(parts[2]) <= limit


def rule_file(match: str = "") -> RuleSet:
    rules = [
        f"[[rule]]\nname = 'r{index}'\noperations = ['create']\n{match}\n"
        f"condition = '''{CONDITIONS[index % len(CONDITIONS)].format(limit=60 + index // len(CONDITIONS))}'''\n"
        for index in range(RULES)
    ]
    return load_rules([RuleSource("benchmark.toml", "".join(rules).encode())])


def sample() -> list[CreateTopicRequest]:
    return [
        CreateTopicRequest(
            topic=f"sales.orders.topic-{number}",
            principal="User:alice",
            api="CreateTopics",
            requested_state=requested_state([[1, 2, 3]] * 12, {"retention.ms": str(3_600_000 + number)}),
        )
        for number in range(REQUESTS)
    ]


def seconds_each(judge: Callable[[CreateTopicRequest], object], requests: list[CreateTopicRequest]) -> float:
    began = time.perf_counter()
    for request in requests:
        judge(request)
    return (time.perf_counter() - began) / len(requests)


async def seconds_each_by(runner: PolicyRunner, requests: list[CreateTopicRequest], cluster: ClusterSnapshot) -> float:
    began = time.perf_counter()
    for request in requests:
        await runner.judge(request, cluster)
    return (time.perf_counter() - began) / len(requests)


async def measure() -> dict[str, float]:
    """Seconds a request: the median of the rounds."""
    cluster = ClusterSnapshot({f"sales.a.t{n}": topic_state([[1, 2, 3]]) for n in range(1000)}, cluster_size=3)
    requests, asked, apart, in_python = sample(), rule_file(), rule_file('topics = ["ops.*"]'), InPython()
    quota = load_rules(
        [RuleSource("quota.toml", b"[[quota]]\nowned = 'sales.*'\nmax_topics = 5000\nmax_partitions = 50000\n")]
    )
    process = PolicyProcess({POLICY_KEY: f"{__file__}:InPython"}, timeout_ms=5000)
    await process.start()
    for request in requests:
        assert asked.judge(request, cluster) == apart.judge(request, cluster) == ()
        in_python.validate_create_topic(request, cluster)
    runners = {
        "the runner, 50 rules": PolicyRunner(rules=asked),
        "the runner, 50 rules whose match fails": PolicyRunner(rules=apart),
        "the runner, the class in Python": PolicyRunner(process),
    }
    lines: dict[str, Callable[[CreateTopicRequest], object]] = {
        "50 rules": partial(_judge, asked, cluster),
        "50 rules whose match fails": partial(_judge, apart, cluster),
        "the class in Python": partial(_ask, in_python, cluster),
        "one quota over 1,000 topics": partial(_judge, quota, cluster),
    }
    rounds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, judge in lines.items():
            rounds.setdefault(name, []).append(seconds_each(judge, requests))
        for name, runner in runners.items():
            rounds.setdefault(name, []).append(await seconds_each_by(runner, requests, cluster))
    for runner in runners.values():
        await runner.close()
    return {name: statistics.median(found) for name, found in rounds.items()}


def _judge(rules: RuleSet, cluster: ClusterState, request: CreateTopicRequest) -> object:
    return rules.judge(request, cluster)


def _ask(policy: TopicManagementPolicy, cluster: ClusterState, request: CreateTopicRequest) -> None:
    policy.validate_create_topic(request, cluster)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    found = trio.run(measure)
    for name, seconds in found.items():
        ratio = seconds / found["the class in Python" if "runner" not in name else "the runner, the class in Python"]
        print(f"{name:42} {seconds * 1e6:8.1f} us a request   {ratio:5.2f} of the class in Python")
    within = found["the runner, 50 rules"] < GOAL_SECONDS
    print(f"50 rules within {GOAL_SECONDS * 1000:g} ms: {'yes' if within else 'no'}")


if __name__ == "__main__":
    main()
