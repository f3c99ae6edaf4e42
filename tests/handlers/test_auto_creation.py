"""Automatic creation: by way of the controller, under the client's own name, once for
many who ask.
"""

from collections.abc import Sequence

import msgspec
import pytest
import trio
import trio.testing

from minicontroller.admin.bounds import MAX_CHANGES
from minicontroller.cluster.entities import Broker, Endpoint
from minicontroller.cluster.errors import Refusal
from minicontroller.controller.broker.auto_creation import PATIENCE_SECONDS
from minicontroller.controller.node.node import Node
from minicontroller.network.serving.context import RequestContext
from minicontroller.network.serving.forwarding import Forwarder
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from minicontroller.security.credentials import PlainCredentials
from tests.handlers.asking import READS, Client, broker, image, led, node_with, see, topic
from tests.handlers.creations import Creations, client_of, ruling_node
from tests.handlers.ruling import ruling
from tests.support.small_server import NODES, TINY_HANDLERS, serving

LAST = 12
CLUSTER = image([broker(1)], [topic("there", led(1))])


def wanting(*names: str, version: int = LAST) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


def codes(response: MetadataResponse) -> dict[str | None, int]:
    return {each.name: each.error_code for each in response.topics}


async def ask_all(clients: Sequence[Client], request: MetadataRequest) -> list[dict[str | None, int]]:
    """All at once."""
    answers: list[dict[str | None, int]] = []

    async def ask(client: Client) -> None:
        answers.append(codes(await client.ask(request, LAST)))

    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(ask, client)
    return answers


@pytest.mark.parametrize("version", range(13))
async def test_a_missing_topic_is_made(version: int) -> None:
    """In every version, of which v0 to v3 have no flag, Metadata asks the controller to create a
    missing topic, and the client is told to retry.
    """
    creations = Creations()
    answer = await client_of(ruling_node(CLUSTER), creations).ask(wanting("new", "there"), version)
    assert codes(answer) == {"there": 0, "new": ErrorCode.LEADER_NOT_AVAILABLE}
    assert [each.topic_id for each in answer.topics if each.name == "new"] == [bytes(16)]
    assert creations.names == [["new"]]


async def test_the_controller_is_asked_as_the_client_would_ask() -> None:
    """Automatic creation uses the newest CreateTopics, with the node's defaults, under the client's
    principal and without waiting; the policy sees that Metadata was used.
    """
    creations = Creations()
    await client_of(ruling_node(CLUSTER), creations, principal="User:alice").ask(wanting("new"), 1)
    ((context, request),) = creations.calls
    assert (context.api_key, context.header.api_version, context.origin.api_version) == (ApiKey.CREATE_TOPICS, 7, 7)
    assert (context.origin.principal, context.origin.client_host, context.client_id) == (
        "User:alice",
        "10.0.0.9",
        "tests",
    )
    assert context.policy_api == "Metadata"
    assert (request.timeout_ms, request.validate_only) == (0, False)
    assert [(each.num_partitions, each.replication_factor, each.configs) for each in request.topics] == [(-1, -1, [])]


