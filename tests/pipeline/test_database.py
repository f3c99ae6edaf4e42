"""DuckDB as the pipeline opens it."""

from contextlib import chdir
from pathlib import Path

from minicontroller.pipeline.database import connected


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
