"""The program's modules as a measure sees them: each is parsed and walked once.

A tree is the files by their paths, so a test writes a tiny one and needs no folder. Paths begin at
the root of the repository, which is the package `minicontroller`.
"""

import ast
import gc
import io
import subprocess
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TypeVar

PACKAGE = "minicontroller"
PROJECT = "pyproject.toml"

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@dataclass(eq=False)
class Module:
    path: str
    source: str
    _nodes: dict[type[ast.AST], list[ast.AST]] = field(default_factory=dict)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def lines(self) -> int:
        return len(self.source.splitlines())

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """The classes and functions at the top of the module by name."""
        return {node.name: node for node in self.tree.body if isinstance(node, Definition)}

    @property
    def folder(self) -> str:
        """The folder at the top of the repository; empty for the root's own modules."""
        return self.path.partition("/")[0] if "/" in self.path else ""

    def of(self, kind: type[N]) -> list[N]:
        """Return the nodes of one kind, in no particular order."""
        if not self._nodes:
            for node in _walked(self.tree):
                self._nodes.setdefault(type(node), []).append(node)
        return self._nodes.get(kind, [])  # type: ignore[return-value]  # each list has one kind

    def functions(self) -> Iterator[Function]:
        return chain(self.of(ast.FunctionDef), self.of(ast.AsyncFunctionDef))


def _walked(tree: ast.AST) -> Iterator[ast.AST]:
    """Like `ast.walk`, without the contexts of names, which are a third of all nodes."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context))


class Tree:
    """The modules of the program by path, and what their imports name."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.modules = {path: Module(path, source) for path, source in files.items()}
        self._imports: dict[str, list[tuple[str, ast.alias]]] = {}
        self._paths = {_dotted(path): path for path in files}

    @classmethod
    def read(cls, root: Path) -> "Tree":
        """Read the modules of the root, and the packages that pyproject.toml installs."""
        folders = program_folders((root / PROJECT).read_text())
        paths = sorted(root.glob("*.py"))
        paths += [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]
        with _collector_paused():
            return cls({path.relative_to(root).as_posix(): path.read_text() for path in paths})._parsed()

    @classmethod
    def at_commit(cls, root: Path, commit: str) -> "Tree":
        """Read the program as it was at a commit. Raises CalledProcessError."""
        project = git(root, "show", f"{commit}:{PROJECT}").decode()
        archive = git(root, "archive", commit, ":(glob)*.py", *program_folders(project))
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            found = {member.name: files.extractfile(member) for member in files if member.name.endswith(".py")}
            return cls({name: file.read().decode() for name, file in found.items() if file is not None})

    def _parsed(self) -> "Tree":
        for module in self:
            module.of(ast.AST)
        return self

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())

    @property
    def folders(self) -> set[str]:
        return {module.folder for module in self} - {""}

    def in_folder(self, *folders: str) -> list[Module]:
        return [module for module in self if module.folder in folders]

    def imports(self, module: Module) -> list[tuple[str, ast.alias]]:
        """Return the path of each module of the program that a module imports, with what it takes
        from there. A name that is a module itself is that module.
        """
        if module.path not in self._imports:
            self._imports[module.path] = [*self._plain(module), *self._relative(module)]
        return self._imports[module.path]

    def _plain(self, module: Module) -> Iterator[tuple[str, ast.alias]]:
        for alias in (alias for node in module.of(ast.Import) for alias in node.names):
            package, _, name = alias.name.partition(".")
            if package == PACKAGE and name in self._paths:
                yield self._paths[name], alias

    def _relative(self, module: Module) -> Iterator[tuple[str, ast.alias]]:
        for node in module.of(ast.ImportFrom):
            base = self._base(module, node)
            for alias in node.names if base is not None else ():
                found = self._paths.get(f"{base}.{alias.name}".lstrip(".")) or self._paths.get(base or "")
                if found is not None:
                    yield found, alias

    def _base(self, module: Module, node: ast.ImportFrom) -> str | None:
        """Return the dotted name of the module that `from ... import` names, below the root."""
        if not node.level:
            package, _, name = (node.module or "").partition(".")
            return name if package == PACKAGE else None
        folders = module.path.split("/")[: -node.level]
        return ".".join([*folders, *([node.module] if node.module else [])])

    def definition(self, module: Module, name: str) -> tuple[Module, Definition] | None:
        """Find the class or function that a name means in a module, where it is defined."""
        if name in module.definitions:
            return module, module.definitions[name]
        for path, alias in self.imports(module):
            if (alias.asname or alias.name) == name and path != module.path:
                return self.definition(self.modules[path], alias.name)
        return None

    def class_named(self, module: Module, name: str) -> tuple[Module, ast.ClassDef] | None:
        found = self.definition(module, name)
        return (found[0], found[1]) if found is not None and isinstance(found[1], ast.ClassDef) else None


def assigned_attributes(node: ast.AST) -> Iterator[str]:
    """Yield the attributes of `self` that are assigned anywhere in a class or a function."""
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def program_folders(project: str) -> list[str]:
    """Return the folders at the top with packages that pyproject.toml installs."""
    packages = tomllib.loads(project)["tool"]["setuptools"]["packages"]
    return sorted({name.split(".")[1] for name in packages if "." in name})


def git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True).stdout


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("__init__").rstrip("/").replace("/", ".")


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the garbage collector from visiting half a million new nodes again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
