"""The commands as they are called, with audit files and tables on S3."""

from pathlib import Path

from minicontroller.audit.event import encode
from tests.audit.logs import CLUSTER, a_log
from tests.cli.command import call
from tests.pipeline.one_session import in_one_session
from tests.pipeline.stores.buckets import Bucket


def test_from_audit_files_to_a_report(bucket: Bucket, tmp_path: Path) -> None:
    """What lies in a bucket and in a local folder is ingested into tables in the bucket once, and a
    report and a back-test are made of them.
    """
    lines = [encode(event) for event in a_log(38)]
    bucket.put(f"audit-{CLUSTER}-{1:010}-{1:012}-1.ndjson", b"".join(lines[:20]))
    (tmp_path / f"audit-{CLUSTER}-{1:010}-{21:012}-1.ndjson").write_bytes(b"".join(lines[20:]))
    (tmp_path / "rules.toml").write_text("[[partitions]]\nmax = 4\n")
    tables = ("--tables", str(bucket.tables))
    ingested, reported, tested = in_one_session(
        ("ingest", "--audit", str(bucket.audit), ".", *tables),
        ("report", *tables, "--out", "page.html"),
        ("backtest", "rules.toml", *tables, "--fail-on", "newly-denied"),
        folder=tmp_path,
    )
    assert (ingested.code, ingested.stdout) == (0, f"{len(lines)} new events from 2 files.\n"), ingested
    assert reported.code == 0, reported
    assert (tested.code, tested.stderr) == (0, ""), tested
    assert f"not replayed: create_topic ({len(lines) - 2})" in tested.stdout, (
        tested
    )  # they tell nothing that was requested
    assert reported.stdout.startswith(f"{len(lines)} events: {tmp_path}/page.html"), reported


def test_what_is_no_place(tmp_path: Path) -> None:
    """An address that is not served, or a page at an address, is refused, and no folder is made."""
    for option, given, why in (
        ("--tables", "ftp://host/tables", "ftp://host/tables: addresses begin with s3://"),
        ("--tables", "s3://key:secret@bucket/tables", "must not contain credentials"),
        ("--tables", "s3://bucket/some tables", "an address has no spaces"),
        ("--out", "s3://bucket/page.html", "is an address, and pages are written on local disks only"),
    ):
        given_else = {"--tables": ("--out", "page.html"), "--out": ("--tables", "tables")}[option]
        refused = call("pipeline", "report", option, given, *given_else, folder=tmp_path)
        assert refused.code == 2
        assert why in " ".join(refused.stderr.split())
        assert "secret" not in refused.stderr
    assert list(tmp_path.iterdir()) == []
