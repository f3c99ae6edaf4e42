"""The audit log of controllers that are killed, one after the other."""

import contextlib
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from minicontroller.audit.event import Decision, Effect
from minicontroller.audit.reading import read_all
from minicontroller.audit.replay import Replay
from minicontroller.audit.verifying import Verification
from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.stream import create, created, creation
from tests.faults.tree import Tree
from tests.support.cluster import MiniCluster
from tests.support.nodes import Nodes, running_nodes
from tests.support.wire import ConnectionEndedError, Wire, read_answer
from tests.support.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.slow


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    return tmp_path / "audit"


@pytest.fixture(name="nodes")
def nodes_fixture(tmp_path: Path, folder: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> Iterator[Nodes]:
    """Three nodes that answer only what is safe in the audit log."""
    settings = {"audit.dir": str(folder), "audit.flush": "always"}
    with running_nodes(tmp_path, [ensemble.connect + chroot] * 3, settings) as nodes:
        yield nodes


def note(acknowledged: set[str], name: str, wire: Wire) -> None:
    code = created(read_answer("CreateTopics", 7, wire.receive()))
    assert code in {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT}
    if code == ErrorCode.NONE:
        acknowledged.add(name)


def test_controllers_killed_in_a_row(nodes: Nodes, tree: Tree, folder: Path) -> None:
    """SIGKILL amid creations, twice: with `audit.flush=always` each topic that was acknowledged is
    in the log; `verify` finds nothing but what the dead ones could not finish; and the replay of
    all epochs is what ZooKeeper holds.
    """
    acknowledged: set[str] = set()
    for reign in range(2):
        controller = nodes.controller()
        with nodes.others(controller)[0].wire() as wire:
            names = [f"topic-{reign}-{number}" for number in range(60)]
            for name in names:
                wire.send(wire.frame("CreateTopics", 7, creation(name)))
            for name in names[:20]:
                note(acknowledged, name, wire)
            controller.kill()
            for name in names[20:]:
                note(acknowledged, name, wire)
            assert create(wire, f"last-{reign}") == ErrorCode.NONE
            acknowledged.add(f"last-{reign}")
        nodes.start(controller.broker_id)
    for node in nodes:
        node.stop()
    verification = Verification([folder])
    kinds = {finding.kind for finding in verification.findings()}
    assert kinds <= {"torn", "snapshot"}, "what was committed and never answered is the snapshot's to tell"
    assert len(verification.summary.epochs) >= 3
    events = [located.event for located in read_all([folder]) if located.event is not None]
    applied = {event.name for event in events if isinstance(event, Decision) and event.effect is Effect.APPLIED}
    assert acknowledged and acknowledged <= applied
    assert len({event.decided_node for event in events}) >= 2
    replay = Replay()
    for event in events:
        list(replay.apply(event))
    assert sorted(replay.topics) == tree.children("/brokers/topics")


REQUESTS = 400
"""More than are answered."""


class Asker:
    """A connection with many requests on their way: topics to be made, and names that nobody may
    have. What is sent was encoded before, and what came is decoded afterwards, so that the blow
    falls while the answer is warm.
    """

    def __init__(self, address: str, number: int) -> None:
        self._wire = Wire(address)
        self._names = [f"{'a/b' if each % 3 == 2 else 'topic'}-{number}-{each}" for each in range(REQUESTS)]
        self._frames = iter(
            [self._wire.frame("CreateTopics", 7, creation(name, partitions=1, replicas=1)) for name in self._names]
        )
        self._answers: list[bytes] = []

    def ask(self, count: int) -> None:
        self._wire.send(b"".join(itertools.islice(self._frames, count)))

    def listen(self) -> None:
        self._answers.append(self._wire.receive())

    def listen_to_the_end(self) -> None:
        """Read the answers that came before the other side died."""
        with self._wire, contextlib.suppress(ConnectionEndedError):
            while True:
                self.listen()

    @property
    def told(self) -> dict[str, int]:
        """The error code that was answered, by name."""
        codes = [created(read_answer("CreateTopics", 7, answer)) for answer in self._answers]
        return dict(zip(self._names, codes, strict=False))


@pytest.mark.parametrize("seed", range(8))
def test_killed_under_load(seed: int, folder: Path) -> None:
    """SIGKILL at any moment of a burst on several connections: with `audit.flush=always` each
    decision that was answered, also where it was refused, is in the files as it was answered. (What
    a broken machine leaves of them is for fsync: tests/audit/test_always.py.)
    """
    choice = random.Random(seed)
    cluster = MiniCluster(brokers=1, settings={"audit.dir": str(folder), "audit.flush": "always"})
    cluster.start()
    askers = [Asker(cluster.bootstrap, number) for number in range(choice.randint(1, 4))]
    for asker in askers:
        asker.ask(choice.randint(1, 60))
    for _ in range(choice.randint(1, 300)):
        asker = choice.choice(askers)
        asker.listen()
        asker.ask(1)
    cluster.kill()
    for asker in askers:
        asker.listen_to_the_end()
    events = [located.event for located in read_all([folder])]
    recorded = {event.name: event.error_code for event in events if isinstance(event, Decision)}
    told = {name: code for asker in askers for name, code in asker.told.items()}
    assert set(told.values()) <= {ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert told.items() <= recorded.items()
