"""The random walk draws requests that can be sent, and says what is wrong with its arguments."""

from random import Random
from typing import Any

import pytest

from tests.conformance.case import TokenHmacOf, TopicIdOf
from tests.conformance.walk import arguments
from tests.conformance.walk_requests import REQUESTS, a_case
from tests.support.wire import request_frame


def without_references(part: Any) -> Any:
    match part:
        case TopicIdOf():
            return "00000000-0000-0000-0000-000000000000"
        case TokenHmacOf():
            return b"hmac"
        case dict():
            return {key: without_references(value) for key, value in part.items()}
        case list():
            return [without_references(each) for each in part]
    return part


def test_every_drawn_request_can_be_sent() -> None:
    """A thousand steps of one walk ask all APIs, in versions that have what they ask."""
    random, asked = Random(1), set()
    for step in range(1_000):
        case = a_case(random, step, ("a v3",))
        request_frame(case.api, case.version, without_references(case.body))
        asked.add(case.api)
    assert asked == {name.strip() for name in REQUESTS}


def test_a_walk_is_drawn_again_by_its_seed() -> None:
    """Whoever has the seed sees the same requests."""
    one, other = Random(7), Random(7)
    assert [a_case(one, step, ()) for step in range(50)] == [a_case(other, step, ()) for step in range(50)]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--steps", "many"], "many is not a whole number"),
        (["--steps", "0"], "0 is not between 1 and 1,000,000"),
        (["--seed", "-1"], "-1 is not between 1 and 1,000,000"),
    ],
)
def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str], given: list[str], sentence: str) -> None:
    """A wrong argument ends the walk before it begins, with a sentence."""
    with pytest.raises(SystemExit):
        arguments(given)
    assert sentence in capsys.readouterr().err
