"""Fuzzes the codec and the server for some minutes: `make fuzz`.

Each target has a process of its own and its share of the time. What it finds besides the corpus
stays in build/fuzz; with `--distil` the corpus is then written anew, with the fewest inputs that
reach as much. An input that finds a defect is written into build/fuzz/<target>/defects, the defect
is shown, and the code is 1.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from msgspec import Struct

from tests.fuzz.corpus_files import corpus_of, keep
from tests.fuzz.targets import TARGETS

FOLDER = Path("build/fuzz")
LIMITS = ("-max_len=4096", "-timeout=20", "-rss_limit_mb=2048", "-len_control=20")
RUNS = re.compile(r"^#(\d++)\s", re.MULTILINE)
REACHED = re.compile(r" cov: (\d++) ft: (\d++)")


class Outcome(Struct, frozen=True):
    """What fuzzing a target for a while came to."""

    target: str
    runs: int
    reached: int
    kept: int
    defect: str | None


def put(folder: Path, inputs: Iterable[bytes]) -> Path:
    """Write inputs as files, one each, as libFuzzer reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(inputs):
        (folder / f"kept-{number:05}").write_bytes(each)
    return folder


def run(target: str, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run libFuzzer on a target; its log is the error output."""
    command = [sys.executable, "-m", "tests.fuzz.one_target", target, *options]
    return subprocess.run(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False)


def fuzzed(target: str, seconds: int) -> Outcome:
    """Fuzz a target for so long, from its corpus, its seeds and what was found before."""
    folder = FOLDER / target
    (folder / "found").mkdir(parents=True, exist_ok=True)
    (folder / "defects").mkdir(exist_ok=True)
    begin = put(folder / "begin", [*corpus_of(target), *TARGETS[target].seeds()])
    limits = [f"-max_total_time={seconds}", f"-artifact_prefix={folder / 'defects'}/", *LIMITS]
    ended = run(target, [str(folder / "found"), str(begin), *limits])
    (folder / "log.txt").write_text(ended.stdout)
    reached = REACHED.findall(ended.stdout)
    return Outcome(
        target,
        runs=max(map(int, RUNS.findall(ended.stdout)), default=0),
        reached=int(reached[-1][0]) if reached else 0,
        kept=len(corpus_of(target)),
        defect=_end_of(ended.stdout) if ended.returncode else None,
    )


def _end_of(log: str) -> str:
    begin = log.find("=== Uncaught Python exception")
    return log[max(begin, 0) :][:4_000] if begin >= 0 else log[-4_000:]


def distil(target: str) -> int:
    """Write the corpus of a target anew from all that is known, and return the number of inputs."""
    folder = FOLDER / target
    chosen = folder / "chosen"
    chosen.mkdir(exist_ok=True)
    for old in chosen.iterdir():
        old.unlink()
    ended = run(target, ["-merge=1", str(chosen), str(folder / "begin"), str(folder / "found"), *LIMITS])
    if ended.returncode or not any(chosen.iterdir()):
        raise SystemExit(f"{target} cannot be distilled:\n{_end_of(ended.stdout)}")
    defects = [file.read_bytes() for file in (folder / "defects").iterdir()]
    return keep(target, [*defects, *(file.read_bytes() for file in chosen.iterdir())])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the codec and the server.")
    parser.add_argument("--seconds", type=int, default=240, help="for all targets together")
    parser.add_argument("--target", choices=TARGETS, help="only this one")
    parser.add_argument("--distil", action="store_true", help="write the corpus anew afterwards")
    arguments = parser.parse_args()
    names = [arguments.target] if arguments.target else list(TARGETS)
    shares = sum(TARGETS[name].share for name in names)
    defects = 0
    for name in names:
        outcome = fuzzed(name, max(1, arguments.seconds * TARGETS[name].share // shares))
        click.echo(f"{name}: {outcome.runs} runs, {outcome.reached} branches, {outcome.kept} inputs in the corpus")
        if outcome.defect is not None:
            defects += 1
            click.echo(f"DEFECT, its input is in {FOLDER / name / 'defects'}:\n{outcome.defect}")
        elif arguments.distil:
            click.echo(f"{name}: distilled to {distil(name)} inputs")
    raise SystemExit(1 if defects else 0)


if __name__ == "__main__":
    main()
