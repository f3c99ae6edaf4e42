"""The states that things may be in by what their only client was told: acknowledged changes
happened, and any other change that was asked for may have happened, or may still happen.

Rule: pure. A ledger is compared with the truth when nothing is under way; from then on the truth is
what is possible.
"""

from collections.abc import Callable, Hashable, Mapping

State = Hashable
"""None for what does not exist."""
Change = Callable[[State], State | None]
"""From the state before it to the one after it; raises `Impossible` where it cannot succeed."""


class Impossible(Exception):  # noqa: N818
    """A change cannot succeed in this state."""


class Ledger:
    """The possible states of one client's things."""

    def __init__(self) -> None:
        self._possible: dict[str, set[State]] = {}
        self._doubts: dict[str, list[Change]] = {}
        self.acknowledged = 0
        self.in_doubt = 0
        self.findings: list[str] = []

    @property
    def things(self) -> list[str]:
        """The names of all that was ever asked for."""
        return sorted(self._possible)

    def is_certain(self, thing: str) -> bool:
        """Return whether only one state is possible."""
        return len(self.possible(thing)) == 1

    def possible(self, thing: str) -> set[State]:
        return self._possible.get(thing, {None})

    def acknowledge(self, thing: str, change: Change, text: str) -> None:
        """The client was told that this change happened."""
        self.acknowledged += 1
        after = _applied(change, self.possible(thing))
        if not after:
            self.findings.append(f"{thing}: {text} was acknowledged, but it was {_shown(self.possible(thing))}")
            return
        self._possible[thing] = self._with_doubts(thing, after)

    def doubt(self, thing: str, change: Change) -> None:
        """The client was not told what became of this change."""
        self.in_doubt += 1
        self._doubts.setdefault(thing, []).append(change)
        self._possible[thing] = self._with_doubts(thing, self.possible(thing))

    def compare(self, truth: Mapping[str, State]) -> None:
        """Note each thing that is not as it can be. What `truth` lacks does not exist."""
        for thing in self.things:
            seen = truth.get(thing)
            if seen not in self.possible(thing):
                self.findings.append(
                    f"{thing}: it is {_shown({seen})}; by what was acknowledged: {_shown(self.possible(thing))}"
                )
            self._possible[thing] = {seen}
        self._doubts.clear()

    def _with_doubts(self, thing: str, states: set[State]) -> set[State]:
        """Return these states, and those that doubtful changes make of them, in any order."""
        found, new = set(states), set(states)
        while new:
            new = {state for doubt in self._doubts.get(thing, ()) for state in _applied(doubt, new)} - found
            found |= new
        return found


def _applied(change: Change, states: set[State]) -> set[State]:
    after = set()
    for state in states:
        try:
            after.add(change(state))
        except Impossible:
            continue
    return after


def _shown(states: set[State]) -> str:
    return " or ".join(sorted("absent" if state is None else repr(state) for state in states))


# --- the changes; a topic's state is its partitions and its retention.ms ---


def created(partitions: int, retention: str) -> Change:
    def change(state: State) -> State:
        if state is not None:
            raise Impossible
        return partitions, retention

    return change


def deleted(state: State) -> None:
    if state is None:
        raise Impossible


def grown(partitions: int) -> Change:
    def change(state: State) -> State:
        match state:
            case (int(before), retention) if before < partitions:
                return partitions, retention
        raise Impossible

    return change


def altered(retention: str) -> Change:
    def change(state: State) -> State:
        match state:
            case (partitions, _):
                return partitions, retention
        raise Impossible

    return change


def put(value: State) -> Change:
    """Let a thing be this, whatever it was; None removes it."""
    return lambda _state: value
