"""Bugs that are put into the program on purpose, so that it is seen whether the detector finds
them.

`python -m tests.faults.planted NAME serve --config FILE` is `minicontroller serve --config FILE`
with a few methods replaced before it starts. The program itself has no place for this. `make faults
PLANTED=NAME` (or `all`) runs them.
"""

from tests.faults.planted import answered, damaged, ordered, told, written
from tests.faults.planted.planting import BUGS, Planted

__all__ = ["BUGS", "TEN", "Planted"]

TEN = tuple(
    bug.__name__
    for bug in (
        written.fence_left_out,
        written.configs_left_behind,
        answered.answered_before_it_is_safe,
        answered.doubt_is_success,
        answered.doubt_is_failure,
        told.nobody_is_waited_for,
        damaged.id_not_kept,
        told.isr_forgets_a_broker,
        ordered.epoch_not_raised,
        ordered.forwarded_again,
    )
)
"""A bug of each kind; every `make faults` looks for them."""
