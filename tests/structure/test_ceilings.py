"""The program keeps its ceilings, and a ceiling follows its value down and never up."""

from pathlib import Path

import pytest

from tests.structure import apis, ceilings, layout, sizes
from tests.structure.figures import Figure
from tests.structure.measures import MEASURES, Measure
from tests.structure.tree import Tree

LINES = Measure("lines", "lines of program", sizes.lines, step=10, goal=50)
LONGEST = Measure("longest", "lines of a module", lambda tree: sizes.length_of_modules(tree, 1))
SHOWN = Measure("shown", "modules", sizes.modules, is_held=False)
ALL = (LINES, LONGEST, SHOWN)


@pytest.fixture(name="program", scope="module")
def whole_program() -> Tree:
    return Tree.read(ceilings.ROOT)


def test_the_program_keeps_its_ceilings(program: Tree) -> None:
    """No measure is above its ceiling, and no ceiling is higher than it must be."""
    figures, table = ceilings.find(program, MEASURES), ceilings.read()
    said = list(ceilings.complaints(MEASURES, figures, table, ceilings.tree_of_the_table))
    assert not said, "\n".join(said)


def test_the_measures_see_the_program(program: Tree) -> None:
    """Each place that the layout names exists, and each API has its messages and its handler: what
    moved cannot make a figure small by itself.
    """
    assert {layout.NODE, *layout.ROLES_BESIDE_THE_NODE} <= program.folders
    assert {layout.API_KEYS, layout.POLICY_INTERFACE} <= program.modules.keys()
    assert layout.CLOCK in program.modules
    names = {api.name for api in apis.apis(program)}
    messages = {path for path in program.modules if path.startswith(f"{layout.MESSAGES}/")}
    assert {f"{layout.MESSAGES}/{name}.py" for name in (*names, "__init__")} == messages
    assert layout.SAMPLE_API in names
    assert [api.name for api in apis.apis(program) if not apis.handlers_of(program, api)] == []


def figures(lines: int, longest: int) -> dict[str, Figure]:
    return {
        "lines": Figure(lines, {"a.py": lines}),
        "longest": Figure(longest, {"a.py": longest}),
        "shown": Figure(1, {}),
    }


def complaints(values: dict[str, Figure], table: dict[str, int]) -> list[str]:
    return list(ceilings.complaints(ALL, values, table, lambda: None))


def test_a_value_at_its_ceiling_is_kept() -> None:
    """A value may be below its ceiling by less than a step, and below its goal by anything."""
    assert complaints(figures(95, 7), {"lines": 100, "longest": 7}) == []
    assert complaints(figures(3, 7), {"lines": 50, "longest": 7}) == []


def test_a_value_above_its_ceiling_names_its_causes() -> None:
    """The sentence says what is too large, by how much, where, and what to do."""
    [said] = complaints(figures(100, 8), {"lines": 100, "longest": 7})
    assert said == (
        "longest: lines of a module: 8 is above the ceiling 7; most of it is in a.py (8). Make it smaller; if it is "
        "worth it, raise the ceiling in tests/structure/ceilings.toml and say why in the commit."
    )


def test_causes_are_what_grew_since_the_table_was_written() -> None:
    """Where the earlier tree is known, the files that grew are named, and no others."""
    before = Tree({"a.py": "x\n" * 90, "b.py": "x\n", "c.py": "x\n"})
    now = Tree({"a.py": "x\n" * 90, "b.py": "x\n" * 9, "d.py": "x\n" * 2})
    assert ceilings.causes(LINES, sizes.lines(now), before) == "it grew in b.py (+8), d.py (+2)"
    assert ceilings.causes(LINES, sizes.lines(now), None) == "most of it is in a.py (90), b.py (9), d.py (2)"


def test_only_the_first_causes_are_named() -> None:
    """A figure of very many files names those that weigh the most."""
    many = Figure(100, {f"{number:02}.py": 1 for number in range(100)})
    assert ceilings.causes(LINES, many, None).endswith("07.py (1), and 92 more")


@pytest.mark.parametrize(
    ("values", "table", "names"),
    [
        (figures(90, 7), {"lines": 100, "longest": 7}, "lines"),
        (figures(100, 6), {"lines": 100, "longest": 7}, "longest"),
        (figures(3, 7), {"lines": 60, "longest": 7}, "lines"),
        (figures(100, 7), {"lines": 100}, "longest"),
        (figures(100, 7), {"lines": 100, "longest": 7, "gone": 1}, "gone"),
    ],
)
def test_a_ceiling_that_does_not_fit_is_to_be_lowered(
    values: dict[str, Figure], table: dict[str, int], names: str
) -> None:
    """A ceiling above its value, a measure without one, and one without a measure are complained
    about, until the table is written anew.
    """
    [said] = complaints(values, table)
    assert said.startswith(f"The ceilings of {names} no longer fit the tree: run `python -m tests.structure --lower`")
    assert complaints(values, ceilings.lowered(ALL, values, table)) == []


def test_lowering_never_raises(tmp_path: Path) -> None:
    """The table is written with each ceiling as low as the tree allows, and none is higher than it
    was.
    """
    path = tmp_path / "ceilings.toml"
    assert ceilings.read(path) == {}
    ceilings.write(ceilings.lowered(ALL, figures(141, 6), {"lines": 120, "longest": 9, "gone": 2}), path)
    assert ceilings.read(path) == {"lines": 120, "longest": 6}
