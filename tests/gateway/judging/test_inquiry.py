"""What a gateway asks its cluster in the name of a client, about what it does not see itself."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest
import trio

from minicontroller.admin.error_answers import error_answer, error_codes
from minicontroller.audit.event import Decision
from minicontroller.gateway.judging.forms import FORMS
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages import (
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    incremental_alter_configs,
    metadata,
)
from minicontroller.protocol.registry import KAFKA
from tests.gateway.judging.lagging import BROKERS, LaggingCluster
from tests.gateway.judging.test_races import Gateway
from tests.support.specs import APIS

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class RightlessCluster(LaggingCluster):
    """A cluster that keeps what clients without rights ask for, and refuses all of it."""

    def __init__(self) -> None:
        super().__init__(Random(1), 0.0)
        self.failing = 0.0
        self.asked: list[Any] = []
        self.described = ""
        """The name of a topic that clients may describe."""

    def carry_out(self, frame: bytes, _broker: int) -> bytes:
        header, request, _ = KAFKA.decode_request(frame)
        self.asked.append(request)
        code = REFUSED[header.api_key == ApiKey.ALTER_PARTITION_REASSIGNMENTS]
        answer = error_answer(APIS[ApiKey(header.api_key)], request, header.api_version, code=code)
        if isinstance(answer, metadata.MetadataResponse):
            for row in answer.topics:
                row.error_code = ErrorCode.NONE if row.name == self.described else code
        return KAFKA.encode_response(header.api_key, header.api_version, header.correlation_id, answer)[4:]


def _grown(names: list[str], count: int = 2) -> Any:
    return create_partitions.CreatePartitionsRequest(
        [create_partitions.CreatePartitionsTopic(name, count, None) for name in names]
    )


def _altered(names: list[str], value: str = "50") -> Any:
    configs = [alter_configs.AlterableConfig("retention.ms", value)]
    return alter_configs.AlterConfigsRequest([alter_configs.AlterConfigsResource(2, name, configs) for name in names])


def _set(names: list[str], value: str = "50") -> Any:
    configs = [incremental_alter_configs.IncrementalAlterableConfig("retention.ms", 0, value)]
    resources = [incremental_alter_configs.IncrementalAlterConfigsResource(2, name, configs) for name in names]
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources)


def _deleted(names: list[str]) -> Any:
    return delete_topics.DeleteTopicsRequest([delete_topics.DeleteTopicState(name) for name in names])


def _shortened(names: list[str]) -> Any:
    rows = [delete_records.DeleteRecordsPartition(index, 1) for index in (0, 7)]
    return delete_records.DeleteRecordsRequest([delete_records.DeleteRecordsTopic(name, rows) for name in names])


def _moved(names: list[str], replicas: Sequence[int] = (1,)) -> Any:
    rows = [alter_partition_reassignments.ReassignablePartition(index, list(replicas)) for index in (0, 7)]
    topics = [alter_partition_reassignments.ReassignableTopic(name, rows) for name in names]
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=topics)


REQUESTS: Mapping[ApiKey, Callable[[list[str]], Any]] = {
    ApiKey.CREATE_PARTITIONS: _grown,
    ApiKey.ALTER_CONFIGS: _altered,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _set,
    ApiKey.DELETE_TOPICS: _deleted,
    ApiKey.DELETE_RECORDS: _shortened,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _moved,
}


@pytest.mark.parametrize("key", REQUESTS, ids=lambda key: key.name)
async def test_who_has_no_rights_learns_of_no_topic(key: ApiKey, nursery: trio.Nursery, autojump_clock: object) -> None:
    """A client without rights is refused by the cluster's own code, whether a topic is there or
    not, alone or beside another, and each topic is recorded once.
    """
    cluster = RightlessCluster()
    cluster.put("there", cluster.made(1))
    gateway = Gateway(cluster, nursery)
    await gateway.begin()
    refused = REFUSED[key == ApiKey.ALTER_PARTITION_REASSIGNMENTS]
    for names in (["there"], ["missing"], ["missing", "there"], ["there", "missing", "other"]):
        cluster.asked.clear()
        gateway.log.events.clear()
        response = await gateway.ask(cluster, key, REQUESTS[key](names), BROKERS[0])
        await gateway.reviewer.wait_recorded()
        assert set(error_codes(FORMS[key].spec, response)) == {refused}
        assert cluster.asked.count(REQUESTS[key](["there"])) == names.count("there")
        told = [(each.name, each.error_code) for each in gateway.log.events if isinstance(each, Decision)]
        assert sorted(told) == sorted((name, refused) for name in names)


def _created(names: list[str]) -> Any:
    return create_topics.CreateTopicsRequest([create_topics.CreatableTopic(name, 1, 1) for name in names])


def _asked_for(names: list[str]) -> Any:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics, allow_auto_topic_creation=True)


AGAINST_A_RULE: Mapping[ApiKey, Callable[[list[str]], Any]] = {
    ApiKey.CREATE_TOPICS: _created,
    ApiKey.CREATE_PARTITIONS: partial(_grown, count=9),
    ApiKey.ALTER_CONFIGS: partial(_altered, value="5"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: partial(_set, value="5"),
    ApiKey.DELETE_TOPICS: _deleted,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: partial(_moved, replicas=[1, 2, 3]),
    ApiKey.METADATA: _asked_for,
}
"""Requests about topics that the rules refuse: `kept` must not be deleted, and `BAD` is no name."""


@pytest.mark.parametrize("key", AGAINST_A_RULE, ids=lambda key: key.name)
async def test_rules_tell_nobody_without_rights_of_a_topic(
    key: ApiKey, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """What a rule refuses is refused to a client without rights by the cluster's own code, whether
    the topic is there or not, and is recorded so; nothing but questions goes on.
    """
    cluster = RightlessCluster()
    gateway = Gateway(cluster, nursery)
    name = "kept" if key == ApiKey.DELETE_TOPICS else "BAD"
    request = AGAINST_A_RULE[key]([name])
    await gateway.begin()
    for topic in (None, cluster.made(1)):
        cluster.put(name, topic)
        cluster.asked.clear()
        response = await gateway.ask(cluster, key, request, BROKERS[0])
        await gateway.reviewer.wait_recorded()
        refused = REFUSED[key == ApiKey.ALTER_PARTITION_REASSIGNMENTS]
        assert set(error_codes(APIS[key], response)) == {refused}
        assert request not in cluster.asked
        told = [(each.name, each.error_code) for each in gateway.log.events if isinstance(each, Decision)]
        assert told[-1:] == [(name, refused)]


async def test_who_may_describe_learns_that_there_is_no_topic(nursery: trio.Nursery, autojump_clock: object) -> None:
    """Only a client that may describe a topic, and not delete it, is told by DeleteTopics that it
    does not exist.
    """
    cluster = RightlessCluster()
    cluster.described = "described"
    gateway = Gateway(cluster, nursery)
    await gateway.begin()
    response = await gateway.ask(cluster, ApiKey.DELETE_TOPICS, _deleted(["hidden", "described"]), BROKERS[0])
    assert [each.error_code for each in response.responses] == [REFUSED[0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("key", [key for key in REQUESTS if key != ApiKey.DELETE_RECORDS], ids=lambda key: key.name)
async def test_a_topic_that_is_there_unseen(key: ApiKey, nursery: trio.Nursery, autojump_clock: object) -> None:
    """What may be done with a topic that no broker shows yet is not done, also if the cluster would
    carry it out, and the client is asked to try again.
    """
    cluster = LaggingCluster(Random(1), 500.0)
    cluster.failing = 0.0
    cluster.stop_brokers()
    gateway = Gateway(cluster, nursery)
    await gateway.begin()
    cluster.put("new", cluster.made(1))
    response = await gateway.ask(cluster, key, REQUESTS[key](["new"]), BROKERS[0])
    assert set(error_codes(FORMS[key].spec, response)) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert cluster.deeds == []


@pytest.mark.parametrize("key", [ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.DELETE_RECORDS], ids=lambda key: key.name)
async def test_who_names_no_partition_is_answered_by_the_cluster(
    key: ApiKey, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A request that names no partition of a topic goes on, whether the topic is seen or not."""
    cluster = RightlessCluster()
    gateway = Gateway(cluster, nursery)
    await gateway.begin()
    request = REQUESTS[key](["missing"])
    (topic,) = request.topics
    request = msgspec.structs.replace(request, topics=[msgspec.structs.replace(topic, partitions=[])])
    await gateway.ask(cluster, key, request, BROKERS[0])
    assert cluster.asked == [request]


