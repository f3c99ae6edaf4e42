"""Audit files and tables on HDFS."""

import gzip
from pathlib import Path

import pytest

from minicontroller.audit.event import encode
from minicontroller.pipeline.delta import ChangedMeanwhileError, Tables, TablesError
from minicontroller.pipeline.ingest.files import listing
from minicontroller.pipeline.location import Location, output_stream
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import CLUSTER, a_log
from tests.pipeline.ingest.local import ingest_here, places
from tests.support.hdfs import running_hdfs
from tests.support.maven import needs_maven, time_to_download

LINES = [encode(event) for event in a_log(38)]


def put(folder: Location, name: str, content: bytes) -> None:
    with output_stream(folder, name) as stream:
        stream.write(content)


@needs_maven
@time_to_download
def test_ingest_on_hdfs(tmp_path: Path) -> None:
    """Files on HDFS that grow and are compressed are in tables on HDFS once; of two runs at once
    one fails; and where nothing answers, a sentence says so.
    """
    name = f"audit-{CLUSTER}-{1:010}-{1:012}-1.ndjson"
    with running_hdfs(tmp_path) as root:
        audit, tables = Location.parse(f"{root}audit"), Location.parse(f"{root}some/tables")
        assert listing([audit]) == {}
        put(audit, name, b"".join(LINES[:10]) + LINES[10][:9])
        ingest_here(tables, audit)
        assert len(places(tables)) == 10
        put(audit, f"{name}.gz", gzip.compress(b"".join(LINES)))
        audit.filesystem().delete_file(name)
        state = ingest_here(tables, audit)
        assert places(tables) == [(CLUSTER, 1, number) for number in range(1, len(LINES) + 1)]
        assert state.clusters[CLUSTER].epochs[1].duplicates == 0
        before = Tables(tables).snapshot(Table.EVENTS)
        Tables(tables).commit(before, before.change + 1)
        with pytest.raises(ChangedMeanwhileError):
            Tables(tables).commit(before, before.change + 2)
    with pytest.raises(TablesError, match="cannot be read: the store cannot be reached"):
        Tables(tables).snapshot(Table.EVENTS)
