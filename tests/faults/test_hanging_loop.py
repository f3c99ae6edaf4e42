"""A controller whose process lives and whose event loop hangs."""

import signal
import time
from pathlib import Path

import pytest

from tests.faults.agreement import expect_nothing_lost
from tests.faults.conftest import Record
from tests.faults.stream import streaming
from tests.faults.tree import Tree
from tests.support.nodes import running_nodes
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.slow

WATCHDOG_MS = 1_000
SLEEPY = """\
\"\"\"Whatever an operator may have put there: SIGUSR1 makes the thread of the loop sleep until a file is there.\"\"\"

import signal
import time
from pathlib import Path


def sleep(*_):
    while not Path(__file__).with_name("awake").exists():
        time.sleep(0.01)


signal.signal(signal.SIGUSR1, sleep)
"""


def test_a_controller_that_hangs_gives_its_session_up(
    tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`controller.watchdog.timeout.ms`: its heartbeats would keep the session alive, so a thread
    ends it; another one rules while the loop still hangs, and the one that hung follows.
    """
    (tmp_path / "sitecustomize.py").write_text(SLEEPY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    settings = {"controller.watchdog.timeout.ms": str(WATCHDOG_MS)}
    zookeepers = [ensemble.connect + chroot] * 3
    with running_nodes(tmp_path, zookeepers, settings) as nodes, Tree(ensemble.connect, chroot) as tree:
        controller = nodes.controller()
        epoch = tree.controller_epoch
        with streaming(nodes.others(controller)) as stream:
            stream.wait_acknowledged(20)
            vacancy = tree.vacancy()
            hung_at = time.monotonic()
            controller.signal(signal.SIGUSR1)
            succeeded_at = until(lambda: vacancy.seen_at and stream.first_after(vacancy.seen_at))
            assert vacancy.seen_at is not None and succeeded_at is not None
            (tmp_path / "awake").touch()
            until(
                lambda: (
                    controller.broker_id in tree.brokers
                    and controller.metadata(version=1)["controller_id"] != controller.broker_id
                )
            )
            stream.wait_acknowledged(20)
        record("seconds_from_hang_to_vacancy", vacancy.seen_at - hung_at)
        record("seconds_from_vacancy_to_next_create", succeeded_at - vacancy.seen_at)
        assert "the session is given up" in controller.output
        assert tree.controller_epoch == epoch + 1
        expect_nothing_lost(nodes, tree, stream)