async def test_a_gateway_that_observes_asks_nothing(nursery: trio.Nursery, autojump_clock: object) -> None:
    """What it does not see goes on as it came, and nothing before it."""
    cluster = RightlessCluster()
    gateway = Gateway(cluster, nursery, enforces=False)
    await gateway.begin()
    requests = [make(["missing"]) for make in REQUESTS.values()]
    for key, request in zip(REQUESTS, requests, strict=True):
        await gateway.ask(cluster, key, request, BROKERS[0])
    assert cluster.asked == requests


async def test_what_is_named_twice_is_asked_twice(nursery: trio.Nursery, autojump_clock: object) -> None:
    """Of a topic that is named twice the cluster is asked so, because it may refuse that first; and
    who has no rights gets one row of DeleteRecords, as from Kafka.
    """
    cluster = RightlessCluster()
    gateway = Gateway(cluster, nursery)
    await gateway.begin()
    await gateway.ask(cluster, ApiKey.DELETE_TOPICS, _deleted(["missing", "other", "missing"]), BROKERS[0])
    assert [each.name for each in cluster.asked[0].topics] == ["no topic has this name twice"] * 2 + [
        "no topic has this name"
    ]
    response = await gateway.ask(cluster, ApiKey.DELETE_RECORDS, _shortened(["missing"] * 2), BROKERS[0])
    (row,) = response.topics
    assert [each.partition_index for each in row.partitions] == [0, 7]
