"""How Spark is set up for as much as there is."""

from pathlib import Path

from minicontroller.pipeline.sizing import FOR_LITTLE, LITTLE_BYTES, suited


def hold(folder: Path, name: str, size: int) -> None:
    file = folder / "events" / "cluster_id=a" / "day=2026-01-01" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        stream.truncate(size)


def test_little_is_less_than_so_many_bytes_of_tables(tmp_path: Path) -> None:
    """What the tables hold decides, whatever their files are; where there are none, nobody waits
    for a Spark that is set up for much.
    """
    assert suited(tmp_path / "nowhere") == FOR_LITTLE
    hold(tmp_path, "a.parquet", LITTLE_BYTES - 1)
    hold(tmp_path, "notes.txt", LITTLE_BYTES)
    assert suited(tmp_path) == FOR_LITTLE
    hold(tmp_path, "b.parquet", 1)
    assert suited(tmp_path) == {}


def test_a_long_log(tmp_path: Path) -> None:
    """A log that is to be taken into the tables counts by what it comes to there, compressed or
    not.
    """
    tables, log = tmp_path / "tables", tmp_path / "log"
    log.mkdir()
    assert suited(tables, [log]) == FOR_LITTLE
    with (log / "a.ndjson").open("wb") as plain:
        plain.truncate(LITTLE_BYTES)
    assert suited(tables, [log]) == FOR_LITTLE
    with (log / "b.ndjson.zst").open("wb") as compressed:
        compressed.truncate(LITTLE_BYTES)
    assert suited(tables, [log]) == {}
    assert suited(tables, [tmp_path / "nowhere"]) == {}
