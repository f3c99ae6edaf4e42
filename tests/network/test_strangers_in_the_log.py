"""Clients can write only a bounded amount to the log, however often they connect and whatever they
send.
"""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing

from minicontroller.audit.event import REDACTED
from minicontroller.network.serving.context import RequestContext, Routes
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.network.serving.request_log import (
    MAX_CHARACTERS,
    MAX_TRACE,
    MAX_VALUES,
    describe_request,
    describe_unexpected_error,
)
from minicontroller.process.observe.logs import CLIENT_LINES, FORMATTERS, SELDOM_SECONDS, ClientWarnings
from minicontroller.process.observe.secrets import MAX_PARTS
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.caller import Caller
from tests.support.small_server import CLIENTS, serving
from tests.support.specs import APIS

LONG = "\u202e" * 10_900
MAX_LINE = 5_000
"""Bytes: some hundred characters of each text, six bytes for one that is escaped."""
LOG = logging.getLogger("tests.strangers")


class Counted(list[Any]):
    """An array of a request that counts how many of its elements were looked at."""

    looked_at = 0

    def __iter__(self) -> Iterator[Any]:
        for element in super().__iter__():
            self.looked_at += 1
            yield element


def context(**said: Any) -> RequestContext:
    origin = RequestOrigin(said.pop("principal", None), "127.0.0.1", 7)
    return RequestContext(
        spec=APIS[ApiKey.CREATE_TOPICS],
        header=RequestHeader(ApiKey.CREATE_TOPICS, 7, 1, said.pop("client_id", "c")),
        caller=Caller(CLIENTS, "127.0.0.1", 1),
        dispatcher=Dispatcher(Routes(())),
        **{"origin": origin, **said},
    )


def lines(caplog: pytest.LogCaptureFixture, text: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if text in record.getMessage()]


STRANGE = {
    "is not a node of this cluster": KAFKA.encode_request(
        RequestHeader(7, 1, 1, LONG), ControlledShutdownRequest(broker_id=1)
    ),
    "forwards a request in the name of": KAFKA.encode_request(
        RequestHeader(3, 12, 1, LONG, origin=RequestOrigin(f"User:{LONG}")), MetadataRequest(topics=[])
    ),
}


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize("format_name", FORMATTERS)
async def test_long_client_ids_and_principals_are_cut(
    format_name: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Client ids and principals of 32 KB are cut in every log line, in both formats."""
    async with serving() as served, await served.connect() as client:
        await client.send(STRANGE[text])
        await client.frame()
    (record,) = lines(caplog, text)
    assert len(FORMATTERS[format_name]().format(record)) < MAX_LINE


@pytest.mark.parametrize(
    ("text", "sent"),
    [("closing", b"\0\0\0\0"), ("is not a node of this cluster", STRANGE["is not a node of this cluster"])],
)
async def test_who_comes_again_and_again_has_few_lines(
    text: str, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Lines that many connections cause are logged up to a limit, and all of them are counted."""
    async with serving() as served:
        for _ in range(CLIENT_LINES + 5):
            async with await served.connect() as client:
                await client.send(sent)
                await client.stream.receive_some()
        failures, counters = served.server.failures, served.dispatcher.counters
    assert len(lines(caplog, text)) == CLIENT_LINES
    assert failures.protocol_errors + counters.forged_node_requests == CLIENT_LINES + 5


async def test_what_was_left_out_is_told(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    """Each kind of line has its own measure a minute, and the first line of the next minute says
    how many were left out.
    """
    warnings = ClientWarnings()
    for number in range(CLIENT_LINES + 7):
        warnings.say(LOG, "number %d", number)
    warnings.say(LOG, "something else")
    await trio.sleep(SELDOM_SECONDS)
    warnings.say(LOG, "number %d", 99)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        *(f"number {number}" for number in range(CLIENT_LINES)),
        "something else",
        "number 99 (7 more were left out)",
    ]


def test_no_more_of_a_request_is_looked_at_than_is_told() -> None:
    """A log line about a huge request looks at no more elements than it shows."""
    names = Counted(MetadataRequestTopic(name="\0" * 32_000) for _ in range(10_000))
    text = describe_request(context(client_id=LONG, principal=f"User:{LONG}"), MetadataRequest(topics=names))
    assert len(text) < MAX_CHARACTERS + 4_000
    assert names.looked_at <= 2
    describe_unexpected_error(ValueError("why"), MetadataRequest(topics=names))
    assert names.looked_at <= MAX_VALUES


def raised(text: str) -> Exception:
    try:
        try:
            raise KeyError(text)
        except KeyError as inner:
            raise ValueError(text) from inner
    except ValueError as error:
        return error


@pytest.mark.parametrize("count", [MAX_PARTS + 1, MAX_VALUES, 20_000])
def test_too_many_secrets_to_look_for_hide_what_was_said(count: int) -> None:
    """If a request has too many secrets to search for, the log has an exception's type and place
    without its text.
    """
    topic = CreatableTopic(
        name="t", configs=[CreatableTopicConfig(name="k", value=f"secret-{number}") for number in range(count)]
    )
    text = describe_unexpected_error(raised(f"no secret-{count - 1}"), CreateTopicsRequest(topics=[topic]))
    assert "secret-" not in text
    assert text.count(REDACTED) == 2
    assert "in raised" in text
    assert text.index("ValueError") < text.index("KeyError")


def test_the_same_secret_many_times_is_one() -> None:
    """Many elements with one value are not many secrets."""
    configs = [CreatableTopicConfig(name="k", value="hunter2") for _ in range(MAX_PARTS + 50)]
    configs.append(CreatableTopicConfig(name="k", value="swordfish"))
    text = describe_unexpected_error(raised("swordfish"), CreateTopicsRequest(topics=[CreatableTopic(configs=configs)]))
    assert f"ValueError: {REDACTED}" in text
    assert "swordfish" not in text


def test_a_huge_exception_text_is_cut() -> None:
    """The log has no more than the beginning of a huge exception text."""
    text = describe_unexpected_error(raised("x" * MAX_TRACE), MetadataRequest(topics=None))
    assert len(text) < MAX_TRACE
    assert "ValueError" in text
