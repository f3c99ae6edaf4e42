"""Quotas count like Kafka's own classes, which run in `tests/java/quota-oracle`."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.quotas.client_quotas import ClientQuotas
from minicontroller.cluster.quotas.mutation_quota import MutationQuotas
from minicontroller.cluster.quotas.rates import SampledRate, Windows
from tests.support.java import java
from tests.support.kafka import kafka_libs
from tests.support.maven import needs_maven

ORACLE = Path(__file__).parents[1] / "java" / "quota-oracle" / "QuotaOracle.java"
LIMIT_SECONDS = 120
WORLDS = 300
STEPS = 40
USERS, CLIENTS = ("a", "b", "ANONYMOUS"), ("x", "y", "")
RATES = (0.0, 0.1, 1.0, 2.5, 10.0)


class World:
    """Some quotas, and the lines that tell the same to Kafka."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = 1_000_000
        self._windows = Windows(random.choice((2, 11)), random.choice((1, 2)) * 1000)
        self._limit = float(random.choice((1, 3, 10)))
        self._connections = SampledRate(self._windows)
        self._quotas = ClientQuotas()
        burst_seconds = self._windows.count * self._windows.size_ms / 1000
        self._changes = MutationQuotas(self._quotas, burst_seconds, lambda: self._now)
        self._levels = random.sample(("user", "client", "pair"), random.randint(1, 3))

    def steps(self) -> Iterator[tuple[str, str | None]]:
        """Yield lines for Kafka, each with our answer if there is one."""
        yield f"new\t{self._windows.count}\t{self._windows.size_ms // 1000}\t{self._limit}", None
        for _ in range(STEPS):
            step = self._random.choice(
                (self._quota, self._time, self._change, self._change, self._change, self._connect)
            )
            yield step()

    def _time(self) -> tuple[str, None]:
        elapsed = self._random.choice((1, 400, 1000, 5000, 60_000))
        self._now += elapsed
        return f"time\t{elapsed}", None

    def _quota(self) -> tuple[str, None]:
        level, choice = self._random.choice(self._levels), self._random.choice
        names = {
            "user": (choice((*USERS, None)), "-"),
            "client": ("-", choice(("x", "y", None))),
            "pair": (choice((*USERS, None)), choice(("x", "y", None))),
        }[level]
        rate = choice((*RATES, None))
        entity = {kind: name for kind, name in zip(("user", "client-id"), names, strict=True) if name != "-"}
        self._quotas.set(entity, {} if rate is None else {"controller_mutation_rate": str(rate)})
        user, client = ("<default>" if name is None else name for name in names)
        self._now += 1  # in the same millisecond Kafka still refuses what a removed quota forbade
        return f"quota\t{user}\t{client}\t{'-' if rate is None else rate}\ntime\t1", None

    def _change(self) -> tuple[str, str]:
        choice = self._random.choice
        user, client, count, strict = choice(USERS), choice(CLIENTS), choice((0, 1, 4, 30)), choice((True, False))
        quota = self._changes.of_request(user, client, strict=strict)
        refused = False
        try:
            quota.count("topic", count)
        except Refusal:
            refused = True
        line = f"change\t{'strict' if strict else 'permissive'}\t{user}\t{client}\t{count}"
        return line, f"{str(refused).lower()}\t{quota.throttle_ms()}"

    def _connect(self) -> tuple[str, str]:
        count = self._random.choice((1, 5, 20))
        self._connections.add(count, self._now)
        rate = self._connections.rate(self._now)
        return f"connect\t{count}", repr(rate) if rate > self._limit else "-"


@needs_maven
@pytest.mark.slow
def test_quotas_count_as_kafka_counts() -> None:
    """Among random quotas, each request is refused or throttled as in Kafka, and each burst of
    connections has the rate that Kafka sees.
    """
    random = Random(599)
    steps = [step for _ in range(WORLDS) for step in World(random).steps()]
    asked = "".join(f"{line}\n" for line, _ in steps)
    command = [*java(kafka_libs()), str(ORACLE)]
    run = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    answers = [(line, answer) for line, answer in steps if answer is not None]
    kafka = run.stdout.splitlines()
    assert len(kafka) == len(answers)
    kafka = [answer.replace("\t-1", "\t0") for answer in kafka]  # without end; on the wire it is 0
    wrong = [(line, ours, theirs) for (line, ours), theirs in zip(answers, kafka, strict=True) if ours != theirs]
    assert wrong == []
