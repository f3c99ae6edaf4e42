"""Packages the files of a policy in Python, and unpacks them at Spark's workers.

A package has the modules that the policy imports from its own folder, and the files that it reads
there while it is loaded. Installed libraries are not packaged; every worker needs them. A policy is
always imported afresh, and the modules of its folder are unloaded afterwards.
"""

import ast
import os
import site
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from tempfile import TemporaryDirectory

from ...policies.load_errors import PolicyLoadError

MAX_BYTES = 50_000_000
"""How many bytes of files a folder may send along with a class."""
INSTALLED = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    *site.getsitepackages(),
    site.getusersitepackages(),
)
OURS = "minicontroller"
MODULES = ("/__init__.py", ".py", *EXTENSION_SUFFIXES)
"""The endings of a module's file after its name."""

FileContents = dict[str, bytes]
"""The content of a part of a folder, by paths within it."""


def is_file(spec: str) -> bool:
    """Whether a class is named with its file and not with a module, as policies/class_lookup.py
    decides.
    """
    place = spec.rpartition(":")[0]
    return place.endswith(".py") or "/" in place


def absolute_spec(spec: str) -> str:
    """Return the name of a class, with the absolute path of its file if it is named by one."""
    place, _, name = spec.strip().rpartition(":")
    return f"{Path(place).resolve()}:{name}" if is_file(spec) else spec.strip()


def folder_of(spec: str) -> str | None:
    """Return the folder whose files travel with a class that has been loaded; None if the class is
    installed.
    """
    if is_file(spec):
        return str(Path(spec.rpartition(":")[0]).parent)
    top = sys.modules[spec.partition(":")[0].partition(".")[0]]
    found = next(iter(getattr(top, "__path__", ())), None) or getattr(top, "__file__", None)
    if top.__name__ == OURS or found is None or is_installed(Path(found).resolve().parent):
        return None
    return str(Path(found).resolve().parent)


def packaged(spec: str, folder: str, read: Iterable[str], imported: Iterable[str]) -> FileContents:
    """Return the files of a folder that must travel with a class which read these files and
    imported these modules when it was loaded. Raises PolicyLoadError.
    """
    root = Path(folder)
    wanted = {*_needed(root, spec), *(Path(file).resolve() for file in read), *_own(imported, (folder,)).values()}
    inside = sorted(file for file in wanted if file.is_relative_to(root) and file.is_file() and not is_installed(file))
    files = {file.relative_to(root).as_posix(): file.read_bytes() for file in inside}
    size = sum(map(len, files.values()))
    if size > MAX_BYTES:
        raise PolicyLoadError(
            f"The policy's files in {root} have {size:,} bytes, but at most {MAX_BYTES:,} are sent to the workers: the files that it reads while it "
            "is loaded must be smaller, or be elsewhere, under the same path on every machine."
        )
    return files


@contextmanager
def unpackaged(folders: Mapping[str, FileContents], searched: Iterable[str]) -> Iterator[Mapping[str, Path]]:
    """Unpack the files of each folder on this machine for the time of the block, and yield where.
    Modules are looked for first in the folders that are `searched`, and forgotten after the block.
    """
    sparks = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]  # a worker's, which goes with Spark
    place = sparks if sparks and Path(sparks).is_dir() else None
    with TemporaryDirectory(prefix="minicontroller-policy-", dir=place) as temporary:
        places = {folder: Path(temporary).resolve() / str(number) for number, folder in enumerate(folders)}
        for folder, files in folders.items():
            for name, data in files.items():
                file = places[folder] / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        with imports_forgotten([str(place) for place in places.values()]):
            sys.path[:0] = [str(places[folder]) for folder in searched]
            yield places


@contextmanager
def imports_forgotten(folders: Collection[str]) -> Iterator[Collection[str]]:
    """Forget, after the block, what was imported from these folders within it. The block gets the
    names of the modules that are known before.
    """
    path, writes = list(sys.path), sys.dont_write_bytecode
    known = set(sys.modules)
    sys.dont_write_bytecode = True
    try:
        yield known
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = writes
        for name in _own(set(sys.modules) - known, folders):
            del sys.modules[name]


def is_installed(file: Path) -> bool:
    return str(file).startswith(INSTALLED)


def _own(modules: Iterable[str], folders: Collection[str]) -> dict[str, Path]:
    """Return the files of those imported modules that are a user's own and lie in these folders."""
    named = {name: getattr(sys.modules[name], "__file__", None) for name in modules if name.partition(".")[0] != OURS}
    files = {name: Path(file).resolve() for name, file in named.items() if file is not None}
    return {
        name: file for name, file in files.items() if any(map(file.is_relative_to, folders)) and not is_installed(file)
    }


# ------------------------------------------------------------------ what a file imports


def _needed(root: Path, spec: str) -> set[Path]:
    """Return the files of a folder that define a class, directly or not."""
    found: set[Path] = set()
    place = spec.rpartition(":")[0]
    waiting = [Path(place)] if is_file(spec) else list(_files_of(root, place.split(".")))
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += (each for name in _imports(file, root) for each in _files_of(root, name))
    return found


def _imports(file: Path, root: Path) -> Iterator[Sequence[str]]:
    """Yield the parts of names that a file imports, of modules or of what may be modules."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = file.relative_to(root).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = node.module.split(".") if node.module else ()
            yield from ((*above, *module, alias.name) for alias in node.names)


def _files_of(root: Path, name: Sequence[str]) -> Iterator[Path]:
    """Yield the files of a module and of the packages around it."""
    for count in range(1, len(name) + 1):
        base = root.joinpath(*name[:count])
        yield from (file for suffix in MODULES if (file := Path(f"{base}{suffix}")).is_file())
