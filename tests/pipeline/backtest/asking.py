"""Candidates of a few lines, and what they would have said."""

from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent

from minicontroller.pipeline.backtest.candidate import Candidate, read_candidate
from minicontroller.pipeline.backtest.verdicts import Difference

HEAD = "from minicontroller.policies import PolicyViolation, TopicManagementPolicy\n\n"


def in_python(folder: Path, body: str, *settings: str, head: str = "") -> Candidate:
    """A class with these methods."""
    file = folder / "candidate.py"
    lines = "".join(f"    {line}\n" for line in dedent(body).strip().splitlines())
    file.write_text(f"{HEAD}{dedent(head)}\n\nclass Candidate(TopicManagementPolicy):\n{lines}")
    return read_candidate(f"{file}:Candidate", settings).candidate


def in_rules(folder: Path, text: str) -> Candidate:
    file = folder / "candidate.toml"
    file.write_text(text)
    return read_candidate(str(file)).candidate


def at_most(folder: Path, partitions: int) -> Candidate:
    return in_rules(folder, f"[[partitions]]\nmax = {partitions}\n")


def names(folder: Path, allowed: str) -> Candidate:
    """Topics are created with names like this, and nothing else is judged."""
    return in_rules(folder, f"[[name_pattern]]\npattern = '{allowed}'\n")


def protecting(folder: Path, topics: str) -> Candidate:
    """Topics are neither altered nor deleted."""
    return in_rules(
        folder,
        f"[[protected_topics]]\ntopics = ['{topics}']\nexcept_principals = ['User:nobody']\noperations = ['alter', 'delete']\n",
    )


def told(
    differences: Sequence[Difference], more: Callable[[Difference], object] | None = None
) -> list[tuple[object, ...]]:
    """In short: the kind and the topic, and what else is asked for."""
    return [(each.kind.value, each.topic, *(() if more is None else (more(each),))) for each in differences]
