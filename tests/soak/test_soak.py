"""A very short soak, so that `make soak` works when somebody needs it."""

from pathlib import Path

import pytest

from tests.soak.hands import HANDS
from tests.soak.run import Soak, soaked

pytestmark = pytest.mark.slow


def test_nothing_is_lost_or_leaked_in_a_short_soak(tmp_path: Path) -> None:
    """Through a crowd, real clients, and a death in each of the later windows nothing is wrong, and
    everything is counted.
    """
    said: list[str] = []
    soak = Soak(seconds=4.0, seed="short", connections=36, window_seconds=2.0, kept=tmp_path)
    outcome = soaked(tmp_path, soak, said.append)
    text = "\n".join(said)
    assert outcome.holds, text
    assert {sample.node for sample in outcome.samples} == {1, 2, 3, 4}
    assert all(client in text for client in HANDS)
