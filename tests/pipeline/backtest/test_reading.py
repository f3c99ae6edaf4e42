"""A slice's events come out of the table's files in their order, wherever they lie; what is wrong
with a file is a sentence.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.audit.event import AuditEvent, encode
from minicontroller.pipeline.backtest.reading import UnreadableTableError, decoded, lines_of, tables_of
from minicontroller.pipeline.backtest.slices import Piece
from tests.pipeline.backtest.by_words import History
from tests.pipeline.backtest.files import written


def a_history() -> Sequence[AuditEvent]:
    """Of three epochs."""
    history = History().create("a").create("b").elect().create("c", 3).delete("a").remove("a").elect()
    return history.create("d").create("e").events


EVENTS = a_history()
PLACES = [(event.epoch, event.sequence) for event in EVENTS]


@given(st.data())
def test_they_come_in_the_order_of_the_log(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """However they are dealt out to files, and in whatever order they lie there; what is beyond the
    piece stays out.
    """
    folder = tmp_path_factory.mktemp("events")
    mixed = data.draw(st.permutations(EVENTS))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(mixed) - 1), max_size=4)))
    shares = [mixed[begin:end] for begin, end in pairwise([0, *cuts, len(mixed)])]
    files = [file for number, share in enumerate(shares) for file in written(folder / f"{number}.parquet", share).files]
    first, second, third = sorted(data.draw(st.lists(st.integers(0, len(PLACES) - 1), min_size=3, max_size=3)))
    pieces = [Piece(PLACES[first], PLACES[second], tuple(files))]
    if third > second:
        pieces.append(Piece(PLACES[second + 1], PLACES[third], tuple(files)))
    found = [(decoded(line), bytes(line)) for table in tables_of(pieces) for line in lines_of(table)]
    assert found == [(event, encode(event).strip()) for event in EVENTS[first : third + 1]]


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    """Whoever compacts the table takes files away: what to do stands in the sentence."""
    piece = written(tmp_path / "gone.parquet", EVENTS)
    (tmp_path / "gone.parquet").unlink()
    with pytest.raises(UnreadableTableError, match=r"changed during the run .*gone\.parquet.*: run it again"):
        list(tables_of([piece]))


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    """A file that is no table is told by its name."""
    piece = written(tmp_path / "broken.parquet", EVENTS)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(UnreadableTableError, match=r"cannot be read: .*broken\.parquet"):
        list(tables_of([piece]))
