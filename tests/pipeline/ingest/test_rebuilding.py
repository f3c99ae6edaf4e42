"""All audit files read again, in place of what the tables hold."""

import json
from pathlib import Path

import pytest

from minicontroller.audit.event import encode
from minicontroller.pipeline.delta import Tables, TablesError
from minicontroller.pipeline.ingest.files import listing
from minicontroller.pipeline.ingest.rebuilding import clear_tables
from minicontroller.pipeline.ingest.state import Ledger
from minicontroller.pipeline.location import Location
from tests.audit.logs import CLUSTER, a_log, write
from tests.pipeline.ingest.local import ingest_here, places

NAME = f"audit-{CLUSTER}-{1:010}-{1:012}-1.ndjson"
PLACES = [(CLUSTER, 1, number) for number in range(1, 6)]


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    folder = tmp_path / "audit"
    folder.mkdir()
    write(folder / NAME, a_log(3))
    return folder


def cleared(tables: Path, audit: Path) -> None:
    clear_tables(Tables(Location.local(tables)), listing([Location.local(audit)]))


def test_tables_of_this_form(tmp_path: Path, audit: Path) -> None:
    """Tables are made anew of what the files hold now."""
    tables = tmp_path / "tables"
    ingest_here(tables, audit)
    with (audit / NAME).open("ab") as stream:
        stream.write(b"no event\n")
    cleared(tables, audit)
    assert not any(path.is_file() for path in tables.rglob("*"))
    state = ingest_here(tables, audit)
    assert places(tables) == PLACES
    assert state.quarantined == 1


def test_tables_of_an_older_form(tmp_path: Path, audit: Path) -> None:
    """Tables that an older version wrote are told apart, and made anew by one command."""
    tables = tmp_path / "tables"
    (tables / "_state").mkdir(parents=True)
    (tables / "_state" / "state.json").write_text(
        json.dumps({"format": 2, "files": {f"/elsewhere/{NAME}": [10, "", 0, 10]}})
    )
    (tables / "events" / f"cluster_id={CLUSTER}").mkdir(parents=True)
    (tables / "events" / f"cluster_id={CLUSTER}" / "old.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        TablesError, match=r"written by an older version of this program.*`minicontroller pipeline ingest --anew`"
    ):
        Ledger(Tables(Location.local(tables)))
    cleared(tables, audit)
    ingest_here(tables, audit)
    assert places(tables) == PLACES
    assert not list(tables.rglob("old.parquet"))


@pytest.mark.parametrize("name", [f"audit-{CLUSTER}-{2:010}-{1:012}-1.ndjson", "x.ndjson"])
def test_a_file_that_is_gone(tmp_path: Path, audit: Path, name: str) -> None:
    """Tables with events of a file that lies in no folder stay as they are. Names that no
    controller gives are in several folders.
    """
    tables = tmp_path / "tables"
    other = tmp_path / "other"
    other.mkdir()
    (other / name).write_bytes(encode(a_log(1)[0]))
    (audit / "x.ndjson").write_bytes(b"")
    ingest_here(tables, audit, other)
    with pytest.raises(
        TablesError, match=r"The tables have events of .*other/\S+, which is in none of the folders: keep .*tables"
    ):
        cleared(tables, audit)
    assert places(tables) == PLACES
