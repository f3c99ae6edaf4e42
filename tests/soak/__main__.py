"""`make soak`: ten minutes of 500 connections, half of which misbehave, real work, and deaths of
nodes and of ZooKeeper. It ends with 1 if something was lost or leaked.
"""

import argparse
import logging
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.soak.run import Soak, soaked

SECONDS = 600.0


def main() -> int:
    for library in ("kazoo", "kafka", "minicontroller"):
        logging.getLogger(library).setLevel(logging.CRITICAL)  # what they see break is broken on purpose
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--connections", type=int, default=500, help="half of them misbehave")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    soak = Soak(arguments.seconds, arguments.seed, arguments.connections)
    click.echo(
        f"seed {soak.seed}, {soak.seconds:.0f} s, {soak.connections} connections: "
        "three nodes that are killed, one that is not, and a ZooKeeper that is killed"
    )
    with TemporaryDirectory() as folder:
        outcome = soaked(Path(folder), soak, click.echo)
    click.echo("\nThe soak holds." if outcome.holds else "\nThe soak does NOT hold: see the rows with FAIL.")
    return 0 if outcome.holds else 1


if __name__ == "__main__":
    sys.exit(main())
