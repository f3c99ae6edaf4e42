"""Measures of the APIs: what their handlers are given, how long they are, and where the product
names them.

An API is a module that ends in `API = ...`, wherever it lies. Its name is the module's, and another
module of the name may declare it by `SPEC = ...`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath
from statistics import median

from tests.structure.figures import Figure, count, largest
from tests.structure.layout import (
    API_KEYS,
    DECLARATIONS,
    MESSAGES,
    SAMPLE_API,
    SHARE_OF_HANDLERS,
    SLICING_NAMES,
    SLICING_PART,
)
from tests.structure.tree import Function, Module, Tree, assigned_attributes

CONSTRUCTORS = ("__init__", "__post_init__")


@dataclass(frozen=True)
class Api:
    name: str
    module: Module
    answered: ast.Call
    declared: tuple[Module, ast.Call]

    @property
    def functions(self) -> list[ast.expr]:
        """The handler and the receiver."""
        named = [keyword.value for keyword in self.answered.keywords if keyword.arg in ("handler", "receiver")]
        return [*self.answered.args[1:], *named]

    @property
    def operation(self) -> str | None:
        """The operation in the audit log, if the API changes anything."""
        changes = next((each.value for each in self.declared[1].keywords if each.arg == "changes"), None)
        first = changes.args[0] if isinstance(changes, ast.Call) and changes.args else None
        return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


@lru_cache(maxsize=1)
def apis(tree: Tree) -> list[Api]:
    specs = {stem: (module, call) for stem, module, call in _declarations(tree, "SPEC")}
    return [
        Api(stem, module, call, specs.get(stem, (module, call))) for stem, module, call in _declarations(tree, "API")
    ]


def _declarations(tree: Tree, name: str) -> Iterator[tuple[str, Module, ast.Call]]:
    for module in tree:
        for node in module.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call):
                    pass
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.Call() as call):
                    pass
                case _:
                    continue
            if target == name and _name(call.func) in DECLARATIONS[name]:
                yield PurePath(module.path).stem, module, call


def _name(node: ast.AST) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


# What a handler is given


def handlers_of(tree: Tree, api: Api) -> list[tuple[Module, Function]]:
    """Return the functions that the declaration names as the handler and the receiver."""
    found = [tree.definition(api.module, _name(part)) for part in api.functions]
    return [(each[0], each[1]) for each in found if each is not None and isinstance(each[1], Function)]


def fields_given(tree: Tree) -> Figure:
    """Find the most fields of a class by which a handler's parameter is annotated, other than the
    messages. A field is an annotated name of the class, a public attribute that its constructor
    assigns, or a property of a Protocol, of the class and of those it inherits from. A field that
    only groups parts counts as the parts.
    """
    given: dict[str, int] = {}
    for api in apis(tree):
        for module, handler in handlers_of(tree, api):
            for name in _annotating(handler):
                found = tree.class_named(module, name)
                if found is not None and not found[0].path.startswith(MESSAGES):
                    given[f"{found[0].path} ({name})"] = sum(_parts(tree, *found).values())
    return largest(given)


def _parts(tree: Tree, module: Module, of: ast.ClassDef, above: frozenset[str] = frozenset()) -> dict[str, int]:
    """Return how many parts each field of a class counts for."""
    return {
        name: sum(_parts(tree, *group, above | {of.name}).values())
        if (group := _group(tree, module, annotation, above | {of.name})) is not None
        else 1
        for name, annotation in fields(tree, module, of).items()
    }


def _group(
    tree: Tree, module: Module, annotation: ast.expr | None, above: frozenset[str]
) -> tuple[Module, ast.ClassDef] | None:
    """Return the class of a field if it has no methods, and any of its own fields has a class that
    has some: it groups parts. A class of mere values is one value.
    """
    found = _class_in(tree, module, annotation)
    if found is None or found[1].name in above or _acts(tree, *found):
        return None
    inner = [_class_in(tree, found[0], each) for each in fields(tree, *found).values()]
    return found if any(each is not None and _acts(tree, *each) for each in inner) else None


def _class_in(tree: Tree, module: Module, annotation: ast.expr | None) -> tuple[Module, ast.ClassDef] | None:
    """Return the first class that is named in an annotation, as in `Part | None`."""
    names = [] if annotation is None else map(_name, ast.walk(annotation))
    return next((found for name in names if name and (found := tree.class_named(module, name)) is not None), None)


def _acts(tree: Tree, module: Module, of: ast.ClassDef) -> bool:
    """Whether a class has methods, of its own or inherited."""
    bases = [found for base in of.bases if (found := tree.class_named(module, _name(base))) is not None]
    return any(isinstance(node, Function) and node.name not in CONSTRUCTORS for node in of.body) or any(
        _acts(tree, *base) for base in bases if base[1] is not of
    )


def _annotating(function: Function) -> set[str]:
    arguments = function.args
    annotations = [each.annotation for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    texts = [
        ast.parse(node.value) for node in annotations if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {_name(node) for root in (*annotations, *texts) if root is not None for node in ast.walk(root)}


def fields(tree: Tree, module: Module, of: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the fields of a class with their classes, as far as these can be read."""
    found: dict[str, ast.expr | None] = {
        node.target.id: node.annotation
        for node in of.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    is_protocol = "Protocol" in map(_name, of.bases)
    for node in of.body:
        if isinstance(node, ast.FunctionDef):
            if node.name in CONSTRUCTORS:
                found |= {name: made for name, made in _assigned(node).items() if not name.startswith("_")}
            elif is_protocol and "property" in map(_name, node.decorator_list):
                found[node.name] = node.returns
    for base in of.bases:
        inherited = tree.class_named(module, _name(base))
        if inherited is not None and inherited[1] is not of:
            found = fields(tree, *inherited) | found
    return found


def _assigned(constructor: ast.FunctionDef) -> dict[str, ast.expr | None]:
    """Return the attributes that a constructor assigns, with the function that makes each."""
    found: dict[str, ast.expr | None] = dict.fromkeys(assigned_attributes(constructor))
    for node in ast.walk(constructor):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call(func=made)):
                found[name] = made
            case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                found[name] = annotation
            case _:
                pass
    return found


