"""Fuzzes one target in a process of its own: `python -m tests.fuzz.one_target NAME`, and options of
libFuzzer.

Atheris counts the branches that an input takes, so everything of the program is instrumented while
it is imported, and the codec, which is compiled at first use, after its seeds have made it compile.
"""

import gc
import sys
from pathlib import Path
from types import FunctionType

import atheris

GENERATED = "<minicontroller "
"""How the files of functions begin that `protocol/compiler.py` makes."""

with atheris.instrument_imports(include=["minicontroller"]):
    from tests.fuzz.targets import TARGETS


def instrument_generated_functions() -> None:
    """Instrument what was compiled from declarations of messages."""
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(GENERATED):
            atheris.instrument_func(each)


def command(target: str) -> str:
    """Return a program that is this one: libFuzzer starts itself anew to distil, by one name."""
    file = Path("build/fuzz") / target / "one_target"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.fuzz.one_target {target} "$@"\n')
    file.chmod(0o755)
    return str(file)


def main() -> None:
    target = TARGETS[sys.argv[1]]
    for seed in target.seeds():
        target.take(seed)
    instrument_generated_functions()
    atheris.Setup([command(sys.argv[1]), *sys.argv[2:]], target.take)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
