"""The table of ceilings, and how a tree keeps them: no value is above its ceiling, and a ceiling
follows its value down.
"""

import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.structure.figures import Figure
from tests.structure.measures import Measure
from tests.structure.tree import Tree, git

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("ceilings.toml")
LOWER = "python -m tests.structure --lower"
SHOWN_CAUSES = 8
HEAD = f"""\
# The most that each measure of `python -m tests.structure` may be. `{LOWER}`
# lowers what can be lowered. Only by hand is a ceiling raised, in a commit that says what it is worth.
"""

Ceilings = Mapping[str, int]
Figures = Mapping[str, Figure]


def read(path: Path = TABLE) -> Ceilings:
    return tomllib.loads(path.read_text()) if path.exists() else {}


def write(ceilings: Ceilings, path: Path = TABLE) -> None:
    path.write_text(HEAD + "".join(f"{name} = {ceiling}\n" for name, ceiling in ceilings.items()))


def find(tree: Tree, measures: Iterable[Measure]) -> dict[str, Figure]:
    return {measure.name: measure.find(tree) for measure in measures}


def lowered(measures: Iterable[Measure], figures: Figures, ceilings: Ceilings) -> dict[str, int]:
    """Return the ceilings of the measures that have one, each as low as its value allows."""
    wanted = {measure.name: measure.ceiling(figures[measure.name].value) for measure in measures if measure.is_held}
    return {name: min(ceiling, ceilings.get(name, ceiling)) for name, ceiling in wanted.items()}


def above(measures: Iterable[Measure], figures: Figures, ceilings: Ceilings) -> list[Measure]:
    return [
        measure
        for measure in measures
        if measure.is_held and figures[measure.name].value > ceilings.get(measure.name, figures[measure.name].value)
    ]


def complaints(
    measures: Sequence[Measure], figures: Figures, ceilings: Ceilings, find_before: Callable[[], Tree | None]
) -> Iterator[str]:
    """Yield a sentence for each measure above its ceiling, and one if ceilings can be lowered.
    `find_before` returns the tree for which the ceilings were written, if it is known.
    """
    too_high = above(measures, figures, ceilings)
    before = find_before() if too_high else None
    for measure in too_high:
        figure = figures[measure.name]
        yield (
            f"{measure.name}: {measure.text}: {figure.value} is above the ceiling {ceilings[measure.name]}; "
            f"{causes(measure, figure, before)}. Make it smaller; if it is worth it, raise the ceiling in "
            f"{TABLE.relative_to(ROOT)} and say why in the commit."
        )
    table = lowered(measures, figures, ceilings)
    changed = [name for name in {**table, **ceilings} if table.get(name) != ceilings.get(name)]
    if changed:
        yield f"The ceilings of {', '.join(changed)} no longer fit the tree: run `{LOWER}` and commit the table."


def causes(measure: Measure, figure: Figure, before: Tree | None) -> str:
    """Name the files that add to a figure: those in which it grew, or else those with the most."""
    grown = {}
    if before is not None:
        old = measure.find(before).causes
        grown = {name: value - old.get(name, 0) for name, value in figure.causes.items() if value > old.get(name, 0)}
    if grown:
        return f"it grew in {_listed(grown, '+')}"
    return f"most of it is in {_listed(figure.causes)}"


def _listed(causes: Mapping[str, int], sign: str = "") -> str:
    ordered = sorted(causes.items(), key=lambda cause: (-cause[1], cause[0]))
    shown = [f"{name} ({sign}{value})" for name, value in ordered[:SHOWN_CAUSES]]
    more = len(ordered) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


def tree_of_the_table(root: Path = ROOT) -> Tree | None:
    """Return the program as it was when the table was last committed; None without that history."""
    try:
        commit = git(root, "log", "-1", "--format=%H", "--", str(TABLE.relative_to(ROOT))).decode().strip()
        return Tree.at_commit(root, commit) if commit else None
    except (OSError, subprocess.CalledProcessError):
        return None
