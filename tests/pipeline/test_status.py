"""What `pipeline status` tells of tables."""

import io
import shutil
from pathlib import Path

import pytest

from minicontroller.audit.event import encode
from minicontroller.pipeline.delta import TablesError
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.status import print_status
from tests.audit.logs import CLUSTER, a_log
from tests.cli.command import complaint
from tests.pipeline.ingest.local import ingest_here

LINES = [encode(event) for event in a_log(38)]
NAME = f"audit-{CLUSTER}-{1:010}-{1:012}-1.ndjson"


def told(tables: Path) -> list[list[str]]:
    """Return the words of each line of the status."""
    shown = io.StringIO()
    print_status(Location.local(tables), shown)
    return [line.split() for line in shown.getvalue().splitlines()]


def sentences(tables: Path) -> str:
    return "\n".join(" ".join(words) for words in told(tables))


def test_what_is_in_the_tables_and_what_is_not(tmp_path: Path) -> None:
    """The status counts rows, files and events, and says what of the audit files is not read yet,
    and which folder is gone.
    """
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    audit.mkdir()
    (audit / NAME).write_bytes(b"no event\n" + b"".join(LINES[:-10]) + LINES[-10][:5])
    ingest_here(tables, audit)
    count = str(len(LINES) - 10)
    lines = told(tables)
    assert [words[:3] for words in lines if words[:1] in (["events"], ["quarantine"])] == [
        ["events", count, "1"],
        ["quarantine", "1", "1"],
    ]
    (cluster,) = [words for words in lines if words[:1] == [CLUSTER]]
    assert (cluster[1], cluster[-2:]) == (count, ["0", "0"])
    said = sentences(tables)
    assert "1 audit file read, 1 line in quarantine." in said
    assert "The topic history is older than the events: the next ingest brings it up to date." in said
    with (audit / NAME).open("ab") as stream:
        stream.write(LINES[-10][5:] + b"".join(LINES[-9:]))
    assert f"{audit}: about 0.0 MiB of 1 file are not read yet." in sentences(tables)
    ingest_here(tables, audit)
    assert f"{audit}: everything is read." in sentences(tables)
    shutil.rmtree(audit)
    assert f"{audit} cannot be read now: No such file or directory." in sentences(tables)


def test_there_are_no_tables(tmp_path: Path) -> None:
    """Where nothing was ingested it is told what to do, and no folder is made."""
    with pytest.raises(TablesError, match=r"There are no tables in .*: `minicontroller pipeline ingest"):
        told(tmp_path / "tables")
    assert "There are no tables in" in complaint("pipeline", "status", "--tables", "tables", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
