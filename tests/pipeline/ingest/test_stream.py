"""How the query ends while a batch is on its way."""

import sys
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from minicontroller.pipeline.ingest.progress import Quiet
from minicontroller.pipeline.ingest.run import ingest
from minicontroller.pipeline.ingest.source import BATCH_BYTES
from minicontroller.pipeline.ingest.state import Ledger, locked
from minicontroller.pipeline.ingest.stream import Stream
from tests.audit.logs import a_log, write
from tests.pipeline.ingest.local import places
from tests.support.waiting import until

PATIENCE_SECONDS = 120


def is_running(function: str) -> bool:
    """Whether some thread is in this function of the stream's."""
    for frame in sys._current_frames().values():
        at = frame
        while at is not None:
            if at.f_code.co_name == function and at.f_code.co_filename.endswith("ingest/stream.py"):
                return True
            at = at.f_back  # type: ignore[assignment] # the outermost has none
    return False


def test_stopped_while_a_batch_waits(spark: SparkSession, tmp_path: Path) -> None:
    """Who stops a run when a batch has just come does not wait for ever, and the next run takes
    what the batch held.
    """
    audit, tables = tmp_path / "audit", tmp_path / "tables"
    audit.mkdir()
    with locked(tables):
        ledger = Ledger(tables)
        ledger.open()
        stream = Stream(spark, ledger, [audit], Quiet())
        stream.start(BATCH_BYTES, follow=True)
        stopping = Thread(target=stream.stop, daemon=True)
        with stream.pause():
            stopping.start()
            until(lambda: is_running("stop"))
            write(audit / "a.ndjson", a_log(2))
            until(lambda: is_running("_take"), within=PATIENCE_SECONDS)
        stopping.join(PATIENCE_SECONDS)
        assert not stopping.is_alive()
        ledger.clear()
    ingest(spark, tables, [audit])
    assert len(places(tables)) == 4
