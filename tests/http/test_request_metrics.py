"""How requests are counted: by what stands first in an answer, and within a bound."""

import pytest

from minicontroller.admin.error_answers import first_error
from minicontroller.network.serving.context import AnswerNotes, RequestContext, Routes
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.network.serving.request_metrics import RequestMetrics
from minicontroller.process.observe.metrics import LatencyHistogram
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from minicontroller.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from minicontroller.security.caller import Caller, Listener
from tests.support.specs import APIS


def test_a_write_is_looked_through() -> None:
    """One refused topic among a thousand is the outcome of the request; without one it is NONE."""
    rows = [CreatableTopicResult(name="x") for _ in range(1_000)]
    response = CreateTopicsResponse(topics=rows)
    assert first_error(APIS[ApiKey.CREATE_TOPICS], response) == ErrorCode.NONE
    rows[-1].error_code = 44
    assert first_error(APIS[ApiKey.CREATE_TOPICS], response) == 44


def test_a_read_is_looked_through() -> None:
    """The first error of a read counts, however many rows stand before it, encoded or not."""
    found, gone = MetadataResponseTopic(), MetadataResponseTopic(error_code=3)
    for rows in ([b"", gone], [*[b""] * 1_000, gone], [*[found] * 1_000, gone]):
        response = MetadataResponse(topics=rows)  # type: ignore[arg-type]
        assert first_error(APIS[ApiKey.METADATA], response) == 3
    assert first_error(APIS[ApiKey.METADATA], MetadataResponse(topics=[found] * 1_000)) == 0


def test_requests_are_counted_by_their_outcome() -> None:
    """Each pair of API and version has its own counts."""
    metrics = RequestMetrics()
    for version, code in ((7, 0), (7, 0), (6, 44)):
        context = RequestContext(
            spec=APIS[ApiKey.CREATE_TOPICS],
            header=RequestHeader(ApiKey.CREATE_TOPICS, version, 1, "client"),
            origin=RequestOrigin(None, "host"),
            notes=AnswerNotes(first_error=code),
            caller=Caller(Listener(name="L"), "host", 50_000),
            dispatcher=Dispatcher(Routes(())),
        )
        metrics.answered(context, None, None, 0.1)
    assert metrics.outcomes == {(19, 7, 0): 2, (19, 6, 44): 1}
    assert metrics.latencies[ApiKey.CREATE_TOPICS].seconds == pytest.approx(0.3)


def test_buckets_hold_what_took_at_most_so_long() -> None:
    """A time on a bound counts below it, one above all bounds in the last bucket, and the sum is
    exact.
    """
    latencies = LatencyHistogram()
    for seconds in (0.000_1, 0.000_11, 1_000.0):
        latencies.observe(seconds)
    assert (latencies.buckets[0], latencies.buckets[1], latencies.buckets[-1], sum(latencies.buckets)) == (1, 1, 1, 3)
    assert latencies.seconds == 1_000.000_21
