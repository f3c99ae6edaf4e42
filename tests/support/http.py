"""Requests to the HTTP port by the standard library's client."""

import http.client
import json
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from tests.support.cluster import MiniCluster
from tests.support.waiting import until
from tests.support.wire import Wire


class Answer:
    """The response to one HTTP request."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def ask(cluster: MiniCluster, path: str, *, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
    connection = http.client.HTTPConnection(address_of(cluster)[0], address_of(cluster)[1], timeout=30)
    try:
        connection.request(method, path, headers=headers or {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def address_of(cluster: MiniCluster) -> tuple[str, int]:
    parts = urlsplit(cluster.http)
    assert parts.hostname and parts.port
    return parts.hostname, parts.port


def create(cluster: MiniCluster, *names: str, partitions: int = 1) -> list[int]:
    """By any node; the error codes."""
    topics = [{"name": name, "num_partitions": partitions, "replication_factor": 1} for name in names]
    with Wire(cluster.bootstrap.split(",")[0]) as wire:
        answer = wire.ask("CreateTopics", 5, {"topics": topics, "timeout_ms": 60_000})
    return [row["error_code"] for row in answer["topics"]]


def history(cluster: MiniCluster, name: str = "", **more: object) -> Any:
    """Return the decisions about a topic, or all decisions."""
    query = "".join(f"&{key}={quote(str(value))}" for key, value in more.items())
    return ask(cluster, f"/api/history?name={quote(name)}{query}").json


def told(page: Any) -> list[str]:
    """Each entry of a history in a word."""
    return [entry.get("outcome") or entry["event"] for entry in page["entries"]]


def delete(cluster: MiniCluster, name: str) -> None:
    """Until its clean-up is complete and in the audit log."""
    with Wire(cluster.bootstrap.split(",")[0]) as wire:
        wire.ask("DeleteTopics", 5, {"topic_names": [name], "timeout_ms": 30_000})
    until(partial(history, cluster, name), right=lambda page: "removal" in told(page))
