"""The class that `module:Class` or `path/to/file.py:Class` names.

Rule: nothing is guessed. For a class that cannot be found, the `PolicyLoadError` says what was
looked for, where, and what comes nearest.

A file may import its neighbours: its folder is appended to `sys.path`, so that it hides nothing
that is installed. Nothing is written beside the file, because its folder may be read-only, and each
load runs the file as it is then.
"""

import importlib
import sys
from difflib import get_close_matches
from hashlib import sha256
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType

from .load_errors import PolicyLoadError, as_load_error

OF_JAVA = ("java.", "kafka.", "org.apache.kafka.")
"""How the names of Kafka's own classes begin."""


def find_class(key: str, spec: str) -> type:
    """Return the class that `spec`, the value of the configuration's `key`, names. Raises
    PolicyLoadError.
    """
    place, name = named_class(key, spec)
    module = _file(key, Path(place)) if place.endswith(".py") or "/" in place else _module(key, place)
    with as_load_error(f"{key}: {place} raised an exception when {name} was looked up"):
        found = getattr(module, name, None)
    if isinstance(found, type):
        return found
    raise PolicyLoadError(f"{key}: {place} has no class {name}{_nearest_class(module, name)}")


def named_class(key: str, spec: str) -> tuple[str, str]:
    """Return the module or file, and the class, that `spec` names. Raises PolicyLoadError if it has
    another form.
    """
    place, _, name = spec.rpartition(":")
    if not place or not name.isidentifier():
        raise PolicyLoadError(f"{key} is {spec!r}, but takes module:Class or path/to/file.py:Class{_respelt(spec)}")
    return place, name


def _respelt(spec: str) -> str:
    """Return the end of a sentence that guesses what was meant: a class written as in Java, or a
    path without its class.
    """
    module, _, name = spec.rpartition(".")
    if name == "py":
        return f": which class of {spec} is the policy?"
    if spec.startswith(OF_JAVA):
        return (
            ", and this names a class of Java, which cannot be loaded here: write it in Python, or leave the key out."
        )
    return f"; did you mean {module}:{name}?" if module and name.isidentifier() and ":" not in spec else "."


def _nearest_class(module: ModuleType, name: str) -> str:
    classes = [known for known, value in vars(module).items() if isinstance(value, type)]
    own = [known for known in classes if vars(module)[known].__module__ == module.__name__]
    nearest = get_close_matches(name, classes, n=1) or own[:1]
    return (
        f"; did you mean {nearest[0]}?" if nearest else " and no other class: name the file or module that defines it."
    )


def _module(key: str, name: str) -> ModuleType:
    try:
        with as_load_error(f"{key}: the module {name} cannot be imported"):
            return importlib.import_module(name)
    except PolicyLoadError as failure:
        missing = failure.__cause__.name if isinstance(failure.__cause__, ModuleNotFoundError) else None
        if missing is None or not f"{name}.".startswith(f"{missing}."):
            raise  # the module is there; it is something that it imports that is not
    file = Path(*name.split(".")).with_suffix(".py")
    hint = f"did you mean {file}?" if file.is_file() else "install it, put its folder in PYTHONPATH, or name a file."
    raise PolicyLoadError(f"{key}: there is no module {name}; {hint}")


def _file(key: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise PolicyLoadError(f"{key}: there is no file {path.absolute()}{_nearest_file(path)}")
    file = path.resolve()
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    # Nobody imports a module of this name, so a file called json.py hides nothing.
    name = f"policy_{sha256(bytes(file)).hexdigest()[:8]}_{file.stem}"
    loader = _AsItStands(name, str(file))
    with as_load_error(f"{key}: {path} cannot be loaded"):
        module = module_from_spec(ModuleSpec(name, loader, origin=str(file)))
        module.__file__ = str(file)
        sys.modules[name] = module  # dataclasses, type hints and pickles look for it there
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module


def _nearest_file(path: Path) -> str:
    siblings = [sibling.name for sibling in path.parent.glob("*.py")] if path.parent.is_dir() else []
    nearest = get_close_matches(path.name, siblings, n=1)
    return f"; did you mean {path.parent / nearest[0]}?" if nearest else "; name a Python file that is there."


class _AsItStands(SourceFileLoader):
    """Loads a source file and ignores cached bytecode, which may be of an older text that had the
    same size and was written in the same second.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code
