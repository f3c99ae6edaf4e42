"""`make faults`: drive a cluster as people and the world do, and tell whether what was answered is
what happened.
"""

import argparse
import logging
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec
import trio

from tests.faults.detector.arena import running_arena
from tests.faults.detector.checks import ODD, TRACEBACK, Anomaly, judge
from tests.faults.detector.experiment import Experiment, Plan, Told
from tests.faults.detector.history import load, waited
from tests.faults.detector.troubles import TROUBLES
from tests.faults.planted import BUGS, TEN
from tests.support.zookeeper import ZooKeeperEnsemble

COMPLETIONS = ("local", "cluster")
"""By seed: what reads may be held to depends on it."""
SECONDS = 60.0
"""For the program as it is, and for each planted bug."""


def main() -> int:
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # what it sees break is broken on purpose
    arguments = parsed()
    if arguments.replay:
        return replay(arguments.replay)
    plan = Plan(
        seed=arguments.seed,
        seconds=arguments.seconds or SECONDS,
        troubles=arguments.troubles.split(","),
        keeps_all=arguments.keep,
    )
    with TemporaryDirectory() as folder, ZooKeeperEnsemble(Path(folder) / "zookeeper") as ensemble:
        if arguments.planted:
            names = list(BUGS) if arguments.planted == "all" else arguments.planted.split(",")
            return search(Path(folder), ensemble, plan, names)
        code = honest(Path(folder), ensemble, plan, arguments)
        if arguments.seconds is None:  # whoever says how long means the program
            code = search(Path(folder), ensemble, plan, TEN) or code
        return code


def honest(folder: Path, ensemble: ZooKeeperEnsemble, plan: Plan, arguments: argparse.Namespace) -> int:
    """Run with the program as it is. 1 if there was an anomaly."""
    completion = arguments.completion or COMPLETIONS[sum(arguments.seed.encode()) % 2]
    click.echo(
        f"seed {plan.seed}, {plan.seconds:.0f} s, metadata.completion={completion}: three nodes on three ZooKeepers"
    )
    with running_arena(folder, ensemble, "/faults", completion=completion) as arena:
        return 1 if trio.run(drive, Experiment(arena, plan), never if arguments.go_on else always) else 0


def search(folder: Path, ensemble: ZooKeeperEnsemble, plan: Plan, names: Sequence[str]) -> int:
    """Run with each of these bugs in the program, until it is found. 1 if one of them is not."""
    missed = []
    for name in names:
        (folder / name).mkdir()
        click.echo(f"\n=== {name}: {BUGS[name].sentence}")
        seconds, anomalies = found_in(folder / name, ensemble, plan, name, chroot=f"/{name}")
        found = ", ".join(sorted({anomaly.name for anomaly in anomalies}))
        click.echo(f"=== {name}: " + (f"found in {seconds:.0f} s: {found}" if found else "NOT FOUND"))
        missed += [] if found else [name]
    click.echo(
        f"\n{len(names) - len(missed)} of {len(names)} planted bugs were found."
        + (f" Missed: {missed}" if missed else "")
    )
    return 1 if missed else 0


def found_in(
    folder: Path, ensemble: ZooKeeperEnsemble, plan: Plan, name: str, *, chroot: str
) -> tuple[float, list[Anomaly]]:
    """Return how long it took, and the anomalies that tell of this bug."""
    bug = BUGS[name]
    own = msgspec.structs.replace(plan, seed=f"{name}-{plan.seed}", troubles=bug.troubles, calm=0.0)
    command = [sys.executable, "-m", "tests.faults.planted", name]
    with running_arena(folder, ensemble, chroot, completion=bug.completion, command=command) as arena:
        began = time.monotonic()
        # A traceback or an answer of -1 may be the plant's own clumsiness: it has to be found by
        # what it does.
        anomalies = [each for each in trio.run(drive, Experiment(arena, own), is_telling) if is_telling(each)]
        return time.monotonic() - began, anomalies


def always(_anomaly: Anomaly) -> bool:
    return True


def never(_anomaly: Anomaly) -> bool:
    return False


def is_telling(anomaly: Anomaly) -> bool:
    return anomaly.name not in (ODD, TRACEBACK)


async def drive(experiment: Experiment, is_enough: Callable[[Anomaly], bool]) -> list[Anomaly]:
    """Until the time is over, or one of the anomalies is enough."""
    began, worst, operations, windows, anomalies = time.monotonic(), 0.0, 0, 0, list[Anomaly]()
    async with aclosing(experiment.run()) as running:
        async for told in running:
            windows, operations, worst = (
                windows + 1,
                operations + told.operations,
                max(worst, waited(told.slowest) if told.slowest else 0.0),
            )
            click.echo(line(told))
            for anomaly in told.verdict.anomalies:
                click.echo(paragraph(anomaly, told.kept))
            anomalies += told.verdict.anomalies
            if any(map(is_enough, told.verdict.anomalies)):
                break
    click.echo(
        f"{operations} operations in {windows} windows and {time.monotonic() - began:.0f} s, "
        f"an honest client waited {worst:.1f} s at most: {len(anomalies) or 'no'} anomalies."
    )
    return anomalies


def line(told: Told) -> str:
    window = told.window
    slowest = (
        f"slowest {waited(told.slowest):.1f} s (#{told.slowest.number}, {told.slowest.kind}), " if told.slowest else ""
    )
    undecided = f", undecided: {', '.join(told.verdict.undecided)}" if told.verdict.undecided else ""
    return (
        f"window {window.number} ({', '.join(window.troubles) or 'calm'}): {told.operations} operations, {told.doubts} in doubt, "
        f"{slowest}settled and checked {window.ended - window.began:.1f} + {told.checking_seconds:.1f} s{undecided}"
    )


def paragraph(anomaly: Anomaly, kept: Path | None) -> str:
    return f"\nANOMALY: {anomaly.name}\n{anomaly.text}\n" + (
        f"The history is kept: make faults REPLAY={kept}\n" if kept else ""
    )


def replay(path: Path) -> int:
    verdict = judge(load(path))
    for anomaly in verdict.anomalies:
        click.echo(paragraph(anomaly, None))
    click.echo(f"{path}: {len(verdict.anomalies)} anomalies, {len(verdict.undecided)} undecided.")
    return 1 if verdict.anomalies else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--seconds", type=float, help="for the program as it is, and for nothing else")
    parser.add_argument("--troubles", default=",".join(TROUBLES))
    parser.add_argument("--completion", choices=COMPLETIONS)
    parser.add_argument("--go-on", action="store_true", help="do not end at the first anomaly")
    parser.add_argument("--keep", action="store_true", help="keep the histories without an anomaly, too")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="check a history again that was kept")
    parser.add_argument(
        "--planted", metavar="NAME", help=f"look for a bug put in on purpose: all, or of {', '.join(BUGS)}"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
