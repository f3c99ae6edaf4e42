"""The list of measures. Each has a name in the table of ceilings, and a sentence for people."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.structure import apis, changes, imports, sizes, words
from tests.structure.figures import Figure
from tests.structure.layout import NODE, ROLES_BESIDE_THE_NODE, SAMPLE_API
from tests.structure.tree import Tree


@dataclass(frozen=True)
class Measure:
    name: str
    text: str
    find: Callable[[Tree], Figure]
    step: int = 1
    """Ceilings are multiples of it, so a small change of a large figure needs no new ceiling."""
    goal: int | None = None
    """The value that is small enough: the ceiling falls no further."""
    is_held: bool = True
    """Whether it has a ceiling. Some figures are shown only, because less of them is not better."""

    def ceiling(self, value: int) -> int:
        """Return the ceiling that belongs to a value."""
        return max(-(-value // self.step) * self.step, self.goal or 0)


def _of_role(role: str) -> tuple[Measure, ...]:
    def reached(tree: Tree) -> Figure:
        return imports.lines_of_node_reached(tree, imports.import_graph(tree), role)

    def loaded(tree: Tree) -> Figure:
        return imports.lines_of_node_reached(tree, imports.loading_graph(tree), role)

    return (
        Measure(f"lines_reached_by_{role}", f"lines of {NODE}/ that {role}/ reaches by imports", reached, 250, 0),
        Measure(f"lines_loaded_by_{role}", "the same, with packages that list their modules", loaded, 250, 0),
    )


def _circles_of_folders(tree: Tree) -> Figure:
    return imports.circles_of_folders(tree, imports.import_graph(tree))


def _circles_of_files(tree: Tree) -> Figure:
    return imports.circles_of_files(imports.import_graph(tree))


def _at(length: Callable[[Tree, float], Figure], share: float) -> Callable[[Tree], Figure]:
    return lambda tree: length(tree, share)


def _lengths(what: str, length: Callable[[Tree, float], Figure], *, are_held: bool) -> tuple[Measure, ...]:
    return tuple(
        Measure(f"{what}_length_{name}", f"lines of a {what}: {text}", _at(length, share), is_held=are_held)
        for name, text, share in (("median", "median", 0.5), ("p90", "90 of 100 have at most", 0.9), ("max", "most", 1))
    )


MEASURES = (
    *(measure for role in ROLES_BESIDE_THE_NODE for measure in _of_role(role)),
    Measure("circles_of_folders", "circles of imports between folders at the top", _circles_of_folders, goal=0),
    Measure("circles_of_files", "circles of imports between files", _circles_of_files, goal=0),
    Measure("folders", "folders of program at the top", sizes.folders, goal=14),
    Measure("change_classes", "classes that describe a requested change", changes.change_classes, goal=8),
    Measure("policy_requests", "modules that construct the same request of a policy", changes.policy_requests, goal=1),
    Measure("fields_given", "fields of the largest class that a handler is given", apis.fields_given, goal=8),
    Measure(f"files_of_{SAMPLE_API}", f"files that {SAMPLE_API} touches", apis.files_of_the_sample, goal=5),
    Measure("files_of_a_changing_api", "files that a changing API touches: most", apis.files_of_a_changing_api),
    Measure("files_of_an_api", "files that any API touches: median", apis.files_of_an_api, is_held=False),
    Measure("lines_of_an_api", "lines of handlers and messages per API", apis.lines_of_an_api, goal=170),
    Measure("slicing_handlers", "modules of handlers that slice time", apis.slicing_handlers, goal=0),
    Measure("modules", "modules", sizes.modules, 10, 520),
    Measure("lines", "lines of program", sizes.lines, 250, 71_000),
    Measure("docstrings", "docstrings", words.docstrings, 25, 4_800),
    Measure("repeating_docstrings", "docstrings that repeat their signature", words.repeating, goal=0),
    Measure("ambiguous_names", "names that several classes have", changes.ambiguous_names, goal=0),
    Measure("single_protocols", "Protocols that one class implements", changes.single_protocols),
    Measure("clock_reads", "reads of a clock that nothing can advance, in a role", sizes.clock_reads, goal=0),
    Measure("stopwatch_reads", "measurements of real time, in a role", sizes.stopwatch_reads),
    Measure(
        "advanced_clock_reads", "reads of the clock that can be advanced", sizes.advanced_clock_reads, is_held=False
    ),
    Measure(
        "peoples_clock_reads",
        "reads of any clock in commands, client and pipeline",
        sizes.peoples_clock_reads,
        is_held=False,
    ),
    *_lengths("function", sizes.length_of_functions, are_held=True),
    *_lengths("module", sizes.length_of_modules, are_held=False),
)
