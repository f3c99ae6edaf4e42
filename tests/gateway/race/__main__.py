"""`python -m tests.gateway.race`: five clients ask one or two gateways, which enforce rules before
three brokers without ZooKeeper, for good and bad changes of the same topics at once.

At the end no topic breaks a rule, none has at any moment, and the audit logs and the cluster agree:
each log can be replayed without a finding and ends in the cluster's state, each change that a
client was told of is in a log, and no log has a change without a request that no gateway made.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import threading
import time
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

from minicontroller.audit.event import Decision, Effect, Observed
from minicontroller.audit.reading import read_all
from minicontroller.audit.replay import Replay
from minicontroller.audit.verifying import Verification
from tests.gateway.race.clients import LEAST_RETENTION, MOST_PARTITIONS, MOST_RETENTION, NONE, RULES, TOPIC, Racer
from tests.support.gateway import running_gateway
from tests.support.kafka_kraft import NEWEST_VERSION, KraftCluster, started
from tests.support.wire import Wire

CLIENTS, BROKERS, RESTING_SECONDS = 5, 3, 20.0
GOOD_POLICIES = ({"delete"}, {"compact", "delete"})
State = dict[str, tuple[str, int, dict[str, str]]]
"""The id, number of partitions and configs of each topic."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.race")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--gateways", type=int, default=2)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10_000)
    parser.add_argument("--kafka", default=NEWEST_VERSION)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started ends, too
    say(f"{chosen.gateways} gateways, {chosen.seconds:g} seconds, seed {chosen.seed}, Kafka {chosen.kafka}")
    folder = Path(tempfile.mkdtemp(prefix="race-"))
    found = race(folder, chosen.kafka, chosen.gateways, chosen.seconds, chosen.seed)
    if found:
        say(f"the logs are in {folder}")
    else:
        shutil.rmtree(folder)
    for text in found:
        say(f"FAULT {text}")
    say(f"{len(found)} faults")
    return 1 if found else 0


def race(folder: Path, version: str, gateways: int, seconds: float, seed: int) -> list[str]:
    """Race, and return what was wrong."""
    (folder / "rules.toml").write_text(RULES)
    kafka = folder / "kafka"
    kafka.mkdir()
    cluster = KraftCluster(kafka, version, BROKERS, {"auto.create.topics.enable": "true"}, controllers=BROKERS)
    with started(cluster), ExitStack() as stack:
        addresses = list(cluster.addresses.values())
        settings = {
            "policy.rules.files": f"{folder}/rules.toml",
            "audit.flush": "always",
            "metadata.max.age.ms": "2000",
        }
        logs = [folder / f"audit-{number}" for number in range(gateways)]
        places = []
        for number, log in enumerate(logs):
            own = {"audit.dir": str(log), "gateway.id": str(number)}
            places.append(
                stack.enter_context(running_gateway(",".join(addresses), settings={**settings, **own})).bootstrap
            )
        racers = [Racer(number, places, seed * 100 + number) for number in range(CLIENTS)]
        seen = _run(racers, addresses, seconds)
        time.sleep(RESTING_SECONDS)  # the gateways have read the whole since
        with Wire(addresses[0]) as direct:
            state = state_of(direct)
        answers = Counter(answer for racer in racers for answer in racer.answers)
    say(", ".join(f"{api} {code}: {count}" for (api, code), count in sorted(_codes(racers).items())))
    broken = [f"a connection broke: {text}" for racer in racers for text in racer.broken]
    return [*broken, *seen, *violations(state), *disagreements(logs, state, answers)]


def _codes(racers: Sequence[Racer]) -> Counter[tuple[str, int]]:
    total: Counter[tuple[str, int]] = Counter()
    for racer in racers:
        total += racer.codes
    return total


