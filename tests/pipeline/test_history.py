"""Histories for benchmarks are as real as what they are made of."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import trio

from benchmarks.history import Base, write_history
from benchmarks.history_recording import record
from minicontroller.audit.event import Decision
from minicontroller.audit.reading import read_all
from minicontroller.audit.verifying import Verification

REQUESTS, FAILOVERS, CLUSTERS, DAYS = 250, 2, 2, 10.0
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    folder = tmp_path_factory.mktemp("base")
    trio.run(partial(record, folder, requests=REQUESTS, failovers=FAILOVERS))
    return Base(folder)


def test_a_history_is_whole(base: Base, tmp_path: Path) -> None:
    """Runs one after the other are one history to `audit verify`: no gap, and every state before is
    what the events before it give.
    """
    events = 5 * len(base)
    *_, written = write_history(base, tmp_path, events=events - 1, clusters=CLUSTERS, days=DAYS)
    assert written == events
    assert list(Verification([tmp_path]).findings()) == []


def test_a_history_is_of_many_people(base: Base, tmp_path: Path) -> None:
    """People are unequally busy, some are refused by a rule, some requests are forwarded, and
    several controllers follow each other.
    """
    for _ in write_history(base, tmp_path, events=1, clusters=1, days=DAYS):
        pass
    events = [located.event for located in read_all([tmp_path])]
    decisions = [event for event in events if isinstance(event, Decision)]
    asked = Counter(event.principal for event in decisions)
    assert len(asked) > 20
    assert asked.most_common(1)[0][1] > 3 * len(decisions) / len(asked)
    assert {event.policy.decision for event in decisions if event.policy} == {"allowed", "violated"}
    assert any(event.received_node != event.decided_node for event in decisions)
    assert {event.epoch for event in events if event} >= set(range(1, FAILOVERS + 2))
    times = [event.time_ms for event in events if event]
    assert DAYS * 0.9 < (max(times) - min(times)) / DAY_MS <= DAYS
