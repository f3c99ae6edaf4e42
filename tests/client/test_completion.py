"""Shell completion, as docs/commands.md says to switch it on."""

from pathlib import Path

import pytest

from tests.cli.command import call


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(tmp_path: Path, shell: str) -> None:
    """The line of the documentation prints a script for that shell."""
    outcome = call(folder=tmp_path, variables={"_MINICONTROLLER_COMPLETE": f"{shell}_source"})
    assert outcome.code == 0
    assert "_MINICONTROLLER_COMPLETE" in outcome.stdout


def test_commands_and_options_are_completed(tmp_path: Path) -> None:
    """After `topics ` come its commands, and after `--` the options."""
    asked = {"_MINICONTROLLER_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    commands = call(folder=tmp_path, variables={**asked, "COMP_WORDS": "minicontroller topics "}).stdout.split()
    assert commands == [f"plain,{name}" for name in ("alter", "create", "delete", "describe", "list")]
    options = call(folder=tmp_path, variables={**asked, "COMP_WORDS": "minicontroller cluster --"}).stdout.split()
    assert "plain,--json" in options
