"""Audit files and tables on Azure's store of blobs."""

from pathlib import Path

import pytest

from minicontroller.audit.event import encode
from minicontroller.pipeline.delta import ChangedMeanwhileError, Tables, TablesError
from minicontroller.pipeline.ingest.files import listing
from minicontroller.pipeline.location import Location, output_stream
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import CLUSTER, a_log
from tests.pipeline.ingest.local import ingest_here, places
from tests.support.azure import ACCOUNT, running_azure
from tests.support.programs import needs_npm, time_to_build


@needs_npm
@time_to_build
def test_ingest_on_azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A blob that grows is in tables on Azure once; of two runs at once one fails; a container that
    is not there is told.
    """
    lines = [encode(event) for event in a_log(38)]
    name = f"audit-{CLUSTER}-{1:010}-{1:012}-1.ndjson"
    with running_azure(tmp_path, "lake") as variables:
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        audit, tables, missing = (
            Location.parse(f"abfss://{place}")
            for place in (
                f"lake@{ACCOUNT}.dfs.core.windows.net/audit",
                f"lake@{ACCOUNT}.dfs.core.windows.net/some/tables",
                f"sea@{ACCOUNT}.dfs.core.windows.net/tables",
            )
        )
        assert listing([audit]) == {}
        for count in (10, len(lines)):
            with output_stream(audit, name) as stream:
                stream.write(b"".join(lines[:count]))
            ingest_here(tables, audit)
            assert places(tables) == [(CLUSTER, 1, number) for number in range(1, count + 1)]
        before = Tables(tables).snapshot(Table.EVENTS)
        Tables(tables).commit(before, before.change + 1)
        with pytest.raises(ChangedMeanwhileError):
            Tables(tables).commit(before, before.change + 2)
        with pytest.raises(TablesError, match="there is no such bucket"):
            Tables(missing).snapshot(Table.EVENTS)
