"""The corpus of `make fuzz`, replayed without a fuzzer: what once found a defect finds none."""

import pytest

from tests.fuzz.corpus_files import corpus_of
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_no_kept_input_finds_a_defect(target: str) -> None:
    """A target takes every input that is kept for it, and there are some."""
    inputs = corpus_of(target)
    assert inputs
    for each in inputs:
        TARGETS[target].take(each)
