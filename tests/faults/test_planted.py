"""The bugs that the detector is tried with still fit the program."""

import pytest

from tests.faults import planted


@pytest.mark.parametrize("name", planted.BUGS)
def test_a_bug_has_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each replaces what is still there, and says what it is."""
    replaced: list[str] = []

    def put_in(owner: object, name: str, bug: object) -> None:
        monkeypatch.setattr(owner, name, bug)
        replaced.append(name)

    monkeypatch.setattr(planted, "put_in", put_in)
    planted.BUGS[name].plant()
    assert replaced and planted.BUGS[name].sentence.endswith(".")
