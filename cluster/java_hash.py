"""Java's hash of a string, which assigns groups to partitions and orders the keys of Kafka's
znodes.

No reader depends on the order of keys. It is kept so that znodes can be compared with Kafka's byte
by byte. Java's and Scala's hash maps list keys by hash, within a table that doubles when it is
three quarters full.
"""

from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
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


FIRST_TABLE = 16
LARGEST_KEPT = 1_000
"""The orders of topics with up to this many partitions are cached: 256 of them take 2 MiB."""


@lru_cache(maxsize=4096)
def spread_hash(text: str) -> int:
    """Return Java's hash of a string, its upper half mixed into the lower, unsigned."""
    value = java_hash(text) & 0xFFFFFFFF
    return value ^ value >> 16


def hash_table_order(keys: Iterable[str]) -> list[str]:
    """Order keys as java.util.Properties lists them: by place in the table, then by insertion."""
    names = list(keys)
    mask = table_size(len(names)) - 1
    return sorted(names, key=lambda name: spread_hash(name) & mask)


def partition_order(count: int) -> Sequence[int]:
    """Order partitions 0 to count - 1 as Scala's mutable map lists them, by their
    numbers as text.
    """
    return _kept_order(count) if count <= LARGEST_KEPT else _order_of_numbers(count)


def numbers_order(numbers: Collection[int]) -> list[int]:
    """Order some numbers as Scala's mutable map lists them by their text."""
    mask = table_size(len(numbers)) - 1

    def place(number: int) -> tuple[int, int]:
        spread = spread_hash(str(number))
        return spread & mask, spread

    return sorted(numbers, key=place)


def _order_of_numbers(count: int) -> Sequence[int]:
    hashes = list(range(ord("0"), ord("9") + 1))
    for number in range(10, count):  # the hash of a text is made of the one without its last character
        hashes.append((31 * hashes[number // 10] + hashes[number % 10]) & 0xFFFFFFFF)
    mask = table_size(count) - 1

    def place(number: int) -> tuple[int, int]:
        spread = hashes[number] ^ hashes[number] >> 16
        return spread & mask, spread

    return tuple(sorted(range(count), key=place))


_kept_order = lru_cache(maxsize=256)(_order_of_numbers)


def table_size(entries: int) -> int:
    size = FIRST_TABLE
    while entries >= size * 3 // 4:
        size *= 2
    return size
