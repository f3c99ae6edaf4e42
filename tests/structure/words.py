"""Measures of docstrings: how many there are, and how many repeat a signature."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from tests.structure.figures import Figure, count
from tests.structure.tree import Function, Module, Tree

MOST_NEW_WORDS = 2
"""A docstring with so many words beyond those of the signature repeats it."""
_SMALL_WORDS = """
a an the of to in on at by for from with and or is are be it its this that these those as if return returns yield yields
none which whose who what how whether has have had was were not no any all each one there then than them they their whom
when where so into do does can may
"""
SMALL_WORDS = frozenset(_SMALL_WORDS.split())
"""Words that say nothing by themselves."""
INFLECTIONS = ("ing", "ied", "ies", "ed", "es", "s", "e", "y")
SHORTEST_STEM = 3
WORD = re.compile(r"[a-z]++")
PART_OF_NAME = re.compile(r"[A-Z]?[a-z]++|[A-Z]+(?![a-z])")


def docstrings(tree: Tree) -> Figure:
    """Count the docstrings of modules, classes, functions and attributes."""
    return count(module.path for module in tree for _ in _docstrings(module))


def _docstrings(module: Module) -> Iterator[str]:
    documented = (module.tree, *module.of(ast.ClassDef), *module.functions())
    for node in documented:
        text = ast.get_docstring(node, clean=False)
        if text:
            yield text
        yield from _of_attributes(node.body)


def _of_attributes(body: list[ast.stmt]) -> Iterator[str]:
    for pair in pairwise(body):
        match pair:
            case (ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(text)))):
                yield text


def repeating(tree: Tree) -> Figure:
    """Count the functions whose docstring has two words or less that are in none of the names of
    the function, its class and its parameters. Inflections are not compared. The docstring of a
    command does not count: click prints it as help.
    """
    return count(module.path for module in tree for function, of in _owned(module) if _repeats(function, of))


def _owned(module: Module) -> Iterator[tuple[Function, str]]:
    """Yield each function with the name of the class that it is a method of, if it is one."""
    methods = {id(node): of.name for of in module.of(ast.ClassDef) for node in of.body}
    return ((function, methods.get(id(function), "")) for function in module.functions())


def _repeats(function: Function, of: str) -> bool:
    text = ast.get_docstring(function)
    if not text or _is_command(function):
        return False
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    names = [function.name, of, *(each.arg for each in parameters if each is not None)]
    signature = {_stem(part.lower()) for name in names for part in PART_OF_NAME.findall(name)}
    said = {_stem(word) for word in WORD.findall(text.lower()) if word not in SMALL_WORDS}
    return len(said - signature) <= MOST_NEW_WORDS


def _is_command(function: Function) -> bool:
    calls = (each.func for each in function.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(call, ast.Attribute) and call.attr in {"command", "group"} for call in calls)


def _stem(word: str) -> str:
    for ending in INFLECTIONS:
        if word.endswith(ending) and len(word) >= len(ending) + SHORTEST_STEM:
            return word.removesuffix(ending)
    return word