def _run(racers: Sequence[Racer], brokers: Sequence[str], seconds: float) -> list[str]:
    """Let the clients race while others watch the brokers. Return what was seen against a rule."""
    is_over, seen = threading.Event(), dict[str, None]()
    threads = [threading.Thread(target=racer.run, args=(is_over,)) for racer in racers]
    threads += [threading.Thread(target=_watch, args=(broker, is_over, seen)) for broker in brokers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    is_over.set()
    for thread in threads:
        thread.join()
    for racer in racers:
        racer.close()
    return list(seen)


def _watch(broker: str, is_over: threading.Event, seen: dict[str, None]) -> None:
    with Wire(broker) as wire:
        while not is_over.wait(0.2):
            seen.update(dict.fromkeys(violations(state_of(wire))))


def state_of(wire: Wire) -> State:
    topics = wire.ask("Metadata", 12, {"topics": None, "allow_auto_topic_creation": False})["topics"]
    there = {row["name"]: row for row in topics if not row["error_code"] and not row["is_internal"]}
    resources = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": None} for name in there]
    told = wire.ask("DescribeConfigs", 4, {"resources": resources})["results"] if resources else []
    own = {row["resource_name"]: _own(row["configs"]) for row in told if not row["error_code"]}
    return {
        name: (_id(row["topic_id"]), len(row["partitions"]), own[name]) for name, row in there.items() if name in own
    }


def _id(topic_id: object) -> str:
    """An id as the audit log writes it."""
    return urlsafe_b64encode(UUID(str(topic_id)).bytes).decode().rstrip("=")


def _own(configs: Sequence[dict[str, Any]]) -> dict[str, str]:
    return {row["name"]: row["value"] for row in configs if row["config_source"] == 1}


def violations(state: State) -> Iterator[str]:
    for name, (_, partitions, configs) in state.items():
        retention = int(configs.get("retention.ms", LEAST_RETENTION))
        policy = set(configs.get("cleanup.policy", "delete").split(","))
        if partitions > MOST_PARTITIONS or not LEAST_RETENTION <= retention <= MOST_RETENTION:
            yield f"{name} has {partitions} partitions and {configs}"
        if policy not in GOOD_POLICIES or name != name.lower():
            yield f"{name} has {configs}"


def disagreements(logs: Sequence[Path], state: State, answers: Counter[tuple[str, str, int]]) -> Iterator[str]:
    """Yield where the logs and the cluster do not agree."""
    carried_out: Counter[tuple[str, str]] = Counter()
    changed: list[Counter[str]] = []
    observed: list[list[Observed]] = []
    for log in logs:
        yield from (f"{log.name}: {finding}" for finding in Verification([log]).findings())
        replay, mine, others = Replay(), Counter[str](), list[Observed]()
        for event in (each.event for each in read_all([log])):
            if event is not None:
                yield from (f"{log.name}: {text}" for text in replay.apply(event))
            if isinstance(event, Observed) and not event.reassignment and not event.topic.startswith("__"):
                others.append(event)
            if isinstance(event, Decision):
                if event.effect is Effect.APPLIED or (event.effect is Effect.UNKNOWN and not event.error_code):
                    carried_out[event.api, event.name] += 1  # unknown: it was gone before a broker showed it
                if event.effect is not Effect.NONE:
                    mine[event.name] += 1
                if event.policy is None and not event.error_code:
                    yield f"{log.name}: {event.api} of {event.name} has no verdict: {event.unjudged}"
        changed.append(mine)
        observed.append(others)
        shown = {name: each for name, each in replay.topics.items() if not each.internal}
        ends = {name: (each.topic_id, len(each.replicas), dict(each.configs)) for name, each in shown.items()}
        yield from _ends(log.name, ends, state)
    for number, others in enumerate(observed):
        elsewhere = sum((each for other, each in enumerate(changed) if other != number), Counter[str]())
        for event in others:
            if not elsewhere[event.topic] and not _is_in_doubt(event, changed[number]):
                yield f"{logs[number].name}: {event.topic} changed without a request: {event.before} -> {event.after}"
            if (
                event.before and event.after and event.before.topic_id == event.after.topic_id
                and len(event.before.replicas) > len(event.after.replicas)
            ):  # fmt: skip
                yield f"{logs[number].name}: partitions of {event.topic} became fewer"
    told = Counter({(api, name): count for (api, name, code), count in answers.items() if code == NONE})
    for key, count in told.items():
        if carried_out[key] < count:
            yield f"{key} was carried out {count} times as clients were told, {carried_out[key]} times as the logs say"


def _is_in_doubt(event: Observed, mine: Counter[str]) -> bool:
    """Whether a topic was created automatically, of which the log knew no outcome in time."""
    return event.before is None and bool(mine[event.topic]) and event.topic.startswith(("auto-", "shared-"))


def _ends(log: str, ends: State, state: State) -> Iterator[str]:
    for name in sorted({*ends, *state}):
        if ends.get(name) != state.get(name):
            yield f"{log} ends with {name} as {ends.get(name)}, the cluster has {state.get(name)}"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
