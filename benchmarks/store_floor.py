"""The time that ZooKeeper and kazoo alone take to store topics in Kafka's layout,
without a broker.
"""

import itertools
from collections import deque
from time import perf_counter
from typing import Any, Final

from .driver import DriverError
from .kazoo_client import connected
from .works import CONNECTIONS, PARTITIONS, Bench, Figures

TOPICS_A_COMMIT: Final = 100
ROOT: Final = "/floor"
STATE: Final = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'
TOPIC: Final = (
    b'{"removing_replicas":{},"partitions":{"0":[1,2,3]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAA","adding_replicas":{},'
    b'"version":3}'
)
CONFIG: Final = b'{"version":1,"config":{}}'


def commits(bench: Bench) -> Figures:
    """Each commit is one multi that checks a version and creates the znodes of its topics."""
    seconds = bench.budget.seconds
    with connected(bench.system.zookeeper()) as client:
        client.ensure_path(ROOT)
        figures = {
            "one": _rate(client, seconds, topics=1, partitions=1, flying=1),
            "flying": _rate(client, seconds, topics=1, partitions=1, flying=CONNECTIONS),
            "batches": _rate(client, seconds, topics=TOPICS_A_COMMIT, partitions=PARTITIONS, flying=1),
        }
        client.delete(ROOT, recursive=True)
    return figures


def _rate(client: Any, seconds: float, *, topics: int, partitions: int, flying: int) -> float:
    """Topics a second with that many commits in flight."""
    numbers = itertools.count(len(client.get_children(ROOT)))
    waiting: deque[Any] = deque()
    done = 0
    begin = perf_counter()
    while perf_counter() - begin < seconds:
        waiting.append(_commit(client, [next(numbers) for _ in range(topics)], partitions))
        if len(waiting) == flying:
            _check(waiting.popleft().get())
            done += topics
    for result in waiting:
        _check(result.get())
        done += topics
    return done / (perf_counter() - begin)


def _commit(client: Any, numbers: list[int], partitions: int) -> Any:
    """Five znodes for a topic of one partition, two more for every further one."""
    transaction = client.transaction()
    transaction.check(ROOT, -1)
    for number in numbers:
        transaction.create(f"{ROOT}/{number}", TOPIC)
        transaction.create(f"{ROOT}/{number}/config", CONFIG)
        transaction.create(f"{ROOT}/{number}/partitions")
        for partition in range(partitions):
            transaction.create(f"{ROOT}/{number}/partitions/{partition}")
            transaction.create(f"{ROOT}/{number}/partitions/{partition}/state", STATE)
    return transaction.commit_async()


def _check(results: list[Any]) -> None:
    failures = [result for result in results if isinstance(result, Exception)]
    if failures:
        raise DriverError(f"ZooKeeper refused a commit: {failures[0]!r}")
