"""What people have: the program as `pip` installs it, far from any checkout."""

from pathlib import Path

import pytest

from tests.people.person import Person
from tests.support.wheel import build_wheel, install


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command."""
    folder = tmp_path_factory.mktemp("installed")
    return install(build_wheel(folder), folder / "venv")


@pytest.fixture
def somebody(installed: Path, tmp_path: Path) -> Person:
    return Person(installed, tmp_path)
