"""What docs/policies.md shows works as it stands."""

import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "policies.md"


def test_the_examples_run(tmp_path: Path) -> None:
    """A reader who copies the policy and its test has a test that passes."""
    policy, test = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "team_policy.py").write_text(policy)
    (tmp_path / "test_team_policy.py").write_text(test)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
