"""`make faults`: drive a cluster as people and the world do, and tell whether what was answered is what happened."""

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

import click
import trio

from tests.faults.detector.arena import running_arena
from tests.faults.detector.checks import Anomaly, judge
from tests.faults.detector.experiment import Experiment, Plan, Told
from tests.faults.detector.history import load
from tests.faults.detector.troubles import TROUBLES
from tests.support.zookeeper import ZooKeeperEnsemble

COMPLETIONS = ("local", "cluster")
"""By seed: what reads may be held to depends on it."""


def main() -> int:
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # what it sees break is broken on purpose
    arguments = parsed()
    if arguments.replay:
        return replay(arguments.replay)
    completion = arguments.completion or COMPLETIONS[sum(arguments.seed.encode()) % 2]
    plan = Plan(seed=arguments.seed, seconds=arguments.seconds, troubles=arguments.troubles.split(","))
    click.echo(
        f"seed {plan.seed}, {plan.seconds:.0f} s, metadata.completion={completion}: starting three nodes on three ZooKeepers",
    )
    with tempfile.TemporaryDirectory() as folder, ZooKeeperEnsemble(Path(folder) / "zookeeper") as ensemble:
        (Path(folder) / "nodes").mkdir()
        with running_arena(Path(folder) / "nodes", ensemble, "/faults", completion=completion) as arena:
            return trio.run(drive, Experiment(arena, plan), arguments.go_on)


async def drive(experiment: Experiment, go_on: bool) -> int:
    began, worst, operations, windows, anomalies = time.monotonic(), 0.0, 0, 0, 0
    async for told in experiment.run():
        windows, operations, worst = windows + 1, operations + told.operations, max(worst, told.worst_seconds)
        click.echo(line(told))
        for anomaly in told.verdict.anomalies:
            click.echo(paragraph(anomaly, told.kept))
        anomalies += len(told.verdict.anomalies)
        if anomalies and not go_on:
            break
    seconds = time.monotonic() - began
    click.echo(
        f"{operations} operations in {windows} windows and {seconds:.0f} s, an honest client waited {worst:.1f} s at most: "
        + ("no anomaly." if not anomalies else f"{anomalies} anomalies.")
    )
    return 1 if anomalies else 0


def line(told: Told) -> str:
    window = told.window
    undecided = f", undecided: {', '.join(told.verdict.undecided)}" if told.verdict.undecided else ""
    return (
        f"window {window.number} ({', '.join(window.troubles) or 'calm'}): {told.operations} operations, {told.doubts} in doubt, "
        f"worst {told.worst_seconds:.1f} s, settled and checked {window.ended - window.began:.1f} + {told.checking_seconds:.1f} s{undecided}"
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
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--troubles", default=",".join(TROUBLES))
    parser.add_argument("--completion", choices=COMPLETIONS)
    parser.add_argument("--go-on", action="store_true", help="do not end at the first anomaly")
    parser.add_argument("--replay", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
