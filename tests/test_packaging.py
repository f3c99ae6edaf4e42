"""What `pip` makes of this project: a wheel that holds the program and nothing else, and runs far
from the checkout.
"""

import ast
import re
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from minicontroller import __version__
from tests.support.cluster import READY, STOP_TIMEOUT_SECONDS
from tests.support.wheel import build_wheel, install

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "benchmarks")

READ = {"tzdata", "pandas"}
"""Data, which the standard library finds; what PySpark imports."""

IMPORTED_AS = {"common_expression_language": "cel", "google_re2": "re2"}
"""Dependencies whose package has another name."""

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(name="wheel", scope="module")
def built_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def own_modules() -> Iterator[Path]:
    yield from ROOT.glob("*.py")
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def shown() -> Iterator[Path]:
    """Yield the files that pages are made of."""
    for package in PACKAGES:
        for ending in ("html", "css", "js"):
            yield from (ROOT / package).rglob(f"*.{ending}")


def test_a_wheel_holds_the_program_and_nothing_else(wheel: Path) -> None:
    """Every module of the package, its pages and the mark that it is typed; no tests, documents,
    samples or benchmarks.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {f"minicontroller/{module.relative_to(ROOT)}" for module in own_modules()}
    assert names == {
        *wanted,
        "minicontroller/py.typed",
        *(f"minicontroller/{path.relative_to(ROOT)}" for path in shown()),
    }


def test_a_wheel_tells_its_version_and_licence(wheel: Path) -> None:
    """The version is the package's own, the licence is there, and the page that registries show is
    the README.
    """
    metadata = metadata_of(wheel)
    assert (metadata["Version"], metadata["License-Expression"]) == (__version__, "Apache-2.0")
    assert metadata["License-File"] == "LICENSE"
    assert metadata.get_payload() == (ROOT / "README.md").read_text()


def test_extras_and_groups_are_there(wheel: Path) -> None:
    """The extra with Spark, and the groups that CONTRIBUTING speaks of."""
    assert metadata_of(wheel).get_all("Provides-Extra") == ["pipeline"]
    assert set(PROJECT["dependency-groups"]) == {"tests", "browser", "lint", "dev", "fuzz"}


def test_what_is_imported_is_declared() -> None:
    """Each foreign package that the program imports is a dependency, and each dependency is
    imported.
    """
    imported = set()
    for module in own_modules():
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                imported.add(node.module.split(".")[0])
    foreign = imported - sys.stdlib_module_names - {"minicontroller"}
    dependencies = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["pipeline"]]
    declared = {re.split("[<>=~ ]", line)[0].replace("-", "_") for line in dependencies}
    assert foreign == {IMPORTED_AS.get(name, name) for name in declared - READ}


def test_an_installed_wheel_runs_anywhere(wheel: Path, tmp_path: Path) -> None:
    """Installed from the wheel alone, `minicontroller up` serves from an empty folder, and Ctrl-C
    ends it.
    """
    command = install(wheel, tmp_path / "venv")
    (tmp_path / "empty").mkdir()
    up = subprocess.Popen(
        [command, "up", "--brokers", "3", "--port", "0"],
        cwd=tmp_path / "empty",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert up.stdout is not None
        assert up.stdout.readline().startswith(READY)
        where = [str(command.with_name("python")), "-c", "import minicontroller; print(minicontroller.__file__)"]
        assert str(tmp_path) in subprocess.run(where, capture_output=True, text=True, check=True).stdout
        up.send_signal(signal.SIGINT)
        _, stderr = up.communicate(timeout=STOP_TIMEOUT_SECONDS)
    finally:
        up.kill()
        up.communicate()
    assert (up.returncode, "Traceback" in stderr) == (0, False), stderr
