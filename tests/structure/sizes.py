"""Measures of size, and of the places that read a clock by themselves."""

import ast
from collections.abc import Iterator
from pathlib import PurePath

from tests.structure.figures import Figure, count, quantile, total
from tests.structure.layout import CLOCK, CLOCK_READS
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
    """Count the places that name a function that reads a clock, outside the clock's module."""
    return count(module.path for module in tree if PurePath(module.path).name != CLOCK for _ in _reads(module))


def _reads(module: Module) -> Iterator[ast.AST]:
    for attribute in module.of(ast.Attribute):
        owner = attribute.value
        if (getattr(owner, "id", getattr(owner, "attr", "")), attribute.attr) in CLOCK_READS:
            yield attribute
    taken = {
        alias.asname or alias.name
        for node in module.of(ast.ImportFrom)
        for alias in node.names
        if (node.module, alias.name) in CLOCK_READS
    }
    yield from (name for name in module.of(ast.Name) if name.id in taken)
