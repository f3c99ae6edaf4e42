"""The ids of producers, and transactions where there are none: no topic of coordinators exists yet,
as before the first transaction.
"""

from tests.conformance.case import Case, creation, each_version, new_topic

MISSING, MANY_MS = "pro-missing", 60_000


def wants(
    name: str,
    transactional_id: str | None,
    timeout_ms: int = MANY_MS,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> list[Case]:
    body = {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": timeout_ms,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
    }
    since = 3 if producer_id != -1 or producer_epoch != -1 else 0
    return each_version(name, "InitProducerId", body, since=since, settles=transactional_id is None)


def transactions(
    name: str, *, states: tuple[str, ...] = (), ids: tuple[int, ...] = (), duration_ms: int = -1
) -> list[Case]:
    body = {"state_filters": list(states), "producer_id_filters": list(ids), "duration_filter": duration_ms}
    return each_version(name, "ListTransactions", body, since=0 if duration_ms == -1 else 1)


CASES = [
    Case("setup", "CreateTopics", 7, creation(new_topic("pro-here", placed={0: [1], 1: [2]}), new_topic("pro-there", placed={0: [2, 1]}))),
    Case("led", "Metadata", 12, {"topics": [{"name": "pro-here"}, {"name": "pro-there"}], "allow_auto_topic_creation": False}, once_led=("pro-here", "pro-there")),
    *wants("idempotent", None),
    *wants("idempotent without time", None, 0),
    *wants("idempotent again", None, producer_id=5, producer_epoch=0),
    *wants("an epoch without an id", None, producer_epoch=3),
    *wants("an id without an epoch", None, producer_id=3),
    *wants("transactional", "pro-tx"),
    *wants("transactional without a name", ""),
    *wants("transactional without time", "pro-tx", 0),
    *wants("transactional again", "pro-tx", producer_id=5, producer_epoch=0),
    *transactions("all"),
    *transactions("in states", states=("Ongoing", "Empty", "ongoing", "nonsense", "nonsense", "")),
    *transactions("of producers", ids=(1, 2)),
    *transactions("long ones", duration_ms=1000),
    *transactions("all, said otherwise", duration_ms=-5),
    Case("transactions", "DescribeTransactions", 0, {"transactional_ids": ["pro-tx", "pro-b", "pro-tx"]}),
    Case("a nameless transaction", "DescribeTransactions", 0, {"transactional_ids": [""]}),
    Case("no transactions", "DescribeTransactions", 0, {"transactional_ids": []}),
    Case("producers", "DescribeProducers", 0, {"topics": [{"name": "pro-here", "partition_indexes": [0, 1, 2]}]}, node_1=True),
    Case("producers elsewhere", "DescribeProducers", 0, {"topics": [{"name": "pro-there", "partition_indexes": [0, 1, 2]}, {"name": MISSING, "partition_indexes": [0]}, {"name": "bad name", "partition_indexes": [0]}]}, node_1=True),
    Case("producers of nothing", "DescribeProducers", 0, {"topics": [{"name": "pro-here", "partition_indexes": []}]}),
    Case("a block for an unknown broker", "AllocateProducerIds", 0, {"broker_id": 99, "broker_epoch": 1}),
    Case("a block for an old registration", "AllocateProducerIds", 0, {"broker_id": 2, "broker_epoch": 1}),
    Case("a block without an epoch", "AllocateProducerIds", 0, {"broker_id": 2}),
]  # fmt: skip
