"""The package as `pip` installs it: a wheel, and an environment that has it and nothing of the
checkout.
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_SOURCE = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "vectors", "recordings")


def build_wheel(folder: Path) -> Path:
    """Made of a copy, because setuptools leaves things behind where it builds."""
    shutil.copytree(ROOT, folder / "checkout", ignore=NOT_SOURCE)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([*pip, str(folder / "checkout")], check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def install(wheel: Path, environment: Path) -> Path:
    """Into a new environment, with the dependencies of the tests' own. Returns the command."""
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True)
    _borrow_dependencies(environment)
    return environment / "bin" / "minicontroller"


def _borrow_dependencies(environment: Path) -> None:
    """Which saves fetching them; the editable `minicontroller` beside them does not come along."""
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(str(Path(pytest.__file__).parents[1]) + "\n")
