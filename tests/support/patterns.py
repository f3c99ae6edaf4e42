"""Whether a regular expression can go back: a proof from its syntax tree, that work grows with the
text and no faster.

A pattern is linear where
- each repetition without an end is possessive (`*+`, `++`): it never gives back what it took, so
  nothing is tried twice;
- what stands behind such a repetition, in the body of another one, cannot fail: else what was read
  is read again, once for each round. The same holds for the whole of a pattern that is searched for
  (search, sub, split, findall, finditer), which is tried at each character;
- the ways to match all that has an end are few, whatever the text is.
"""

import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

parser: Any = importlib.import_module("re._parser")
sre: Any = importlib.import_module("re._constants")

MAX_WAYS = 10_000

Item = tuple[Any, Any]


def faults(pattern: re.Pattern[str] | re.Pattern[bytes], *, searched: bool) -> list[str]:
    """A sentence for each reason why the work may grow faster than the text; none for a linear
    pattern.
    """
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    tree = list(parser.parse(pattern.pattern, flags))
    found = list(_faults(tree, may_fail=not searched))
    if _ways(tree) > MAX_WAYS:
        found.append(f"it matches what has an end in {_ways(tree)} ways")
    return found


def _faults(items: Sequence[Item], *, may_fail: bool) -> Iterator[str]:
    """`may_fail`: whether this may read without a bound and fail behind that."""
    for index, (operation, argument) in enumerate(items):
        behind = items[index + 1 :]
        if not may_fail and _is_endless([(operation, argument)]) and not all(map(_cannot_fail, behind)):
            yield "what stands behind a repetition without an end may fail, and is read again then"
        yield from _faults_within(operation, argument, may_fail=may_fail)


def _faults_within(operation: Any, argument: Any, *, may_fail: bool) -> Iterator[str]:
    if operation in {sre.MAX_REPEAT, sre.MIN_REPEAT}:
        least, most, body = argument
        if most is sre.MAXREPEAT:
            yield f"a repetition without an end is not possessive ({least} or more of {str(body).splitlines()[0]})"
        yield from _faults(list(body), may_fail=may_fail and most is not sre.MAXREPEAT)
    elif operation is sre.POSSESSIVE_REPEAT:
        _, most, body = argument
        yield from _faults(list(body), may_fail=may_fail and most is not sre.MAXREPEAT)
    elif operation is sre.GROUPREF:
        yield "it compares with a group that it has read"
    else:
        for part in _parts(operation, argument):
            yield from _faults(part, may_fail=may_fail)


def _parts(operation: Any, argument: Any) -> Iterator[list[Item]]:
    if operation is sre.SUBPATTERN:
        yield list(argument[-1])
    elif operation is sre.BRANCH:
        yield from (list(alternative) for alternative in argument[1])
    elif operation is sre.ATOMIC_GROUP:
        yield list(argument)
    elif operation in {sre.ASSERT, sre.ASSERT_NOT}:
        yield list(argument[1])
    elif operation in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
        yield list(argument[2])
    elif operation is sre.GROUPREF_EXISTS:
        raise AssertionError("a pattern asks which of its groups matched: nobody here knows how long that may take")


def _is_endless(items: Sequence[Item]) -> bool:
    """Whether it may read without a bound."""
    return any(
        (operation in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT} and argument[1] is sre.MAXREPEAT)
        or any(map(_is_endless, _parts(operation, argument)))
        for operation, argument in items
    )


def _cannot_fail(item: Item) -> bool:
    operation, argument = item
    if operation in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
        return bool(argument[0] == 0) or all(map(_cannot_fail, argument[2]))
    if operation is sre.SUBPATTERN:
        return all(map(_cannot_fail, argument[-1]))
    return operation is sre.BRANCH and any(all(map(_cannot_fail, part)) for part in _parts(operation, argument))


def _ways(items: Sequence[Item]) -> int:
    """Where it may go back: how many ways there are to match one text, at most."""
    ways = 1
    for operation, argument in items:
        if operation in {sre.MAX_REPEAT, sre.MIN_REPEAT} and argument[1] is not sre.MAXREPEAT:
            least, most, body = argument
            ways *= sum(min(_ways(list(body)), MAX_WAYS) ** times for times in range(least, min(most, MAX_WAYS) + 1))
        elif operation is sre.BRANCH:
            ways *= sum(map(_ways, _parts(operation, argument)))
        elif operation is sre.SUBPATTERN:
            ways *= _ways(list(argument[-1]))
    return ways
