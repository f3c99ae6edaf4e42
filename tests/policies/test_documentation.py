"""What docs/policies.md shows works as it stands."""

import re
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "policies.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who copies the policy and its test has a test that passes."""
    policy, test = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "team_policy.py").write_text(policy)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, object] = {}
    exec(test, names)
    [shown] = [value for name, value in names.items() if name.startswith("test_")]
    assert callable(shown)
    shown()
    del sys.modules["team_policy"]
