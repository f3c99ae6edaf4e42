"""Computes Java's hash of a string, which Kafka uses to assign groups to partitions and to order
maps.
"""

from array import array
from operator import mul

POWERS = [31**power & 0xFFFFFFFF for power in reversed(range(256))]
"""The factors of the characters in a piece of text; the last one is 1. They allow one sum per piece
instead of a loop over its characters.
"""


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`: over UTF-16 units, wrapped to 32 bits with a sign."""
    units = array("H", text.encode("utf-16", "surrogatepass"))[1:]  # without the mark of the machine's byte order
    value = 0
    for start in range(0, len(units), len(POWERS)):
        part = units[start : start + len(POWERS)]
        value = (value * pow(31, len(part), 2**32) + sum(map(mul, part, POWERS[-len(part) :]))) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value
