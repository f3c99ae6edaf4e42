"""`python -m benchmarks.write_path`: how fast one client's changes reach a ZooKeeper, one by one,
beside the same operations sent bare.

Rule: the node and kazoo write to one ZooKeeper server in turns. kazoo sends the multi that the
controller sends for the change: the check of a fence, the count of commits, and the znodes.
"""

import argparse
import itertools
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, Final

from . import messages
from .cluster import Cluster
from .driver import DriverError
from .kazoo_client import connected
from .store_floor import CONFIG, STATE, TOPIC
from .turns import in_turns, running

SYSTEM: Final = "minicontroller-zookeeper"
ROUNDS, CHANGES = 10, 200
ROOT: Final = "/bare"
ALTERED: Final = "altered"
NOTICE: Final = b'{"version":2,"entity_path":"topics/altered"}'

Change = Callable[[int], None]
"""One change, made by a number that no change before it had."""


class Bare:
    """The controller's commits, sent by kazoo."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._count = 0
        for path in ("fence", "count", "topics", "configs", "notices"):
            client.ensure_path(f"{ROOT}/{path}")
        client.create(f"{ROOT}/configs/{ALTERED}", CONFIG)

    def create(self, number: int) -> None:
        topic, transaction = f"{ROOT}/topics/{number}", self._begun()
        transaction.create(f"{ROOT}/configs/{number}", CONFIG)
        transaction.create(topic, TOPIC)
        transaction.create(f"{topic}/partitions")
        transaction.create(f"{topic}/partitions/0")
        transaction.create(f"{topic}/partitions/0/state", STATE)
        _commit(transaction)

    def alter(self, number: int) -> None:
        transaction = self._begun()
        transaction.set_data(f"{ROOT}/configs/{ALTERED}", _config(number))
        transaction.create(f"{ROOT}/notices/config_change_", NOTICE, sequence=True)
        _commit(transaction)

    def set(self, number: int) -> None:
        self._client.set(f"{ROOT}/configs/{ALTERED}", _config(number))

    def _begun(self) -> Any:
        transaction = self._client.transaction()
        transaction.check(f"{ROOT}/fence", 0)
        transaction.set_data(f"{ROOT}/count", b"", self._count)
        self._count += 1
        return transaction


def _config(number: int) -> bytes:
    return b'{"version":1,"config":{"retention.ms":"%d"}}' % number


def _commit(transaction: Any) -> None:
    failures = [result for result in transaction.commit() if isinstance(result, Exception)]
    if failures:
        raise DriverError(f"ZooKeeper refused a commit: {failures[0]!r}")


def changes(cluster: Cluster, bare: Bare) -> dict[str, Change]:
    call = cluster.at_controller.call

    def create(number: int) -> None:
        messages.check_created(call(messages.create_topics([f"written-{number}"], partitions=1, replication_factor=1)))

    def alter(number: int) -> None:
        messages.check_altered(call(messages.alter_topic_config(ALTERED, "retention.ms", str(number))))

    return {
        "creation": create,
        "bare creation": bare.create,
        "change of a config": alter,
        "bare change of a config": bare.alter,
        "bare set": bare.set,
    }


def timed(change: Change, numbers: Iterator[int], count: int) -> float:
    """Return the changes a second."""
    begin = perf_counter()
    for number in itertools.islice(numbers, count):
        change(number)
    return count / (perf_counter() - begin)


def measured(rounds: int, count: int) -> dict[str, list[float]]:
    """Return the changes a second of each round by kind."""
    numbers = itertools.count(100_000)
    with running([SYSTEM]) as clusters:
        cluster = clusters[SYSTEM]
        cluster.create([ALTERED], partitions=1, replication_factor=1)
        with connected(cluster.system.zookeeper()) as client:
            kinds = changes(cluster, Bare(client))
            turns = in_turns(
                clusters, rounds, lambda _cluster, _turn: {each: timed(kinds[each], numbers, count) for each in kinds}
            )[SYSTEM]
    return {kind: [turn[kind] for turn in turns] for kind in kinds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--changes", type=int, default=CHANGES, help="of each kind in a round")
    asked = parser.parse_args()
    rates = measured(asked.rounds, asked.changes)
    for kind, rounds in rates.items():
        print(f"{kind}: {statistics.median(rounds):.0f}/s")
    for kind, floor in (
        ("creation", "bare creation"),
        ("change of a config", "bare change of a config"),
        ("change of a config", "bare set"),
    ):
        ratios = [own / bare for own, bare in zip(rates[kind], rates[floor], strict=True)]
        print(f"{kind}: {statistics.median(ratios):.2f} of a {floor}")


if __name__ == "__main__":
    main()
