"""Measures of size, and of the places that read a clock by themselves."""

import ast
from collections.abc import Iterator
from pathlib import PurePath

from tests.structure.figures import Figure, count, quantile, total
from tests.structure.layout import ADVANCED_CLOCK, CLOCK, MACHINE_CLOCK, PEOPLES_PROGRAMS, STOPWATCH
from tests.structure.tree import Module, Tree


def modules(tree: Tree) -> Figure:
    return count(module.path for module in tree)


def lines(tree: Tree) -> Figure:
    return total({module.path: module.lines for module in tree})


def folders(tree: Tree) -> Figure:
    return count(tree.folders)


def length_of_functions(tree: Tree, share: float) -> Figure:
    """Return the length that this share of all functions does not exceed, and the longer ones."""
    lengths = {
        f"{module.path}:{node.lineno} ({node.name})": (node.end_lineno or node.lineno) - node.lineno + 1
        for module in tree
        for node in module.functions()
    }
    return _longest(lengths, share)


def length_of_modules(tree: Tree, share: float) -> Figure:
    return _longest({module.path: module.lines for module in tree}, share)


def _longest(lengths: dict[str, int], share: float) -> Figure:
    value = quantile(lengths.values(), share)
    return Figure(value, {name: length for name, length in lengths.items() if length >= value})


def clock_reads(tree: Tree) -> Figure:
    """Count where a role reads the machine's clock, which cannot be advanced."""
    return _reads(tree, MACHINE_CLOCK, of_people=False)


def advanced_clock_reads(tree: Tree) -> Figure:
    """Count where a role reads the clock that can be advanced."""
    return _reads(tree, ADVANCED_CLOCK, of_people=False)


def stopwatch_reads(tree: Tree) -> Figure:
    """Count where a role measures real time."""
    return _reads(tree, STOPWATCH, of_people=False)


def peoples_clock_reads(tree: Tree) -> Figure:
    """Count where a person's program reads any clock."""
    return _reads(tree, MACHINE_CLOCK | ADVANCED_CLOCK | STOPWATCH, of_people=True)


def _reads(tree: Tree, functions: frozenset[tuple[str, str]], *, of_people: bool) -> Figure:
    """Count the places that call one of these functions, or hand it on, in a person's programs or
    in all others. A function is named by the last part of its module, and its own name.
    """
    return count(
        module.path
        for module in tree
        if module.path != CLOCK and (PurePath(module.path).parts[0] in PEOPLES_PROGRAMS) is of_people
        for _ in _places(module, functions)
    )


def _places(module: Module, functions: frozenset[tuple[str, str]]) -> Iterator[ast.AST]:
    for attribute in module.of(ast.Attribute):
        owner = attribute.value
        if (getattr(owner, "id", getattr(owner, "attr", "")), attribute.attr) in functions:
            yield attribute
    taken = {
        alias.asname or alias.name
        for node in module.of(ast.ImportFrom)
        for alias in node.names
        if ((node.module or "").rpartition(".")[2], alias.name) in functions
    }
    yield from (name for name in module.of(ast.Name) if name.id in taken)
