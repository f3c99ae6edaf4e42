"""The bugs that the detector is tried with still fit the program, and it finds two of them."""

from pathlib import Path

import pytest

from tests.faults.detector.__main__ import found_in
from tests.faults.detector.checks import judge
from tests.faults.detector.clients import Habits
from tests.faults.detector.experiment import Plan
from tests.faults.detector.history import load
from tests.faults.planted import BUGS, TEN, planting
from tests.support.zookeeper import ZooKeeperEnsemble

QUICK = Habits(pause_seconds=0.02, brokers=0.0, acls=0.0, validates=0.3)


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_has_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each replaces what is still there, and says what it is."""
    replaced: list[str] = []

    def put_in(owner: object, name: str, bug: object) -> None:
        monkeypatch.setattr(owner, name, bug)
        replaced.append(name)

    monkeypatch.setattr(planting, "put_in", put_in)
    BUGS[name].plant()
    assert replaced and BUGS[name].sentence.endswith(".")


def test_ten_bugs_are_of_every_kind() -> None:
    """`make faults` looks for ten different bugs."""
    assert len(set(TEN)) == 10
    assert BUGS.keys() >= set(TEN)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["legacy_keeps_the_rest", "validation_writes"])
def test_a_planted_bug_is_found(name: str, tmp_path: Path, ensemble: ZooKeeperEnsemble, chroot: str) -> None:
    """The verdict names what the bug does, and the history that is kept shows it again."""
    kept = tmp_path / "kept"
    plan = Plan(seed=name, seconds=60.0, window_seconds=1.5, floods=(), habits=[QUICK] * 4, kept=kept)
    _, anomalies = found_in(tmp_path, ensemble, plan, name, chroot=chroot)
    assert anomalies, "not found"
    (path, *_) = kept.iterdir()
    assert judge(load(path)).anomalies
