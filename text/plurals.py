"""Forms numbers with their nouns for sentences.

Rule: every number that may be 1 gets its noun from here.
"""


def noun(number: int, one: str, many: str | None = None) -> str:
    """Return a noun, or another word, in the form for the number. `many` is its plural if that is
    not made by adding an s.
    """
    return one if number == 1 else many or one + "s"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 topic`, `2 topics`."""
    return f"{number} {noun(number, one, many)}"
