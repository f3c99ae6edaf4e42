"""A stand-in for CreateTopics, which records requests and answers as the test says."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import trio

from minicontroller.cluster.image import Image
from minicontroller.controller.node.node import Node
from minicontroller.network.serving.context import RequestContext
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.handlers.asking import READS, Client, node_with


class Creations:
    """Stands where CreateTopics is handled, and keeps what arrives there."""

    def __init__(self, answer: Callable[[str], int] = lambda _name: ErrorCode.REQUEST_TIMED_OUT) -> None:
        self.calls: list[tuple[RequestContext, CreateTopicsRequest]] = []
        self.gate = trio.Event()
        self.gate.set()
        self._answer = answer

    async def handle(self, _node: Node, context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        self.calls.append((context, request))
        await self.gate.wait()
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=each.name, error_code=self._answer(each.name)) for each in request.topics]
        )

    @property
    def names(self) -> list[list[str]]:
        return [[each.name for each in request.topics] for _, request in self.calls]


def ruling_node(seen: Image, settings: Mapping[str, str] | None = None) -> Node:
    """Return a node that is the controller itself, so that requests are not forwarded."""
    node = node_with(seen, settings)
    node.place.serve(cast("Any", object()))
    return node


def client_of(node: Node, creations: Creations, principal: str | None = None) -> Client:
    return Client(node, principal=principal, handlers={**READS, ApiKey.CREATE_TOPICS: creations.handle})
