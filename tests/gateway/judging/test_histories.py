"""What the rules forbid is not carried out, nor a thing told that was not so, in histories written
by hand: the gateway reads an old state, and the client's broker has the newest. Each history shows
the fault that it is about, once that is planted.
"""

from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from minicontroller.audit.event import Decision, Effect, Observed
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.config_resources import ConfigOperation
from minicontroller.protocol.messages import create_partitions, create_topics, incremental_alter_configs, metadata
from tests.gateway.judging.lagging import LaggingCluster, State, Truth
from tests.gateway.judging.plants import PLANTS
from tests.gateway.judging.test_races import MOST_PARTITIONS, Gateway, violations

NEWEST = 9
"""The id of a broker that is never behind."""


class FrozenCluster(LaggingCluster):
    """A cluster of which gateways see the state at one moment."""

    def __init__(self) -> None:
        super().__init__(Random(1), 500.0)
        self.failing = 0.0
        self.frozen: Callable[[int], State] | None = None

    def freeze(self) -> None:
        state = self.now
        self.frozen = lambda _broker: state

    def shown_by(self, broker: int) -> State:
        return self.now if self.frozen is None or broker == NEWEST else self.frozen(broker)


async def _ask(gateway: Gateway, cluster: FrozenCluster, key: ApiKey, request: Any) -> list[str]:
    """Ask, and return which rules what was carried out is against."""
    await gateway.ask(cluster, key, request, NEWEST)
    return [text for deed in cluster.deeds for text in violations(deed)]


def _with(topic: Truth, **configs: str) -> Truth:
    pairs = tuple((name.replace("_", "."), value) for name, value in configs.items())
    return msgspec.structs.replace(topic, configs=pairs)


def _altering(name: str, key: str, operation: ConfigOperation, value: str) -> Any:
    config = incremental_alter_configs.IncrementalAlterableConfig(key, int(operation), value)
    resource = incremental_alter_configs.IncrementalAlterConfigsResource(2, name, [config])
    return incremental_alter_configs.IncrementalAlterConfigsRequest([resource])


def _asking(*names: str) -> metadata.MetadataRequest:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics, allow_auto_topic_creation=True)


async def _before_it_is_seen(gateway: Gateway, cluster: FrozenCluster) -> list[str]:
    """A topic that no broker shows yet gets too many partitions."""
    cluster.freeze()
    cluster.put("a", cluster.made(1))
    wanted = create_partitions.CreatePartitionsTopic("a", MOST_PARTITIONS + 1, None)
    return await _ask(gateway, cluster, ApiKey.CREATE_PARTITIONS, create_partitions.CreatePartitionsRequest([wanted]))


async def _one_ahead(gateway: Gateway, cluster: FrozenCluster) -> list[str]:
    """One broker is ahead of the others while the gateway reads."""
    topic = cluster.made(1)
    states: list[State] = [{"a": _with(topic, retention_ms=value)} for value in ("50", "60")]
    cluster.frozen = lambda broker: states[broker == 1]
    for _ in range(20):
        await gateway.mirror.read()
    told = [event.after.configs for event in gateway.log.events if isinstance(event, Observed) and event.after]
    return [f"{len(told)} changes"] if len(told) > 1 else []


async def _kept_by_an_old_reading(gateway: Gateway, cluster: FrozenCluster) -> list[str]:
    """A forbidden value is set again, which the topic had when it was read."""
    topic = cluster.made(1)
    cluster.put("a", _with(topic, retention_ms="-1"))
    cluster.freeze()
    cluster.put("a", _with(topic, retention_ms="50"))
    request = _altering("a", "retention.ms", ConfigOperation.SET, "-1")
    return await _ask(gateway, cluster, ApiKey.INCREMENTAL_ALTER_CONFIGS, request)


async def _appended_to_another(gateway: Gateway, cluster: FrozenCluster) -> list[str]:
    """An element is appended to a list, which has others than were read."""
    topic = cluster.made(1)
    cluster.put("a", _with(topic, cleanup_policy="compact"))
    cluster.freeze()
    cluster.put("a", _with(topic, cleanup_policy="delete"))
    request = _altering("a", "cleanup.policy", ConfigOperation.APPEND, "compact")
    return await _ask(gateway, cluster, ApiKey.INCREMENTAL_ALTER_CONFIGS, request)


async def _asked_for_when_gone(gateway: Gateway, cluster: FrozenCluster, *others: str) -> list[str]:
    """A topic with a forbidden name is asked for, which is gone since it was read."""
    cluster.put("BAD", cluster.made(1))
    cluster.freeze()
    cluster.put("BAD", None)
    return await _ask(gateway, cluster, ApiKey.METADATA, _asking("BAD", *others))


async def _asked_for_beside_a_new_one(gateway: Gateway, cluster: FrozenCluster) -> list[str]:
    """Such a topic is asked for beside one that may be created."""
    return await _asked_for_when_gone(gateway, cluster, "a")


History = Callable[[Gateway, FrozenCluster], Awaitable[list[str]]]
HISTORIES: Mapping[str, History] = {
    "what was not seen passes": _before_it_is_seen,
    "an inquiry has an effect": _before_it_is_seen,
    "any broker is read": _one_ahead,
    "exemption by an old reading": _kept_by_an_old_reading,
    "APPEND goes on as it is": _appended_to_another,
    "creation again by Metadata": _asked_for_when_gone,
    "creation again beside another": _asked_for_beside_a_new_one,
}


def happened(history: History) -> list[str]:
    """Let a history happen, and return what was wrong."""

    async def run() -> list[str]:
        cluster = FrozenCluster()
        async with trio.open_nursery() as nursery:
            gateway = Gateway(cluster, nursery)
            await gateway.begin()
            wrong = await history(gateway, cluster)
            nursery.cancel_scope.cancel()
        return wrong

    return trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("name", PLANTS)
def test_a_history_shows_its_fault_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong, until the fault is planted that the history is about."""
    assert happened(HISTORIES[name]) == []
    PLANTS[name].put(monkeypatch)
    assert happened(HISTORIES[name]) != []


async def _created_unseen(gateway: Gateway, cluster: FrozenCluster) -> list[str]:
    """A topic is created again that no broker shows for long, and then grows."""
    cluster.put("a", cluster.made(1))
    await gateway.mirror.read()
    cluster.freeze()
    cluster.put("a", None)
    wanted = create_topics.CreatableTopic("a", 2, 1, [], [])
    await gateway.ask(cluster, ApiKey.CREATE_TOPICS, create_topics.CreateTopicsRequest([wanted]), NEWEST)
    await gateway.reviewer.wait_recorded()
    (decision,) = (event for event in gateway.log.events if isinstance(event, Decision))
    assert (decision.effect, decision.error_code, decision.after) == (Effect.UNKNOWN, 0, decision.before)
    cluster.frozen = None
    await trio.sleep(10)
    await gateway.mirror.read()
    *_, told = (event for event in gateway.log.events if isinstance(event, Observed))
    assert told.after is not None and told.after.replicas == cluster.now["a"].rows
    return []


def test_what_the_cluster_chooses_is_recorded_when_it_is_shown() -> None:
    """A topic that no broker shows in time is recorded with an unknown effect, and never with an id
    or replicas that it has not.
    """
    assert happened(_created_unseen) == []
