"""Asks a real Kafka 3.9.1 all scenarios and writes what it answered to recordings/: `python -m
tests.conformance.record`.

Needs Java and Maven (Kafka's jars come from Maven Central, once). Documentation of configs is
Kafka's own prose: it is replaced by a mark before the answer is written, for that it is there is
all that is compared.
"""

import json
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.conformance.case import Case
from tests.conformance.recording import RECORDINGS
from tests.conformance.scenario import KAFKA_SETTINGS, SCENARIOS, SECURED, Outcome, Performer, login
from tests.support.kafka import KAFKA_VERSION, KafkaCluster, running_kafka
from tests.support.wire import response_frame

MARK = "documented"
SETTLING_SECONDS = 1.0
"""A change of configs takes Kafka less to reach its own node; what to wait for is not known before
it is recorded.
"""


def record(cluster: KafkaCluster, scenarios: Mapping[str, Sequence[Case]], names: Collection[str]) -> None:
    """Every scenario on node 1, which is the controller; all of them, because each begins where the
    last one ended.
    """
    performer = Performer(cluster.addresses[1])
    for name, cases in scenarios.items():
        rows = []
        for case in cases:
            if case.settles:
                time.sleep(SETTLING_SECONDS)
            rows.append(row(performer.perform(case)))
        if name in names:
            head = {
                "recorded_from": f"Apache Kafka {KAFKA_VERSION}, ZooKeeper mode, three brokers, node 1, its controller",
                "addresses": cluster.addresses,
                "settings": cluster.settings,
                "topic_ids": dict(performer.topic_ids),
                **tokens(performer),
            }
            write(RECORDINGS / f"{name}.json", head, rows)
    performer.close()


def tokens(performer: Performer) -> dict[str, Any]:
    if not performer.tokens:
        return {}
    return {"tokens": {name: asdict(token) for name, token in performer.tokens.items()}}


def row(outcome: Outcome) -> dict[str, Any]:
    result: dict[str, Any] = {"case": outcome.case.key, "request": outcome.request.hex()}
    if outcome.frame is None:
        return {**result, "ended": outcome.ended}
    return {**result, "response": without_prose(outcome).hex()}


def without_prose(outcome: Outcome) -> bytes:
    """The frame as it was, unless it documents configs."""
    frame = outcome.frame
    assert frame is not None
    if outcome.case.api != "DescribeConfigs" or not outcome.case.body.get("include_documentation"):
        return frame
    answer = outcome.answer or {}
    for result in answer["results"]:
        for config in result["configs"]:
            config["documentation"] = MARK if config["documentation"] else config["documentation"]
    return response_frame(
        outcome.case.api, outcome.case.version, answer, header=frame[: 5 if outcome.case.version >= 4 else 4]
    )


def write(path: Path, head: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Write a recording with a line for each case, so that changes of it can be read."""
    lines = ",\n".join("  " + json.dumps(each) for each in rows)
    top = json.dumps(head, indent=1)[1:-2]
    path.write_text("{" + top + ',\n "outcomes": [\n' + lines + "\n ]\n}\n")


def main() -> None:
    names = sys.argv[1:] or [*SCENARIOS, *SECURED]
    if any(name in SCENARIOS for name in names):
        with running_kafka() as cluster:
            record(cluster, SCENARIOS, names)
    if any(name in SECURED for name in names):
        with running_kafka(settings=KAFKA_SETTINGS, login=login("admin")) as cluster:
            record(cluster, SECURED, names)


if __name__ == "__main__":
    main()
