"""Counts the requests of a node by API, version and outcome, and how long their responses took.

Rule: as in `process/observe/metrics.py`, counting costs a dictionary entry or a list element.
"""

from collections import Counter
from typing import Any

from ...process.observe.metrics import LatencyHistogram
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from .context import RequestContext
from .observers import RequestObserver

NEWER_THAN_OURS = -1
"""The label for all unknown versions of ApiVersions (KIP-511), which clients choose."""


class RequestMetrics(RequestObserver):
    __slots__ = ("latencies", "outcomes", "throttled_requests", "throttled_seconds")

    def __init__(self) -> None:
        self.outcomes: dict[tuple[int, int, int], int] = {}
        """Counts by API, version and error code."""
        self.latencies: dict[int, LatencyHistogram] = {}
        """Durations by API, from the arrival of the frame until its response is encoded."""
        self.throttled_requests: Counter[int] = Counter()
        """Counts by API of requests whose clients had to wait afterwards, because of a quota."""
        self.throttled_seconds: dict[int, float] = {}
        """The time by API for which they had to wait."""

    def answered(self, ctx: RequestContext, request: Any, response: Any, now: float) -> None:  # noqa: ARG002
        api_key, outcomes = ctx.spec.key, self.outcomes
        key = (api_key, ctx.header.api_version, ctx.notes.first_error)
        try:
            outcomes[key] += 1
        except KeyError:
            outcomes[key] = 1
        latencies = self.latencies.get(api_key)
        if latencies is None:
            latencies = self.latencies[api_key] = LatencyHistogram()
        latencies.observe(now - ctx.arrived)
        if ctx.notes.throttle_ms and not ctx.forwarded:  # else the node that forwarded the request counts it
            self.throttled_requests[api_key] += 1
            self.throttled_seconds[api_key] = self.throttled_seconds.get(api_key, 0.0) + ctx.notes.throttle_ms / 1000

    def refused_version(self) -> None:
        """Count an ApiVersions request of an unknown version, which is answered in version 0."""
        key = (int(ApiKey.API_VERSIONS), NEWER_THAN_OURS, int(ErrorCode.UNSUPPORTED_VERSION))
        self.outcomes[key] = self.outcomes.get(key, 0) + 1
