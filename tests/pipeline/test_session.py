"""How Spark starts: quietly, and with a sentence if it does not."""

from pathlib import Path

import pytest

from tests.audit.logs import a_log, write
from tests.cli.command import call

FAILED = 1
SPARK_SECONDS = 300.0


@pytest.mark.parametrize(
    ("options", "variables", "said"),
    [
        (["--master", "nonsense"], {}, "Spark cannot be started: Master must"),
        (["--master", "spark://127.0.0.1:1"], {}, "No Spark master answers at spark://127.0.0.1:1"),
        (["--master", "spark://127.0.0.1"], {}, "write it as spark://HOST:PORT"),
        (["--conf", "spark.driver.memory=none"], {}, "Spark cannot be started: "),
        ([], {"JAVA_HOME": "/nowhere"}, "there is no bin/java in it: Spark needs Java, 17 or newer"),
        ([], {"PATH": "/nowhere"}, "Spark needs Java, 17 or newer, and there is none"),
    ],
)
def test_what_is_in_the_way(options: list[str], variables: dict[str, str], said: str, tmp_path: Path) -> None:
    """No Java, no such master: one sentence each, and neither Spark's own words nor a trace."""
    write(tmp_path / "a.ndjson", a_log(1))
    told = call(
        "pipeline", "ingest", "--audit", ".", "--tables", "tables", *options,
        folder=tmp_path, variables=variables, within=SPARK_SECONDS,
    )  # fmt: skip
    assert told.code == FAILED, told
    assert said in told.stderr
    assert len(told.stderr.splitlines()) == 1, told.stderr