@pytest.mark.parametrize(
    ("answered", "told"),
    [
        (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.LEADER_NOT_AVAILABLE),
        (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.LEADER_NOT_AVAILABLE),
        (ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_REPLICATION_FACTOR),
        (ErrorCode.INVALID_PARTITIONS, ErrorCode.INVALID_PARTITIONS),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_what_the_client_is_told(answered: ErrorCode, told: ErrorCode) -> None:
    """A topic that is being created is answered LEADER_NOT_AVAILABLE; a refusal is answered with
    its own code.
    """
    answer = await client_of(ruling_node(CLUSTER), Creations(lambda _name: answered)).ask(wanting("new"), LAST)
    assert codes(answer) == {"new": told}


async def test_each_topic_has_its_own_outcome() -> None:
    """A refused topic, or an illegal name, which the controller never receives, does not affect the
    other topics.
    """
    creations = Creations(lambda name: ErrorCode.POLICY_VIOLATION if name == "b" else ErrorCode.NONE)
    answer = await client_of(ruling_node(CLUSTER), creations).ask(wanting("a", "bad!", "b", "there", "a"), LAST)
    assert codes(answer) == {
        "there": 0,
        "a": ErrorCode.LEADER_NOT_AVAILABLE,
        "bad!": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "b": ErrorCode.POLICY_VIOLATION,
    }
    assert creations.names == [["a", "b"]]


@pytest.mark.parametrize("version", range(4, 13))
async def test_not_where_the_client_says_no(version: int) -> None:
    """From v4 on the client's flag decides whether topics are created."""
    creations = Creations()
    request = wanting("new")
    request.allow_auto_topic_creation = False
    answer = client_of(ruling_node(CLUSTER), creations).ask_at_once(request, version)
    assert codes(answer) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert creations.calls == []


@pytest.mark.parametrize(("count", "created"), [(MAX_CHANGES, 1), (MAX_CHANGES + 1, 0)])
async def test_not_more_than_a_request_may_create(count: int, created: int) -> None:
    """Metadata of more missing topics than CreateTopics may name creates none of them, and still
    says what is there.
    """
    creations = Creations()
    wanted = wanting("there", *(f"new{number}" for number in range(count)))
    told = codes(await client_of(ruling_node(CLUSTER), creations).ask(wanted, LAST))
    missing = ErrorCode.LEADER_NOT_AVAILABLE if created else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told.pop("there") == 0
    assert (len(creations.calls), len(told), set(told.values())) == (created, count, {missing})


async def test_no_controller_is_no_creation() -> None:
    """Without a controller the topic is answered as unknown, so that the client asks again."""
    node = node_with(CLUSTER)
    creations = Creations()
    assert codes(await client_of(node, creations).ask(wanting("new"), LAST)) == {
        "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    assert creations.calls == []


async def test_one_creation_for_all_who_ask() -> None:
    """No thundering herd: who asks for a topic that is being made waits for that outcome."""
    node, creations = ruling_node(CLUSTER), Creations(lambda _name: ErrorCode.POLICY_VIOLATION)
    creations.gate = trio.Event()
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            answers = await ask_all([client_of(node, creations) for _ in range(50)], wanting("new"))
            assert answers == [{"new": ErrorCode.POLICY_VIOLATION}] * 50

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        creations.gate.set()
    assert creations.names == [["new"]]


async def test_only_what_nobody_makes_is_asked_for() -> None:
    """Two requests that overlap: each topic is made once, and each request waits for
    both outcomes.
    """
    node, creations = ruling_node(CLUSTER), Creations()
    creations.gate = trio.Event()
    found: list[dict[str | None, int]] = []

    async def ask(*names: str) -> None:
        found.append(codes(await client_of(node, creations).ask(wanting(*names), LAST)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "a", "b")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, "b", "c")
        await trio.testing.wait_all_tasks_blocked()
        creations.gate.set()
    assert creations.names == [["a", "b"], ["c"]]
    on_its_way = ErrorCode.LEADER_NOT_AVAILABLE
    assert {frozenset(each.items()) for each in found} == {
        frozenset({("a", on_its_way), ("b", on_its_way)}),
        frozenset({("b", on_its_way), ("c", on_its_way)}),
    }


async def test_principals_do_not_share() -> None:
    """Automatic creations of different principals are separate, because the policy may allow one
    and refuse the other.
    """
    node, creations = ruling_node(CLUSTER), Creations()
    creations.gate = trio.Event()
    clients = [client_of(node, creations, principal) for principal in ("User:alice", "User:bob", "User:alice")]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_all, clients, wanting("new"))
        await trio.testing.wait_all_tasks_blocked()
        creations.gate.set()
    assert sorted(str(context.origin.principal) for context, _ in creations.calls) == ["User:alice", "User:bob"]


async def test_another_asks_when_the_first_went_away() -> None:
    """When a client disconnects, its creation is cancelled, and clients that waited for it ask the
    controller themselves.
    """
    node, creations = ruling_node(CLUSTER), Creations()
    creations.gate = trio.Event()
    async with trio.open_nursery() as nursery:

        async def ask_and_go(task_status: trio.TaskStatus[trio.CancelScope]) -> None:
            with trio.CancelScope() as scope:
                task_status.started(scope)
                await client_of(node, creations).ask(wanting("new"), LAST)

        first = await nursery.start(ask_and_go)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask_all, [client_of(node, creations) for _ in range(3)], wanting("new"))
        await trio.testing.wait_all_tasks_blocked()
        first.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert creations.names == [["new"], ["new"]]
        creations.gate.set()


async def test_nothing_is_left_behind() -> None:
    """A refusal of the whole request is the result of each topic, and a later request asks the
    controller again.
    """
    node = ruling_node(CLUSTER)

    class Refusing(Creations):
        async def handle(
            self, _node: Node, context: RequestContext, request: CreateTopicsRequest
        ) -> CreateTopicsResponse:
            self.calls.append((context, request))
            raise Refusal(ErrorCode.NOT_CONTROLLER)

    creations = Refusing()
    for _ in range(2):
        answer = await client_of(node, creations).ask(wanting("new"), LAST)
        assert codes(answer) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(creations.calls) == 2


async def test_patience_ends(autojump_clock: trio.testing.MockClock) -> None:
    """A controller that does not answer keeps the client only for a while."""
    creations = Creations()
    creations.gate = trio.Event()
    started = trio.current_time()
    answer = await client_of(ruling_node(CLUSTER), creations).ask(wanting("new"), LAST)
    assert codes(answer) == {"new": ErrorCode.LEADER_NOT_AVAILABLE}
    assert trio.current_time() - started == pytest.approx(PATIENCE_SECONDS)


async def test_what_was_made_meanwhile_is_told_next_time() -> None:
    """Existing topics are answered with their state when the answer is made; a topic created by the
    request is answered LEADER_NOT_AVAILABLE, and the client asks again.
    """
    node, creations = ruling_node(CLUSTER), Creations()
    creations.gate = trio.Event()
    found: list[MetadataResponse] = []

    async def ask() -> None:
        found.append(await client_of(node, creations).ask(wanting("new", "there"), LAST))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        moved = msgspec.structs.replace(CLUSTER.topics["there"], partitions=(led(1), led(1)))
        see(node, CLUSTER.with_topics([moved, topic("new", led(1))]))
        creations.gate.set()
    assert codes(found[0]) == {"there": 0, "new": ErrorCode.LEADER_NOT_AVAILABLE}
    assert [len(each.partitions) for each in found[0].topics] == [2, 0]


async def test_from_any_node() -> None:
    """K4-5: a node that is not the controller forwards the creation, and with it who asked and by
    which API.
    """
    creations = Creations()
    handlers = {**TINY_HANDLERS, ApiKey.CREATE_TOPICS: creations.handle}
    async with serving(handlers=handlers, listeners=[NODES]) as far, trio.open_nursery() as nursery:
        at_far = Endpoint("NODES", "127.0.0.1", far.server.ports["NODES"], "SASL_PLAINTEXT")
        node = node_with(image([broker(1), Broker(2, (at_far,))], controller_id=2))
        forwarder = Forwarder(
            nursery,
            broker_id=1,
            cache=node.cache,
            inter_broker_listener="NODES",
            logins=lambda *_: (PlainCredentials("node", "node-secret"),),
        )
        answer = await Client(node, principal="User:alice", handlers={**handlers, **READS}, forwarder=forwarder).ask(
            wanting("new"), LAST
        )
        nursery.cancel_scope.cancel()
    assert codes(answer) == {"new": ErrorCode.LEADER_NOT_AVAILABLE}
    ((context, _),) = creations.calls
    assert context.forwarded
    assert (context.origin.principal, context.policy_api) == ("User:alice", "Metadata")


async def test_the_presets_of_internal_topics() -> None:
    """Kafka's own topics are made with what the node's configuration says of them, compacted."""
    settings = {
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "6",
        "transaction.state.log.replication.factor": "2",
        "transaction.state.log.min.isr": "1",
    }
    creations = Creations()
    request = wanting("__consumer_offsets", "__transaction_state")
    await client_of(ruling_node(CLUSTER, settings), creations).ask(request, LAST)
    offsets, transactions = creations.calls[0][1].topics
    assert (offsets.num_partitions, offsets.replication_factor) == (4, 1)
    assert {each.name: each.value for each in offsets.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert (transactions.num_partitions, transactions.replication_factor) == (6, 2)
    assert {each.name: each.value for each in transactions.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@pytest.mark.parametrize("version", range(13))
async def test_a_topic_that_nobody_may_create(version: int) -> None:
    """Metadata creates no topic that CreateTopics would refuse as invalid, unlike Kafka."""
    async with ruling() as cluster:
        answer = await cluster.ask(wanting("__cluster_metadata"), version)
        assert codes(answer) == {"__cluster_metadata": ErrorCode.INVALID_TOPIC_EXCEPTION}
        assert "__cluster_metadata" not in cluster.image.topics
