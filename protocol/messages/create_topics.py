"""CreateTopics (19) creates topics, by counts or by a manual assignment."""

from typing import Annotated

from ..schema import ZERO_UUID, Int8, Int16, Int32, Uuid, WireStruct, ignorable, message, since, tagged


class CreatableTopicConfig(WireStruct):
    name: str = ""
    value: str | None = ""


class CreatableReplicaAssignment(WireStruct):
    partition_index: Int32 = 0
    broker_ids: list[Int32] = []


class CreatableTopic(WireStruct):
    name: str = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


@message(19, "request", versions=(0, 7), flexible=5)
class CreateTopicsRequest(WireStruct):
    topics: list[CreatableTopic] = []
    timeout_ms: Int32 = 60000
    validate_only: Annotated[bool, since(1)] = False


class CreatableTopicConfigs(WireStruct):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False


class CreatableTopicResult(WireStruct):
    name: str = ""
    topic_id: Annotated[Uuid, since(7), ignorable] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(1), ignorable] = ""
    topic_config_error_code: Annotated[Int16, since(5), tagged(0), ignorable] = 0
    num_partitions: Annotated[Int32, since(5), ignorable] = -1
    replication_factor: Annotated[Int16, since(5), ignorable] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5), ignorable] = []


@message(19, "response", versions=(0, 7), flexible=5)
class CreateTopicsResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: list[CreatableTopicResult] = []
