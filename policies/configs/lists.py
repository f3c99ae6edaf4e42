"""The arithmetic of lists: what APPEND and SUBTRACT of IncrementalAlterConfigs make of a value.

Rule: the result is Kafka 3.9's, to the blank. Elements are compared as they are written; APPEND
adds what the value does not have, as often as it is named, and SUBTRACT takes away one occurrence
for each time that an element is named. Kafka 4 drops empty elements of the value and adds an
element once: its results have other blanks, empty elements and repetitions, and the same meaning.
"""

from collections import Counter
from collections.abc import Iterator


def appended(value: str, operand: str) -> str:
    elements = _elements(value)
    present = frozenset(elements)
    return ",".join(elements + [each for each in operand_elements(operand) if each not in present])


def subtracted(value: str, operand: str) -> str:
    return ",".join(_without(_elements(value), operand_elements(operand)))


def operand_elements(operand: str) -> list[str]:
    return _elements(operand) if operand else [""]


def _elements(text: str) -> list[str]:
    """Split a text as Java does, without the empty elements at its end."""
    elements = text.split(",")
    while elements and not elements[-1]:
        elements.pop()
    return elements


def _without(elements: list[str], named: list[str]) -> Iterator[str]:
    left = Counter(named)
    for each in elements:
        if left[each]:
            left[each] -= 1
        else:
            yield each
