"""How requests are counted: by what stands first in an answer, and within a bound."""

from minicontroller.controller.observe.metrics import LOOKED_AT, RequestMetrics
from minicontroller.controller.requests.error_answers import ENTITIES
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from minicontroller.protocol.messages.list_groups import ListGroupsResponse
from minicontroller.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


def test_a_write_is_looked_through() -> None:
    """One refused topic among a thousand is the outcome of the request; without one it is NONE."""
    metrics = RequestMetrics(ENTITIES)
    rows = [CreatableTopicResult(name="x") for _ in range(1_000)]
    metrics.answered(ApiKey.CREATE_TOPICS, 7, CreateTopicsResponse(topics=rows), 0.1)
    rows[-1].error_code = 44
    metrics.answered(ApiKey.CREATE_TOPICS, 7, CreateTopicsResponse(topics=rows), 0.1)
    assert metrics.outcomes == {(19, 7, 0): 1, (19, 7, 44): 1}


def test_a_read_is_looked_at_within_a_bound() -> None:
    """Only the first rows of a very long answer, some of them encoded already, are looked at."""
    metrics = RequestMetrics(ENTITIES)
    gone = MetadataResponseTopic(error_code=3)
    early, late = [b"", gone], [*[b""] * LOOKED_AT, gone]
    for rows in (early, late):
        metrics.answered(ApiKey.METADATA, 12, MetadataResponse(topics=rows), 0.0)  # type: ignore[arg-type]
    assert metrics.outcomes == {(3, 12, 3): 1, (3, 12, 0): 1}


def test_buckets_hold_what_took_at_most_so_long() -> None:
    """A time on a bound counts below it, one above all bounds in the last bucket, and the sum is
    exact.
    """
    metrics = RequestMetrics(ENTITIES)
    for seconds in (0.000_1, 0.000_11, 1_000.0):
        metrics.answered(ApiKey.LIST_GROUPS, 4, ListGroupsResponse(error_code=15), seconds)
    latencies = metrics.latencies[ApiKey.LIST_GROUPS]
    assert (latencies.buckets[0], latencies.buckets[1], latencies.buckets[-1], sum(latencies.buckets)) == (1, 1, 1, 3)
    assert latencies.seconds == 1_000.000_21
