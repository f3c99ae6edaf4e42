"""A number with its noun, for sentences that people read.

Rule: wherever a sentence has a number that may be 1, its noun comes from here.
"""


def noun(number: int, one: str, many: str | None = None) -> str:
    """Return a noun in the form that goes with the number; `many` is needed where the plural is not
    made by an s.
    """
    return one if number == 1 else many or one + "s"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun: `1 topic`, `2 topics`."""
    return f"{number} {noun(number, one, many)}"
