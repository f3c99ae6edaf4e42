"""Measures of the import graph: what the roles reach of the node, and circles.

An arrow is any import of a module of the program: at the top, within a function, or for the type
checker alone. The `__init__.py` of a folder that an import passes through is not reached by it.
"""

import ast
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import combinations

from tests.structure.figures import Figure, count, total
from tests.structure.layout import NODE
from tests.structure.tree import Tree

Graph = Mapping[str, set[str]]


@lru_cache(maxsize=1)
def import_graph(tree: Tree) -> Graph:
    return {module.path: {path for path, _ in tree.imports(module)} - {module.path} for module in tree}


@lru_cache(maxsize=1)
def loading_graph(tree: Tree) -> Graph:
    """Return the import graph, with arrows from each package that lists its modules by
    `iter_modules` to all of them.
    """
    graph = dict(import_graph(tree))
    for module in tree:
        if module.path.endswith("__init__.py") and any(name.id == "iter_modules" for name in module.of(ast.Name)):
            folder = module.path.removesuffix("__init__.py")
            graph[module.path] = graph[module.path] | {
                path for path in graph if path.startswith(folder) and "/" not in path.removeprefix(folder)
            } - {module.path}
    return graph


def reached(graph: Graph, starts: Iterable[str]) -> set[str]:
    found, waiting = set(starts), list(starts)
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found


def lines_of_node_reached(tree: Tree, graph: Graph, role: str) -> Figure:
    """Count the lines of the node's folder that the modules of a role reach by imports."""
    found = reached(graph, [module.path for module in tree.in_folder(role)])
    return total({path: tree.modules[path].lines for path in found if tree.modules[path].folder == NODE})


def circles_of_files(graph: Graph) -> Figure:
    """Count the groups of files each of which reaches all others of its group."""
    groups = circles(graph)
    return Figure(len(groups), {path: len(group) for group in groups for path in group})


def circles_of_folders(tree: Tree, graph: Graph) -> Figure:
    """Count the pairs of folders at the top that import each other. A longer circle counts once if
    no two of its folders are such a pair. The causes are the arrows in the thinner direction.
    """
    arrows = arrows_of_folders(tree, graph)
    folders = {folder: {to for of, to in arrows if of == folder} for folder in tree.folders}
    number, causes = 0, list[str]()
    for group in circles(folders):
        pairs = [
            (one, other)
            for one, other in combinations(sorted(group), 2)
            if {(one, other), (other, one)} <= arrows.keys()
        ]
        number += len(pairs) or 1
        thinner = [min((pair, pair[::-1]), key=lambda arrow: len(arrows[arrow])) for pair in pairs]
        among = thinner or [arrow for arrow in arrows if {*arrow} <= group]
        causes += [path for arrow in among for path in arrows[arrow]]
    return Figure(number, count(causes).causes)


def arrows_of_folders(tree: Tree, graph: Graph) -> dict[tuple[str, str], list[str]]:
    """Return the files with imports of another folder, once for each import, by the two folders."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for path, imported in graph.items():
        for other in imported:
            pair = (tree.modules[path].folder, tree.modules[other].folder)
            if "" not in pair and pair[0] != pair[1]:
                arrows.setdefault(pair, []).append(path)
    return arrows


def circles(graph: Graph) -> list[frozenset[str]]:
    """Return the groups of two or more nodes each of which reaches all others of its group."""
    rest = _trimmed(graph)
    to = {node: reached(rest, [node]) for node in rest}
    groups = {frozenset(other for other in to[node] if node in to[other]) for node in rest}
    return sorted((group for group in groups if len(group) > 1), key=sorted)


def _trimmed(graph: Graph) -> Graph:
    """Leave out the nodes without an arrow that leads on, again and again; without a circle nothing
    is left.
    """
    rest = dict(graph)
    while ends := [node for node, to in rest.items() if not to & rest.keys()]:
        for node in ends:
            del rest[node]
    return {node: to & rest.keys() for node, to in rest.items()}
