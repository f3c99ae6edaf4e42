"""Whether there is an order of the operations on one entity in which each of them got the answer
that it got.

Lowe's just-in-time linearization, as breadth-first search: what is kept is the frontier, all states
in which the entity may be now, each with the operations under way that have taken effect in it. An
operation is put in order no earlier than somebody's completion demands it. Operations whose outcome
nobody knows may take effect at any time later, or never; of two ways to one state that differ in
those alone, the one that has used fewer of them can do whatever the other can, and the other is
dropped. That keeps the frontier about as large as the number of states, where a plain search
doubles with each unknown.

Reads of nodes are no part of the order: a node may be behind the others by design. A read must find
a state that the entity may have had since the read began (if what was acknowledged must be in it),
or since the window began. If only what was acknowledged by way of its node must be in it, a state
since then will do; where that is not enough, the read has to have a place in the order behind it.
The same holds for what was asked before it on its connection, and done.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tests.faults.detector.history import OK, READS, STRANGER, UNKNOWN, Operation
from tests.faults.detector.models import State, changes_nothing, step, tells

MOST_STATES = 20_000
"""The most states of a frontier: more are not looked at, and the entity's history stays undecided.
"""

Done = frozenset[int]
"""Operations under way that have taken effect already, by their numbers."""


class Undecided(Exception):  # noqa: N818
    """Too many states are possible."""


class Contradiction(msgspec.Struct, frozen=True):
    """The first operation that no order explains, and how things stood then."""

    operation: Operation
    possible: tuple[State, ...]
    """The states in which the entity may have been."""
    concurrent: tuple[Operation, ...]
    is_read: bool = False


def is_read(operation: Operation) -> bool:
    """At a node. (A look at the tree in a quiet moment is part of the order.)"""
    return operation.kind in READS and operation.node != 0 and not operation.is_placed


class Search:
    """Follows the history of one entity, event by event."""

    def __init__(self, before: State) -> None:
        self._frontier: dict[tuple[State, Done], set[Done]] = {(before, frozenset()): {frozenset()}}
        """State and definite operations done; for each the least sets of unknown ones that lead
        there.
        """
        self._pending: dict[int, Operation] = {}
        self._seen: dict[State, int] = {before: 0}
        """The time, counted in events, at which each state was possible last."""
        self._clock = 0
        self._reads: dict[int, int] = {}
        self._answered: dict[int, tuple[int, Operation]] = {}
        """The time at which each node last answered a change with success, and the change."""
        self.knew: dict[int, Operation] = {}
        """For each read the change that its node had answered last."""
        self._late: set[tuple[State, Done]] = set()
        """States that only a look has shown to be over (a refusal, a dry run), with what was done
        in them: what it saw was not acknowledged, so nodes may be behind. What is acknowledged
        ends those in which it was not done.
        """
        self._now: set[State] | None = None
        """The states that are possible at this moment, once somebody has asked."""

    def began(self, operation: Operation) -> None:
        self._clock += 1
        if is_read(operation):
            self._note_states({state for state, _ in self._late}.union(self.possible))
            self._reads[operation.number] = self._clock if operation.is_fresh else self._since_answered(operation)
            return
        self._pending[operation.number] = operation
        self._now = None

    def ended(self, operation: Operation) -> Contradiction | None:
        self._clock += 1
        if is_read(operation):
            return self._read(operation)
        found = self._explore(operation.number)
        if not found:
            return self.contradiction(operation)
        del self._pending[operation.number]
        if changes_nothing(operation):
            self._late |= self._frontier.keys()
        else:
            self._late = {(state, done) for state, done in self._late if operation.number in done}
        if is_done(operation):
            self._answered[operation.node] = self._clock, operation
        self._frontier = {}
        for (state, done), unknown in found.items():
            self._frontier.setdefault((state, done - {operation.number}), set()).update(unknown)
        for key, unknown in self._frontier.items():
            self._frontier[key] = least(unknown)
        self._note_states(state for state, _ in self._frontier)
        self._now = None
        return None

    def _since_answered(self, read: Operation) -> int:
        answered = self._answered.get(read.node)
        if answered is None or not read.is_fresh_of_node:
            return 0
        since, self.knew[read.number] = answered
        return since

    @property
    def possible(self) -> tuple[State, ...]:
        return tuple({state for state, _ in self._frontier})

    def _read(self, operation: Operation) -> Contradiction | None:
        since = self._reads.pop(operation.number)
        if any(at >= since and step(state, operation) is not None for state, at in self._seen.items()):
            return None
        if self._now is None:
            self._explore(None)
        if any(step(state, operation) is not None for state in self._now or ()):
            return None
        return self.contradiction(operation)

    def _note_states(self, states: Iterable[State]) -> None:
        for state in states:
            self._seen[state] = self._clock

    def contradiction(self, operation: Operation) -> Contradiction:
        others = tuple(each for each in self._pending.values() if each is not operation)
        return Contradiction(operation, self.possible, others, is_read(operation))

    def _explore(self, wanted: int | None) -> dict[tuple[State, Done], set[Done]]:
        """Return what may be once this operation has taken effect; with None, all that may be."""
        found: dict[tuple[State, Done], set[Done]] = {}
        visited: dict[tuple[State, Done], set[Done]] = {}
        for (state, done), unknown in self._frontier.items():
            visited.setdefault((state, self._with_looks(state, done)), set()).update(unknown)
        queue = [(key, one) for key, unknown in visited.items() for one in unknown]
        while queue:
            (state, done), used = queue.pop()
            if used not in visited[state, done]:
                continue  # a better way was found meanwhile
            if wanted in done:
                found.setdefault((state, done), set()).add(used)
                continue
            for operation in self._next(done, used):
                after = step(state, operation)
                if after is None:
                    continue
                self._seen[after] = self._clock
                if operation.outcome == UNKNOWN:
                    if after == state:
                        continue
                    key, now = (after, self._with_looks(after, done)), used | {operation.number}
                else:
                    key, now = (after, self._with_looks(after, done | {operation.number})), used
                if is_better(visited.setdefault(key, set()), now):
                    visited[key] = {each for each in visited[key] if not each >= now} | {now}
                    queue.append((key, now))
            if len(visited) > MOST_STATES:
                raise Undecided
        if wanted is None:
            self._now = {state for state, _ in visited}
        return found

    def _with_looks(self, state: State, done: Done) -> Done:
        """Return what is done, with all that changes nothing and may take effect here: it can do no
        harm, and later it may be impossible.
        """
        looks = [
            number
            for number, operation in self._pending.items()
            if operation.outcome != UNKNOWN
            and changes_nothing(operation)
            and number not in done
            and self._is_its_turn(operation, done)
            and step(state, operation) is not None
        ]
        return done.union(looks) if looks else done

    def _next(self, done: Done, used: Done) -> Iterable[Operation]:
        for number, operation in self._pending.items():
            if number not in done and number not in used and self._is_its_turn(operation, done):
                yield operation

    def _is_its_turn(self, operation: Operation, done: Done) -> bool:
        """Whether what was asked before it on its connection, and was answered for certain, has had
        its place.
        """
        earlier = self._pending.get(operation.after) if operation.after is not None else None
        return earlier is None or earlier.outcome == UNKNOWN or earlier.number in done


def is_better(known: set[Done], new: Done) -> bool:
    return not any(each <= new for each in known)


def least(sets: Iterable[Done]) -> set[Done]:
    """Those that contain no other."""
    kept: set[Done] = set()
    for one in sorted(sets, key=len):
        if is_better(kept, one):
            kept.add(one)
    return kept


def check(before: State, operations: Sequence[Operation]) -> Contradiction | None:
    """None if there is an order. Raises Undecided.

    What a refusal says of something else than the state, and what nobody answered without having
    changed anything, is left out.
    """
    told = [operation for operation in operations if tells(operation)]
    numbers: Mapping[int, Operation] = {operation.number: operation for operation in told}
    events = [(operation.began, 1, operation.number) for operation in told]
    events += [
        (operation.ended, 0 if operation.outcome == OK and not changes_nothing(operation) else 2, operation.number)
        for operation in told
        if operation.ended is not None and operation.outcome != UNKNOWN
    ]
    search = Search(before)
    for _, what, number in sorted(events):
        operation = numbers[number]
        if what == 1:
            search.began(operation)
            continue
        contradiction = search.ended(operation)
        if contradiction is not None:
            known = search.knew.get(number)
            if known is None or not _has_a_place(before, told, operation, known):
                return contradiction
        elif is_read(operation) and not _sees(before, told, operation, numbers.get(operation.after or 0)):
            return search.contradiction(operation)
    return None


def is_done(operation: Operation) -> bool:
    """Whether it was acknowledged that the operation changed something."""
    return operation.outcome == OK and not changes_nothing(operation)


def _sees(before: State, operations: Iterable[Operation], read: Operation, asked: Operation | None) -> bool:
    """Whether a read may be behind what was asked before it on its connection, where
    that was done.
    """
    return asked is None or not is_done(asked) or _has_a_place(before, operations, read, asked)


def _has_a_place(before: State, operations: Iterable[Operation], read: Operation, known: Operation) -> bool:
    """Whether there is an order in which the read is behind what its node knew, and perhaps ahead
    of what others had been answered, and of what somebody else wrote to the tree, which nodes learn
    of when they are notified.
    """
    placed = msgspec.structs.replace(read, is_placed=True, is_fresh=False, began=known.began, after=known.number)
    moment = read.ended or read.began
    changes = [
        msgspec.structs.replace(each, ended=moment + 1) if each.client == STRANGER else each
        for each in changes_until(moment, operations)
    ]
    return check(before, [*changes, placed]) is None


def changes_until(moment: float, operations: Iterable[Operation]) -> list[Operation]:
    """Return what may have taken effect by then; of what was not answered yet nobody knows how it
    ends.
    """
    return [
        each if each.ended is None or each.ended <= moment else msgspec.structs.replace(each, ended=None)
        for each in operations
        if each.began <= moment and not is_read(each)
    ]
