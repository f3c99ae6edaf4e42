"""From real clients on a live cluster to tables, report and back-test: by the commands, and nothing
else.
"""

import json
import re
import shlex
from pathlib import Path

import duckdb
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from pyspark.sql import SparkSession

from tests.cli.command import call
from tests.pipeline.one_session import SPARK_SECONDS, in_session
from tests.support.cluster import running_cluster

IN_FORCE = """
[[partitions]]
max = 12
"""
STRICTER = """
[[partitions]]
max = 4

[[protected_topics]]
topics = ["ledger"]
operations = ["alter", "delete", "delete_records"]
"""
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
INGEST, BACKTEST = (
    shlex.split(line)[3:] for line in re.findall(r"^\$ minicontroller pipeline .*", README, re.MULTILINE)
)
"""The commands as the README shows them, from their names on."""


def test_from_clients_to_report(spark: SparkSession, tmp_path: Path) -> None:
    """A real client asks a live cluster; all that came of it is in the tables, the back-tests and
    the report (P-1a, P-2a, P-2b, P-3a, P-3b, P-4a, P-4b).
    """
    lived(tmp_path)
    every_decision_is_in_the_tables(tmp_path)
    in_force = ("backtest", "rules.toml", "--fail-on", "changed", "--tables", "tables", "--out", "in-force.html")
    report = ("report", "--out", "report.html", "--tables", "tables")
    same, stricter, reported = in_session(spark, in_force, BACKTEST, report, folder=tmp_path)
    assert same.code == 0, same
    assert stricter.code == 1, stricter
    assert reported.code == 0, reported
    a_stricter_policy_shows_whom_it_would_hit(tmp_path)
    the_report_tells_who_was_refused(tmp_path)


def lived(folder: Path) -> None:
    """A cluster was run here, asked for topics, and ended; and its log has been ingested."""
    (folder / "rules.toml").write_text(IN_FORCE)
    (folder / "stricter.toml").write_text(STRICTER)
    settings = {"policy.rules.files": str(folder / "rules.toml"), "audit.dir": str(folder / "audit-log")}
    with running_cluster(settings=settings) as cluster:
        live(AdminClient({"bootstrap.servers": cluster.bootstrap, "client.id": "shop"}))
    ingested = call("pipeline", *INGEST, folder=folder, within=SPARK_SECONDS)
    assert ingested.code == 0, ingested
    assert ingested.stdout.endswith(" events from 1 file.\n")
    assert "WARN" not in ingested.stderr and "log level" not in ingested.stderr, ingested.stderr


def live(admin: AdminClient) -> None:
    """What people did, four of which the stricter rules are against."""
    wanted = {"small": 2, "large": 8, "ledger": 1, "huge": 100}
    futures = admin.create_topics([NewTopic(name, num_partitions=count) for name, count in wanted.items()])
    assert [name for name, future in futures.items() if is_refused(future)] == ["huge"]
    entry = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    for name in ("ledger", "small"):
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result()
    admin.delete_topics(["ledger"])["ledger"].result()
    admin.create_topics([NewTopic("other", num_partitions=6)])["other"].result()


def is_refused(future: object) -> bool:
    try:
        future.result()  # type: ignore[attr-defined]
    except KafkaException as error:
        return bool(error.args[0].code() == KafkaError.POLICY_VIOLATION)
    return False


def every_decision_is_in_the_tables(folder: Path) -> None:
    """Who asked for what, and what came of it, as DuckDB reads it."""
    rows = duckdb.execute(
        f"SELECT name, operation, error, rule FROM read_parquet('{folder}/tables/events/**/*.parquet') "
        "WHERE kind = 'decision' AND client_id = 'shop' ORDER BY epoch, sequence"
    ).fetchall()
    assert sorted(rows) == sorted(
        [
            ("small", "create_topic", "NONE", ""),
            ("large", "create_topic", "NONE", ""),
            ("ledger", "create_topic", "NONE", ""),
            ("huge", "create_topic", "POLICY_VIOLATION", "partitions"),
            ("ledger", "incremental_alter_configs", "NONE", ""),
            ("small", "incremental_alter_configs", "NONE", ""),
            ("ledger", "delete_topic", "NONE", ""),
            ("other", "create_topic", "NONE", ""),
        ]
    )


def a_stricter_policy_shows_whom_it_would_hit(folder: Path) -> None:
    """Each request that it is against is told, with the rule and the topic."""
    page = (folder / "page.html").read_text()
    for name in ("large", "ledger", "other"):
        assert name in page
    assert "8 partitions are more than 4." in page


def the_report_tells_who_was_refused(folder: Path) -> None:
    """The page, and the same for programs."""
    assert "100 partitions are more than 12." in (folder / "report.html").read_text()
    figures = json.loads((folder / "report.json").read_text())
    [refused] = figures["tables"]["refusals_by_rule"]["rows"]
    assert (refused["rule"], refused["refused"]) == ("partitions", 1)
