"""Measures of the classes: those that describe a change, the requests that a policy decides, names
with several meanings, and Protocols that one class implements.
"""

import ast
from collections.abc import Iterator

from tests.structure.figures import Figure, count, total
from tests.structure.layout import CHANGE_CLASSES, OTHER_MEANINGS, POLICY_INTERFACE
from tests.structure.tree import Module, Tree, assigned_attributes


def change_classes(tree: Tree) -> Figure:
    """Count the classes of the list that still exist."""
    found = {
        node.name: f"{module.path} ({node.name})"
        for module in tree
        if module.folder not in OTHER_MEANINGS
        for node in module.of(ast.ClassDef)
        if node.name in CHANGE_CLASSES
    }
    return count(found.values())


def policy_requests(tree: Tree) -> Figure:
    """Find the largest number of modules that construct the same request of a policy."""
    places: dict[str, set[str]] = {}
    for module in tree:
        for name in _constructed(tree, module):
            places.setdefault(name, set()).add(module.path)
    most = max(map(len, places.values()), default=0)
    widest = [paths for paths in places.values() if len(paths) == most]
    return Figure(most, count(path for paths in widest for path in paths).causes)


def _constructed(tree: Tree, module: Module) -> Iterator[str]:
    names = {
        alias.asname or alias.name: alias.name
        for path, alias in tree.imports(module)
        if path == POLICY_INTERFACE and alias.name.endswith("Request")
    }
    for call in module.of(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id in names:
            yield names[call.func.id]


def ambiguous_names(tree: Tree) -> Figure:
    """Count the names of classes that several classes have."""
    places: dict[str, list[str]] = {}
    for module in tree:
        for node in module.of(ast.ClassDef):
            places.setdefault(node.name, []).append(f"{module.path} ({node.name})")
    several = {name: paths for name, paths in places.items() if len(paths) > 1}
    return Figure(len(several), count(path for paths in several.values() for path in paths).causes)


def single_protocols(tree: Tree) -> Figure:
    """Count the Protocols whose members one class of the program has, and no other. Members are
    compared by name; a Protocol of a function, and one that classes elsewhere implement, is none.
    """
    classes = [(module, node) for module in tree for node in module.of(ast.ClassDef)]
    members = {id(node): _members(tree, module, node) for module, node in classes}
    protocols = [(module, node) for module, node in classes if _is_protocol(node)]
    implementing = [members[id(node)] for _, node in classes if not _is_protocol(node)]
    found = {}
    for module, node in protocols:
        wanted = {name for name in members[id(node)] if not name.startswith("__")}
        if wanted and sum(wanted <= offered for offered in implementing) == 1:
            found[f"{module.path} ({node.name})"] = 1
    return total(found)


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(isinstance(name, ast.Name) and name.id == "Protocol" for base in node.bases for name in ast.walk(base))


def _members(tree: Tree, module: Module, node: ast.ClassDef) -> set[str]:
    found = set(assigned_attributes(node))
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(statement.name)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
        elif isinstance(statement, ast.Assign):
            found |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    for base in node.bases:
        inherited = tree.class_named(module, getattr(base, "id", ""))
        if inherited is not None and inherited[1] is not node:
            found |= _members(tree, *inherited)
    return found
