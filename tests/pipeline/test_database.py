"""DuckDB as the pipeline opens it."""

from contextlib import chdir
from pathlib import Path

import click
import pytest

from minicontroller.pipeline.commands import failures_reported
from minicontroller.pipeline.database import connected
from minicontroller.pipeline.location import Location


def test_what_has_no_room_goes_to_temporary_files(tmp_path: Path) -> None:
    """A sort of more than the memory works, and leaves the working directory alone."""
    with chdir(tmp_path), connected("32MB") as found:
        [[folder, first]] = found.sql(
            "SELECT current_setting('temp_directory'), min(text) FROM "
            "(SELECT md5(range::VARCHAR) AS text FROM range(2_000_000) ORDER BY text)"
        ).fetchall()
        assert not Path(folder).is_relative_to(tmp_path)
    assert len(first) == 32
    assert list(tmp_path.iterdir()) == []


def test_what_the_driver_cannot_do_is_a_sentence() -> None:
    """Such as a disk that is full while a report is merged: no command shows a trace of it."""
    with (
        pytest.raises(click.ClickException) as caught,
        failures_reported(Location.local(Path("tables"))),
        connected() as found,
    ):
        found.sql("SELECT error('too much')").fetchall()
    assert "DuckDB cannot work there (Invalid Input Error: too much): make room" in caught.value.message
