"""How far long work is, on the terminal."""

from minicontroller.pipeline.progress import speed


def test_how_fast_it_goes() -> None:
    """Events that were gone through, by the seconds it took; nothing is said before there is
    something to say.
    """
    assert speed(50_000.0, 4.0) == ", 12,500 events/s"
    assert speed(0.0, 4.0) == speed(5.0, 0.0) == ""