# How long handlers are, and whether they slice time


def handler_modules(tree: Tree) -> list[Module]:
    """Return the modules that declare an API, and all modules of a folder many of whose modules
    do.
    """
    declaring = {module.path for api in apis(tree) for module in (api.module, api.declared[0])}
    folders: dict[PurePath, list[Module]] = {}
    for module in tree:
        folders.setdefault(PurePath(module.path).parent, []).append(module)
    found = {path: tree.modules[path] for path in declaring}
    for modules in folders.values():
        if sum(module.path in declaring for module in modules) * SHARE_OF_HANDLERS >= len(modules):
            found |= {module.path: module for module in modules}
    return list(found.values())


def lines_of_an_api(tree: Tree) -> Figure:
    """Divide the lines of the handlers' modules and of the messages by the number of APIs."""
    modules = handler_modules(tree) + [module for module in tree if module.path.startswith(f"{MESSAGES}/")]
    lines = {module.path: module.lines for module in modules}
    return Figure(round(sum(lines.values()) / max(1, len(apis(tree)))), lines)


def slicing_handlers(tree: Tree) -> Figure:
    """Count the handlers' modules that decide whether, or say how, to slice time."""
    return count(module.path for module in handler_modules(tree) if any(map(_slices, _names(module))))


def _slices(name: str) -> bool:
    return name in SLICING_NAMES or SLICING_PART in name


def _names(module: Module) -> Iterator[str]:
    yield from (node.id for node in module.of(ast.Name))
    yield from (node.attr for node in module.of(ast.Attribute))
    yield from (node.name for node in module.of(ast.alias))
    yield from (node.name for node in module.functions())


# Where the product names an API


@lru_cache(maxsize=1)
def files_by_api(tree: Tree) -> dict[str, set[str]]:
    """Return the files that an API touches, by its name: the table of keys, its messages, its
    declaration, and each file that names its key, imports its messages, or spells the operation
    that the audit log has for it.
    """
    declared = apis(tree)
    files = {
        api.name: {API_KEYS, f"{MESSAGES}/{api.name}.py", api.module.path, api.declared[0].path} & tree.modules.keys()
        for api in declared
    }
    keys = {api.name.upper(): api.name for api in declared}
    operations = {api.operation: api.name for api in declared if api.operation is not None}
    for module in tree:
        for name in _apis_named(tree, module, keys, operations):
            if name in files:
                files[name].add(module.path)
    return files


def _apis_named(tree: Tree, module: Module, keys: dict[str, str], operations: dict[str, str]) -> Iterator[str]:
    for attribute in module.of(ast.Attribute):
        if attribute.attr in keys and _name(attribute.value) == "ApiKey":
            yield keys[attribute.attr]
    for text in module.of(ast.Constant):
        if isinstance(text.value, str) and text.value in operations:
            yield operations[text.value]
    for path, _ in tree.imports(module):
        if path.startswith(f"{MESSAGES}/"):
            yield PurePath(path).stem


def files_of_the_sample(tree: Tree) -> Figure:
    return count(files_by_api(tree).get(SAMPLE_API, ()))


def files_of_a_changing_api(tree: Tree) -> Figure:
    """Find the API with a change that touches the most files."""
    files = files_by_api(tree)
    return largest({api.name: len(files[api.name]) for api in apis(tree) if api.operation is not None})


def files_of_an_api(tree: Tree) -> Figure:
    """Return the median over all APIs."""
    numbers = {name: len(files) for name, files in files_by_api(tree).items()}
    return Figure(round(median(numbers.values() or [0])), numbers)
