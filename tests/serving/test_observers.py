"""The hook for each request and its response: a journal, and rules by which requests fail."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import trio

from minicontroller.clock import Clock
from minicontroller.cluster.errors import Refusal
from minicontroller.network.serving.context import RequestContext
from minicontroller.network.serving.observers import RequestObserver
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from minicontroller.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from minicontroller.protocol.schema import WireStruct
from tests.handlers.asking import Client, broker, image, led, node_with, topic

NODE = node_with(image([broker(1)], [topic("__consumer_offsets", led(1))]))
GROUPS = DescribeGroupsRequest(groups=["a", "b"])


class Journal(RequestObserver):
    def __init__(self) -> None:
        self.entries: list[tuple[str, str | None, Any]] = []

    def refused(self, ctx: RequestContext, request: Any, refusal: Refusal) -> None:
        self.entries.append((f"{type(request).__name__} refused", ctx.client_id, refusal.code))

    def failed(self, ctx: RequestContext, request: Any, error: Exception) -> None:
        self.entries.append((f"{type(request).__name__} failed", ctx.client_id, type(error)))

    def answered(self, ctx: RequestContext, request: Any, response: Any, now: float) -> None:
        assert 0 <= now - ctx.arrived < 60
        assert type(response).__name__ == type(request).__name__.replace("Request", "Response")
        self.entries.append((type(request).__name__, ctx.client_id, ctx.notes.first_error))


class Rule(RequestObserver):
    """Delays a request, answers it, or changes the answer."""

    def __init__(
        self,
        key: ApiKey,
        *,
        delay_seconds: float = 0.0,
        instead: Callable[[], WireStruct | None] = lambda: None,
        change: Callable[[Any], WireStruct] = lambda response: response,
    ) -> None:
        self._key, self._delay_seconds, self._instead, self._change = key, delay_seconds, instead, change

    async def before(self, ctx: RequestContext, request: Any) -> WireStruct | None:  # noqa: ARG002
        if ctx.spec.key is not self._key:
            return None
        await trio.sleep(self._delay_seconds)
        return self._instead()

    async def after(self, ctx: RequestContext, request: Any, response: WireStruct) -> WireStruct:  # noqa: ARG002
        return self._change(response) if ctx.spec.key is self._key else response


def refuse() -> None:
    raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def with_an_error(response: DescribeGroupsResponse) -> DescribeGroupsResponse:
    second = msgspec.structs.replace(response.groups[1], error_code=ErrorCode.NOT_COORDINATOR)
    return msgspec.structs.replace(response, groups=[response.groups[0], second])


async def test_a_journal_costs_no_task() -> None:
    """An observer that only looks sees each request with its response or refusal, in order, and
    reads are still answered at once.
    """
    journal = Journal()
    client = Client(NODE, observers=[journal])
    client.ask_at_once(ListGroupsRequest(), 4)
    topics = [CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
    changing = Client(NODE, handlers={ApiKey.CREATE_TOPICS: lambda *_: None}, observers=[journal])
    changing.ask_at_once(CreateTopicsRequest(topics=topics, timeout_ms=1), 7)
    broken = Client(NODE, handlers={ApiKey.LIST_GROUPS: lambda *_: 1 // 0}, observers=[journal])
    broken.ask_at_once(ListGroupsRequest(), 4)
    assert journal.entries == [
        ("ListGroupsRequest", "tests", 0),
        ("CreateTopicsRequest refused", "tests", ErrorCode.NOT_CONTROLLER),
        ("CreateTopicsRequest", "tests", ErrorCode.NOT_CONTROLLER),
        ("ListGroupsRequest failed", "tests", ZeroDivisionError),
        ("ListGroupsRequest refused", "tests", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("ListGroupsRequest", "tests", ErrorCode.UNKNOWN_SERVER_ERROR),
    ]


@pytest.mark.parametrize(
    ("rule", "codes"),
    [
        (Rule(ApiKey.METADATA, instead=refuse), [0, 0]),
        (Rule(ApiKey.DESCRIBE_GROUPS, instead=refuse), [14, 14]),
        (Rule(ApiKey.DESCRIBE_GROUPS, instead=DescribeGroupsResponse), []),
        (Rule(ApiKey.DESCRIBE_GROUPS, change=with_an_error), [0, 16]),
    ],
    ids=["of another API", "refused", "answered instead", "one row changed"],
)
async def test_a_rule_decides_the_answer(rule: Rule, codes: list[int]) -> None:
    """An observer that may wait refuses a request, answers it in the handler's place, or changes
    the answer, and what looks on sees what was sent.
    """
    journal = Journal()
    answer = await Client(NODE, observers=[rule, journal]).ask(GROUPS, 5)
    assert [row.error_code for row in answer.groups] == codes
    assert journal.entries[-1] == ("DescribeGroupsRequest", "tests", next(filter(None, codes), 0))


async def test_a_rule_delays_an_answer(clock: Clock) -> None:
    """The request waits by the clock of the event loop, and others do not."""
    client = Client(NODE, observers=[Rule(ApiKey.LIST_GROUPS, delay_seconds=3600)])
    answers = list[ListGroupsResponse]()

    async def ask() -> None:
        answers.append(await client.ask(ListGroupsRequest(), 4))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert len((await client.ask(GROUPS, 5)).groups) == 2
        assert not answers
        clock.advance(3600)
    assert len(answers) == 1
