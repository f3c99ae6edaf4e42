"""The client against nodes that are not the controller, that vanish, that lie."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from minicontroller.client.admin_client import AdminClient
from minicontroller.client.configs import Resource
from minicontroller.client.errors import AdminError, ClusterUnreachable
from minicontroller.client.topics import CreatedTopic, NewTopic
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponseBroker, MetadataResponseTopic
from tests.cli.command import Outcome, call, environment
from tests.client.fake_node import CLOSE, SILENCE, Answer, FakeNode, config, metadata, with_nodes
from tests.support.forked import COMMAND

NO_CONTROLLER = -1
HOSTILE = b"\xff" * 40
UNSUPPORTED_IN_V0 = (35).to_bytes(2) + (0).to_bytes(4)


def created(**codes: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, error_code=code, error_message=None) for name, code in codes.items()]
    )


def alone(create: Any) -> FakeNode:
    """A cluster of one node, which is its controller."""
    node = FakeNode({})
    node.answers |= {ApiKey.METADATA: lambda _: metadata(1, {1: node}), ApiKey.CREATE_TOPICS: create}
    return node


async def ask_installed(node: FakeNode, *arguments: str, folder: Path) -> Outcome:
    """The installed command, in a process of its own."""
    arguments = (*arguments, "--bootstrap-server", str(node.address))
    return await trio.to_thread.run_sync(partial(call, *arguments, folder=folder))


async def test_only_what_the_wrong_node_refused_is_sent_to_the_right_one() -> None:
    """K117-2: an element that met NOT_CONTROLLER goes to the new controller, its neighbours keep
    their answers.
    """
    controller = 1
    nodes: dict[int, FakeNode] = {}

    def tell(_: object) -> Answer:
        return metadata(controller, nodes)

    def resign(_: object) -> Answer:
        nonlocal controller
        controller = 2
        return created(a=0, b=ErrorCode.NOT_CONTROLLER)

    nodes[1] = FakeNode({ApiKey.METADATA: tell, ApiKey.CREATE_TOPICS: resign})
    nodes[2] = FakeNode({ApiKey.METADATA: tell, ApiKey.CREATE_TOPICS: lambda _: created(b=0)})

    async def test() -> None:
        async with AdminClient.connect(config(nodes[1])) as admin:
            results = await admin.create_topics([NewTopic("a"), NewTopic("b")])
        assert [type(result) for result in results.values()] == [CreatedTopic, CreatedTopic]
        [sent] = nodes[2].heard(CreateTopicsRequest)
        assert [topic.name for topic in sent.topics] == ["b"]

    await with_nodes(list(nodes.values()), test)


async def test_a_cluster_without_controller_is_waited_for_and_then_named() -> None:
    """While there is no controller nothing is sent, and at the end of the time that is what is
    said.
    """
    node = alone(lambda _: created(a=0))
    node.answers[ApiKey.METADATA] = lambda _: metadata(NO_CONTROLLER, {1: node})

    async def test() -> None:
        with pytest.raises(ClusterUnreachable, match="the cluster has no controller"):
            async with AdminClient.connect(config(node, seconds=1.0)) as admin:
                await admin.create_topics([NewTopic("a")])
        assert len(node.heard(MetadataRequest)) > 1
        assert node.heard(CreateTopicsRequest) == []

    await with_nodes([node], test)


@pytest.mark.parametrize("answer", [CLOSE, HOSTILE], ids=["it closes", "it lies"])
async def test_a_write_whose_answer_does_not_come_is_in_doubt_and_not_repeated(answer: Answer, tmp_path: Path) -> None:
    """Nobody knows whether it was done: the element says so, it was sent once, and the command ends
    with 3.
    """
    node = alone(lambda _: answer)

    async def test() -> None:
        async with AdminClient.connect(config(node)) as admin:
            results = await admin.create_topics([NewTopic("a")])
        assert isinstance(results["a"], AdminError)
        assert results["a"].in_doubt
        assert len(node.heard(CreateTopicsRequest)) == 1
        outcome = await ask_installed(node, "topics", "create", "a", folder=tmp_path)
        assert (outcome.code, outcome.stdout) == (3, "")
        assert outcome.stderr.startswith("a: in doubt: ")
        assert outcome.stderr.count("\n") == 1

    await with_nodes([node], test)


@pytest.mark.parametrize("answer", [CLOSE, HOSTILE, b""], ids=["it closes", "it lies", "it says nothing"])
async def test_a_read_that_nobody_answers_is_a_sentence(answer: Answer, tmp_path: Path) -> None:
    """What a node answers becomes a sentence and code 3, never a traceback."""
    node = alone(lambda _: created())
    node.answers[ApiKey.METADATA] = lambda _: answer

    async def test() -> None:
        outcome = await ask_installed(node, "topics", "list", folder=tmp_path)
        assert (outcome.code, outcome.stdout) == (3, "")
        assert outcome.stderr.startswith(f"Error: {node.address} ")
        assert outcome.stderr.count("\n") == 1

    await with_nodes([node], test)


async def test_an_answer_that_is_incomplete_harms_only_what_it_leaves_out() -> None:
    """K117-2: an element that the answer does not name has an error of its own; a name nobody asked
    for is not believed.
    """
    node = alone(lambda _: created(a=0, c=0))

    async def test() -> None:
        async with AdminClient.connect(config(node)) as admin:
            results = await admin.create_topics([NewTopic("a"), NewTopic("b")])
        assert isinstance(results["a"], CreatedTopic)
        assert isinstance(results["b"], AdminError)
        assert list(results) == ["a", "b"]

    await with_nodes([node], test)


async def test_what_a_node_does_not_offer_is_not_sent() -> None:
    """K117-4b: an API that the node lacks is UNSUPPORTED_VERSION for each element."""
    node = alone(lambda _: created())

    async def test() -> None:
        async with AdminClient.connect(config(node)) as admin:
            [result] = (await admin.describe_configs([Resource.topic("a")])).values()
        assert isinstance(result, AdminError)
        assert result.code == ErrorCode.UNSUPPORTED_VERSION
        assert "DescribeConfigs" in result.message

    await with_nodes([node], test)


async def test_a_node_that_is_too_old_for_the_greeting_is_asked_again() -> None:
    """KIP-511: who does not know our ApiVersions answers in version 0, and is then asked in version
    0.
    """
    node = alone(lambda _: created(a=0))
    greetings: list[object] = []

    def greet(request: object) -> Answer:
        greetings.append(request)
        return UNSUPPORTED_IN_V0 if len(greetings) == 1 else FakeNode.versions(node, request)

    node.answers[ApiKey.API_VERSIONS] = greet

    async def test() -> None:
        async with AdminClient.connect(config(node)) as admin:
            assert isinstance(await admin.create_topic(NewTopic("a")), CreatedTopic)

    await with_nodes([node], test)


async def test_an_address_that_is_silent_holds_nobody_up() -> None:
    """The next bootstrap address is tried although the first one has not failed."""
    silent, node = alone(None), alone(lambda _: created(a=0))
    silent.answers[ApiKey.API_VERSIONS] = lambda _: SILENCE

    async def test() -> None:
        async with AdminClient.connect(config(silent, node)) as admin:
            assert await admin.list_topics() == {}
        assert len(silent.asked) == 1

    await with_nodes([silent, node], test)


@pytest.mark.parametrize(
    ("host", "port"),
    [("", -1), ("127.0.0.1", 70_000), ("a..b", 9092), ("x" * 300, 9092), ("nul\0", 9092), ("\N{GRINNING FACE}", 1)],
)
async def test_an_address_that_is_none_is_an_error_of_those_who_need_it(host: str, port: int) -> None:
    """Whatever a node tells of where its neighbours are, the client ends with a sentence."""
    node = alone(lambda _: created(a=0))
    elsewhere = MetadataResponseBroker(node_id=2, host=host, port=port)
    answer = metadata(2, {1: node})
    answer.brokers.append(elsewhere)
    node.answers[ApiKey.METADATA] = lambda _: answer

    async def test() -> None:
        # On a busy machine the time is over before the resolver of names has said that it is none.
        with pytest.raises(ClusterUnreachable, match=r"annot reach|does not answer within"):
            async with AdminClient.connect(config(node, seconds=1.0)) as admin:
                await admin.create_topics([NewTopic("a")])

    await with_nodes([node], test)


async def test_a_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """Control sequences and bidirectional marks in a topic's name are shown as escapes."""
    node = alone(None)
    hostile = MetadataResponseTopic(name="\x1b[2J\u202egnp\n")
    node.answers[ApiKey.METADATA] = lambda _: metadata(1, {1: node}, topics=[hostile])

    async def test() -> None:
        outcome = await ask_installed(node, "topics", "list", folder=tmp_path)
        assert outcome.stdout.splitlines()[1].split()[0] == r"\x1b[2J\u202egnp\n"
        assert "\x1b" not in (await ask_installed(node, "topics", "list", "--json", folder=tmp_path)).stdout

    await with_nodes([node], test)


async def test_an_interrupted_command_does_not_look_like_a_yes(tmp_path: Path) -> None:
    """Ctrl-C while a node is silent ends the command by the signal, not with code 0."""
    arrived = trio.Event()

    def keep_silent(_: object) -> Answer:
        arrived.set()
        return SILENCE

    node = alone(keep_silent)

    async def test() -> None:
        arguments = ["topics", "create", "a", "--bootstrap-server", str(node.address)]
        process = await trio.lowlevel.open_process([COMMAND, *arguments], cwd=tmp_path, env=environment())
        await arrived.wait()
        process.terminate()
        assert await process.wait() < 0

    await with_nodes([node], test)
