"""Puts a bug against each of the weightiest clauses into a copy of the program, one at a time, and
runs the tests that name the clause: some of them must fail.

`python -m tests.requirements.plant` takes two minutes of processor time; `CLAUSE...` behind it
chooses clauses, and `--slow` adds the tests that start large programs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from tests.requirements.bugs import BUGS, ROOT, Bug
from tests.requirements.table import claims

PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-rfE", "--tb=no", "--timeout", "60")
FAILED = 1
NAMED = "build/named"
"""The folder in which Python finds the copy of the package before the installed one."""


@click.command()
@click.argument("clauses", nargs=-1, type=click.Choice([bug.clause for bug in BUGS]))
@click.option("--slow", is_flag=True, help="Run the tests that start large programs, too.")
def plant(clauses: tuple[str, ...], *, slow: bool) -> None:
    """Show that the tests of clauses find a bug against each."""
    chosen = [bug for bug in BUGS if bug.clause in (clauses or [bug.clause])]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy(tree)
        if failed := failing(tree, *(bug.clause for bug in chosen), slow=slow):
            raise click.ClickException(f"These tests fail without any bug: {', '.join(sorted(failed))}.")
        missed = [bug.clause for bug in chosen if not is_found(bug, tree, slow=slow)]
    if missed:
        raise click.ClickException(f"No test of {', '.join(missed)} fails.")


def is_found(bug: Bug, tree: Path, *, slow: bool) -> bool:
    """Plant a bug for as long as the tests of its clause run, and say which of them fail."""
    bug.plant(tree)
    failed = sorted(failing(tree, bug.clause, slow=slow))
    shutil.copy2(ROOT / bug.file, tree / bug.file)
    said = f"{len(failed)} failed, {failed[0]}" if failed else "NOT FOUND"
    click.echo(f"{bug.clause}: {bug.what}: {said}")
    return bool(failed)


def copy(tree: Path) -> None:
    """Copy the files of the repository, and give the package its name."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.rstrip("\0").split("\0"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    (tree / NAMED).mkdir(parents=True)
    (tree / NAMED / "minicontroller").symlink_to(tree)


def failing(tree: Path, *clauses: str, slow: bool) -> set[str]:
    """Return the tests of clauses that fail there."""
    tests = dict.fromkeys(test for clause in clauses for test in claims()[clause])
    done = subprocess.run(
        [*PYTEST, *([] if slow else ["-m", "not slow"]), *tests],
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree / NAMED)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in {0, FAILED}, done.stdout + done.stderr
    return {
        line.split(" ", 1)[1].partition(" - ")[0]
        for line in done.stdout.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    }


if __name__ == "__main__":
    plant()
