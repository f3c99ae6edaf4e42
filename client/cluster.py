"""The cluster: its brokers, its controller, and which versions of APIs the brokers offer."""

import msgspec

from .calls import Calls
from .errors import Results
from .topics import TopicDescription, topics_of


class BrokerDescription(msgspec.Struct, frozen=True):
    broker_id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(msgspec.Struct, frozen=True):
    """A cluster as a node describes it; `controller_id` is None while there is none."""

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[BrokerDescription, ...]
    topics: tuple[TopicDescription, ...]


class ClusterCalls(Calls):
    async def describe_cluster(self) -> ClusterDescription:
        """Describe the brokers, the controller and all topics, from the Metadata of one node."""
        answer = await self._batches.metadata(None)
        ids = {broker.node_id for broker in answer.brokers}
        return ClusterDescription(
            cluster_id=answer.cluster_id,
            controller_id=answer.controller_id if answer.controller_id in ids else None,
            brokers=tuple(
                BrokerDescription(broker.node_id, broker.host, broker.port, broker.rack)
                for broker in sorted(answer.brokers, key=lambda broker: broker.node_id)
            ),
            topics=tuple(
                topic for _, topic in sorted(topics_of(answer).items()) if isinstance(topic, TopicDescription)
            ),
        )

    async def all_broker_versions(self) -> Results[int, dict[int, tuple[int, int]]]:
        """Return the oldest and the newest version of each API that a broker offers, by the API's
        key, by broker id (K117-5).
        """
        return await self._batches.all_versions()
