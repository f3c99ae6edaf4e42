"""Asking a handler as the line would: a node built by hand, a context, and the answer as it looks
after the wire.

Every answer is encoded in its version and read back, so no test can pass with one that cannot be
sent.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any

from minicontroller.cluster.entities import Broker, Endpoint, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.controller.handlers.unauthorized_requests import RefusedRequests
from minicontroller.controller.node.node import Node
from minicontroller.network.serving.api import ServedApi
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.network.serving.forwarding import Forwarder
from minicontroller.network.serving.observers import RequestObserver
from minicontroller.network.serving.routes import routed
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.authorizer import Authorization
from minicontroller.security.caller import Caller, Listener
from minicontroller.store.memory import MemoryStore, MemoryTree
from tests.support.specs import APIS, TestHandler, specs_with

READS = {
    key: APIS[key]
    for key in (
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_CLUSTER,
    )
}
"""The APIs that read."""

CLUSTER_ID = "9dJzdGvfTPaCY4e8klXaDQ"


def broker(broker_id: int, *listeners: str, rack: str | None = None) -> Broker:
    """Listening on PLAINTEXT unless it is said where, each on a port of its own."""
    return Broker(
        broker_id,
        tuple(
            Endpoint(name, f"{name.lower()}.host", 9000 + 100 * (broker_id % 500) + number)
            for number, name in enumerate(listeners or ("PLAINTEXT",))
        ),
        rack=rack,
    )


def led(*replicas: int, leader: int | None = None, isr: tuple[int, ...] | None = None, **more: Any) -> Partition:
    """A partition led by its first replica unless it is said by whom, with all replicas in sync."""
    return Partition(
        replicas=replicas,
        leader=replicas[0] if leader is None else leader,
        leader_epoch=more.pop("leader_epoch", 3),
        isr=replicas if isr is None else isr,
        partition_epoch=0,
        **more,
    )


def topic(name: str, *partitions: Partition) -> Topic:
    return Topic(name, topic_id=topic_id(name), partitions=partitions)


def topic_id(name: str) -> bytes:
    return name.encode()[-16:].rjust(16, b"\1")


def image(
    brokers: Iterable[Broker] = (), topics: Iterable[Topic] = (), *, controller_id: int = 1, controller_epoch: int = 1
) -> Image:
    empty = Image(controller_id=controller_id, controller_epoch=controller_epoch)
    return empty.with_brokers(brokers).with_topics(topics)


def node_with(seen: Image, settings: Mapping[str, str] | None = None, *, broker_id: int = 1) -> Node:
    """Return a node with this metadata. It is not the controller and cannot forward."""
    config = config_from_mapping(
        {"broker.id": str(broker_id), "listeners": "PLAINTEXT://127.0.0.1:0", **(settings or {})}
    )
    node = Node(config, CLUSTER_ID, MemoryStore(MemoryTree()))
    see(node, seen)
    return node


BROKER_EPOCH = 40


def told_node(*topics: Topic) -> Node:
    """Return node 1, which knows node 2 as the controller of epoch 5 and was registered with
    BROKER_EPOCH.
    """
    node = node_with(image([broker(1), broker(2)], topics, controller_id=2, controller_epoch=5))
    node.registered(BROKER_EPOCH)
    return node


def see(node: Node, seen: Image) -> None:
    """Send a node the present state of the cluster, as the controller does."""
    before = node.cache.image
    node.cache.apply(
        controller_id=seen.controller_id,
        controller_epoch=seen.controller_epoch,
        brokers=seen.brokers.values(),
        changed=[each for name, each in seen.topics.items() if before.topics.get(name) is not each],
        removed=[name for name in before.topics if name not in seen.topics],
    )


class Client:
    """One connection to a node at one of its listeners. `peer`: it belongs to an authenticated node
    of the cluster.
    """

    def __init__(
        self,
        node: Node,
        *,
        listener: str = "PLAINTEXT",
        principal: str | None = None,
        by_token: bool = False,
        peer: bool = False,
        inter_broker: bool = False,
        handlers: Mapping[ApiKey, ServedApi[()] | TestHandler] = READS,
        forwarder: Forwarder | None = None,
        authorization: Authorization | None = None,
        caller: Caller | None = None,
        observers: Sequence[RequestObserver] = (),
    ) -> None:
        self._dispatcher = Dispatcher(
            routed(specs_with(handlers, node), node.cache, node.place.is_active, forwarder),
            [RefusedRequests(node.port), *observers],
            authorization=authorization,
        )
        self._caller = caller or Caller(Listener(name=listener, inter_broker=inter_broker), "10.0.0.9", 50_000)
        if caller is None:
            self._caller.principal, self._caller.by_token, self._caller.from_peer = principal, by_token, peer
        self.update_number = -1
        """By the header of the last answer."""

    async def ask(self, request: Any, version: int, **tags: Any) -> Any:
        """One request, by the line that answers all of them: encoded, answered, decoded. `tags` are
        those of a forwarded one.
        """
        answer = self.answer_to(self.frame(request, version, **tags))
        return self.read(answer if isinstance(answer, bytes) else await answer, request, version)

    def ask_at_once(self, request: Any, version: int) -> Any:
        """Return the response to a request that has to be answered without waiting."""
        answer = self.answer_to(self.frame(request, version))
        assert isinstance(answer, bytes), "it waits"
        return self.read(answer, request, version)

    def answer(self, request: Any, version: int) -> bytes:
        """The bytes themselves."""
        answer = self.answer_to(self.frame(request, version))
        assert isinstance(answer, bytes), "it waits"
        return answer

    def answer_to(self, frame: bytes) -> bytes | Awaitable[bytes]:
        """The bytes for those of a request, or what waits for them."""
        return self._dispatcher.answer(self._caller, frame)

    def frame(self, request: Any, version: int, *, client_id: str = "tests", **tags: Any) -> bytes:
        header = RequestHeader(_key(request), version, correlation_id=7, client_id=client_id, **tags)
        return KAFKA.encode_request(header, request)[4:]

    def read(self, answer: bytes, request: Any, version: int) -> Any:
        header, response = KAFKA.decode_response(_key(request), version, answer[4:])
        assert header.correlation_id == 7
        self.update_number = header.update_number
        return response


def _key(request: Any) -> ApiKey:
    return next(api.key for api in KAFKA.values() if api.request is type(request))
