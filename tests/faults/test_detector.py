"""A short run of the program that `make faults` is: everything at once, in an order that only a
seed knows.
"""

import os
from pathlib import Path

import pytest

from tests.faults.conftest import Record
from tests.faults.detector.arena import running_arena
from tests.faults.detector.experiment import Experiment, Plan
from tests.faults.detector.history import waited
from tests.faults.detector.troubles import TROUBLES
from tests.support.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.slow

SEED = os.environ.get("MINICONTROLLER_FAULTS_SEED", "590")
SECONDS = 12.0


async def test_what_was_answered_is_what_happened(
    tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str, record: Record
) -> None:
    """K590-2a: through any mix of faults each topic, and the configs of each node and of all of
    them, have an order of its operations that explains every answer and what the tree holds in the
    end, nothing is half done, and every node tells what the tree holds.
    """
    plan = Plan(seed=SEED, seconds=SECONDS, troubles=tuple(TROUBLES), calm=0.0)
    with running_arena(tmp_path, ensemble, chroot, completion="local") as arena:
        windows = [told async for told in Experiment(arena, plan).run()]
    record("operations", sum(told.operations for told in windows))
    record("in_doubt", sum(told.doubts for told in windows))
    record("worst_seconds", max(waited(told.slowest) for told in windows if told.slowest is not None))
    anomalies = [anomaly for told in windows for anomaly in told.verdict.anomalies]
    assert not anomalies, f"seed {SEED}, windows {[told.window.troubles for told in windows]}:\n" + "\n".join(
        f"{anomaly.name}: {anomaly.text}" for anomaly in anomalies
    )
