"""The files of a policy in Python, on their way to whoever asks it.

Rule: what travels is what the policy imports from its own folder, and what it reads there while it
is loaded. What is installed does not: it has to be installed there as well. Wherever a policy is
loaded, it is loaded anew, and nothing that it imported from its folder stays.
"""

import ast
import importlib.machinery
import site
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

MAX_BYTES = 50_000_000
"""Of what a folder sends along."""
INSTALLED = tuple(
    {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    }
)
OURS = "minicontroller"


class TooMuchError(Exception):
    """The policy's files are too large to send; the message is a sentence."""


class Folder(msgspec.Struct, frozen=True):
    """The content of a part of a folder."""

    path: str
    """Where it was."""
    files: dict[str, bytes]
    """By their paths within it."""


class Origin(msgspec.Struct, frozen=True):
    """Where a class comes from, `path/to/file.py:Class` or `module:Class`."""

    place: str
    name: str
    folder: str | None
    """Whose files travel; None for what is installed."""

    def elsewhere(self, places: Mapping[str, Path]) -> str:
        """Return the origin of the same class after its folder was unpacked elsewhere."""
        if self.folder is None or not is_file(self.place):
            return f"{self.place}:{self.name}"
        return f"{places[self.folder] / Path(self.place).name}:{self.name}"


def is_file(place: str) -> bool:
    """Whether a policy's place is a file and not a module, as policies/class_lookup.py decides."""
    return place.endswith(".py") or "/" in place


def origin_of(spec: str) -> Origin:
    """Return the origin of a class that has been loaded."""
    place, _, name = spec.strip().rpartition(":")
    if is_file(place):
        file = Path(place).resolve()
        return Origin(str(file), name, str(file.parent))
    top_name = place.partition(".")[0]
    top = sys.modules[top_name]
    found = [*getattr(top, "__path__", []), *([top.__file__] if getattr(top, "__file__", None) else [])]
    folder = str(Path(found[0]).resolve().parent) if found else None
    own = top_name != OURS and folder is not None and not is_installed(Path(folder))
    return Origin(place, name, folder if own else None)


def packed(origin: Origin, read: Iterable[str], imported: Iterable[str]) -> Folder | None:
    """Return the files that must travel with a policy which read these files and imported these
    modules when it was loaded. Raises TooMuchError.
    """
    if origin.folder is None:
        return None
    root = Path(origin.folder)
    first = Path(origin.place) if is_file(origin.place) else _file_of(root, origin.place)
    sources = [sys.modules[name].__file__ or "" for name in imported if lies_in(name, (origin.folder,))]
    wanted = {*_needed(root, first), *(Path(file).resolve() for file in (*read, *sources))}
    inside = sorted(file for file in wanted if file.is_relative_to(root) and file.is_file() and not is_installed(file))
    files = {file.relative_to(root).as_posix(): file.read_bytes() for file in inside}
    size = sum(map(len, files.values()))
    if size > MAX_BYTES:
        raise TooMuchError(
            f"The policy's files in {root} have {size:,} bytes, but at most {MAX_BYTES:,} are sent to the workers: what it reads while it "
            "is loaded has to be smaller, or to lie elsewhere, at the same place on every machine."
        )
    return Folder(origin.folder, files)


@contextmanager
def unpacked(folders: Iterable[Folder]) -> Iterator[Mapping[str, Path]]:
    """Unpack the files of each folder on this machine for the time of the block."""
    with TemporaryDirectory(prefix="minicontroller-policy-") as temporary:
        places = {}
        for number, folder in enumerate(folders):
            place = places[folder.path] = Path(temporary).resolve() / str(number)
            for name, data in folder.files.items():
                file = place / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        yield places


@contextmanager
def forgotten_after(folders: Collection[str], *, first: Iterable[Path] = ()) -> Iterator[None]:
    """Forget, after the block, what was imported from these folders within it. Modules are looked
    for in `first` first.
    """
    path, writes = list(sys.path), sys.dont_write_bytecode
    known = set(sys.modules)
    sys.path[:0] = map(str, first)
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = writes
        for name in sorted(set(sys.modules) - known):
            if lies_in(name, folders):
                del sys.modules[name]


def lies_in(module: str, folders: Collection[str]) -> bool:
    """Whether an imported module is a user's own and lies in one of the folders."""
    name = getattr(sys.modules.get(module), "__file__", None)
    if name is None or module.partition(".")[0] == OURS:
        return False
    file = Path(name).resolve()
    return any(file.is_relative_to(folder) for folder in folders) and not is_installed(file)


def is_installed(file: Path) -> bool:
    return str(file).startswith(INSTALLED)


# ------------------------------------------------------------------ what a file imports


def _needed(root: Path, first: Path | None) -> set[Path]:
    """Return the first file and all files of its folder that it imports, directly or not."""
    found: set[Path] = set()
    waiting = [first] if first is not None else []
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found.add(file)
        for name in _imports(file, root):
            waiting += _files_of(root, name)
    return found


def _imports(file: Path, root: Path) -> Iterator[str]:
    """Yield the names that a file imports, of modules or of what may be modules."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = file.relative_to(root).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join((*above, *((node.module,) if node.module else ())))
            yield module
            yield from (f"{module}.{alias.name}".strip(".") for alias in node.names)


def _files_of(root: Path, name: str) -> Iterator[Path]:
    """Yield the files of a module and of the packages around it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        file = _file_of(root, ".".join(parts[:count]))
        if file is not None:
            yield file


def _file_of(root: Path, name: str) -> Path | None:
    base = root.joinpath(*name.split("."))
    candidates = [base / "__init__.py", base.with_name(f"{base.name}.py")]
    candidates += [base.with_name(base.name + suffix) for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    return next((file for file in candidates if file.is_file()), None)
