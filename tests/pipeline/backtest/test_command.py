"""`minicontroller pipeline backtest`: what is called wrongly is told before Spark is started, in a
sentence and with the code that fits.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner

from minicontroller.pipeline.commands import pipeline
from tests.pipeline.backtest.asking import at_most

FAILED, WRONG = 1, 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere.toml"], FAILED, "The rule file nowhere.toml cannot be read"),
        (["{rules}", "--set", "policy.timeout.ms"], FAILED, "write it as KEY=VALUE"),
        (["{rules}", "--out", "nowhere/page.html"], WRONG, "There is no folder"),
        (["{rules}", "--out", "page.pdf"], WRONG, "must end in .html"),
        (["{rules}", "--fail-on", "tuesday"], WRONG, "'tuesday' is not one of"),
        (["{rules}", "--since", "tuesday"], WRONG, "is neither a time"),
        (["{rules}", "--conf", "nonsense"], WRONG, "write it as spark.KEY=VALUE"),
        ([], WRONG, "Missing argument 'POLICY'"),
    ],
)
def test_what_is_called_wrongly(arguments: list[str], code: int, said: str, tmp_path: Path) -> None:
    """Policy, files, times and options are looked at first."""
    at_most(tmp_path, 5)
    given = [argument.format(rules=tmp_path / "candidate.toml") for argument in arguments]
    result = CliRunner().invoke(pipeline, ["backtest", *given, "--tables", str(tmp_path)])
    assert result.exit_code == code, result.output
    assert said in result.output and "Traceback" not in result.output


def test_the_help_names_what_can_be_told_apart() -> None:
    """Every kind of failure that CI may want, and what POLICY may be."""
    said = CliRunner().invoke(pipeline, ["backtest", "--help"]).output
    for word in ("newly-denied", "newly-allowed", "changed", "errors", "existing", "--counterfactual", "file.py:Class"):
        assert word in said
