"""DeleteTopics (20) deletes topics, by name or, from version 6, by id."""

from typing import Annotated

from ..schema import ZERO_UUID, Int16, Int32, Uuid, WireStruct, ignorable, message, nullable_since, since, until


class DeleteTopicState(WireStruct):
    name: str | None = None
    topic_id: Uuid = ZERO_UUID


@message(20, "request", versions=(0, 6), flexible=4)
class DeleteTopicsRequest(WireStruct):
    topics: Annotated[list[DeleteTopicState], since(6)] = []
    topic_names: Annotated[list[str], until(5), ignorable] = []
    timeout_ms: Int32 = 0


class DeletableTopicResult(WireStruct):
    name: Annotated[str | None, nullable_since(6)] = ""
    topic_id: Annotated[Uuid, since(6), ignorable] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(5), ignorable] = None


@message(20, "response", versions=(0, 6), flexible=4)
class DeleteTopicsResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    responses: list[DeletableTopicResult] = []
