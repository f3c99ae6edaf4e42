"""Prints the measures of the program's structure beside their ceilings and goals. With `--lower`
the table of ceilings follows the tree down.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import click

from tests.structure import ceilings
from tests.structure.measures import MEASURES
from tests.structure.tree import Tree, git

SUBJECTS = 100
LONGEST_SUBJECT = 72


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.structure", description=__doc__)
    parser.add_argument("--tree", type=Path, metavar="FOLDER", help="measure another checkout, which has no ceilings")
    parser.add_argument("--lower", action="store_true", help="lower the ceilings to the values of the tree")
    parser.add_argument("--causes", metavar="MEASURE", help="print each file with what it adds to a measure")
    arguments = parser.parse_args()
    root = arguments.tree or ceilings.ROOT
    tree = Tree.read(root)
    if arguments.causes:
        return _print_causes(tree, arguments.causes)
    figures = ceilings.find(tree, MEASURES)
    if arguments.lower and arguments.tree is None:
        ceilings.write(ceilings.lowered(MEASURES, figures, ceilings.read()))
    table = ceilings.read() if arguments.tree is None else {}
    _print_figures(figures, table)
    click.echo(_subjects(root))
    if arguments.tree is not None:
        return 0
    complaints = list(ceilings.complaints(MEASURES, figures, table, ceilings.tree_of_the_table))
    click.echo("\n".join(complaints), err=True, nl=bool(complaints))
    return 1 if complaints else 0


def _print_figures(figures: ceilings.Figures, table: ceilings.Ceilings) -> None:
    click.echo("  value  ceiling    goal")
    for measure in MEASURES:
        ceiling = table.get(measure.name, "")
        goal = "" if measure.goal is None else measure.goal
        click.echo(f"{figures[measure.name].value:7}  {ceiling:>7}  {goal:>6}  {measure.name:28} {measure.text}")


def _print_causes(tree: Tree, name: str) -> int:
    measure = next((measure for measure in MEASURES if measure.name == name), None)
    if measure is None:
        click.echo(f"There is no measure {name!r}; without an option, their names are printed.", err=True)
        return 2
    for cause, value in sorted(measure.find(tree).causes.items(), key=lambda cause: (-cause[1], cause[0])):
        click.echo(f"{value:7}  {cause}")
    return 0


def _subjects(root: Path) -> str:
    """Say how many of the latest commits have a short subject."""
    try:
        subjects = git(root, "log", f"-{SUBJECTS}", "--format=%s").decode().splitlines()
    except (OSError, subprocess.CalledProcessError):
        return "The history of commits is not here."
    short = sum(len(subject) <= LONGEST_SUBJECT for subject in subjects)
    return f"{short} of the last {len(subjects)} commits have a subject of at most {LONGEST_SUBJECT} characters."


if __name__ == "__main__":
    sys.exit(main())
