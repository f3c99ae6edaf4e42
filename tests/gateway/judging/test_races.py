"""One gateway and two, before a cluster whose brokers lag, answer in any order, and hold any age of
the truth: whatever clients ask for at once, nothing is carried out that the rules forbid about the
true state, and the audit log tells nothing that was not so.

`RACES=5000 pytest tests/gateway/judging/test_races.py` is the exhaustive run.
"""

import os
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.admin.policy.runner import PolicyRunner
from minicontroller.admin.recording.decisions import NodeDecisions, RecentDecisions
from minicontroller.admin.recording.log import AuditLog, AuditSettings
from minicontroller.admin.recording.recorder import AuditRecorder
from minicontroller.admin.recording.records import EventOrigin
from minicontroller.audit.event import AuditEvent, Decision, Effect, Observed, RecordedState
from minicontroller.client.network import Network
from minicontroller.gateway.judging.cluster_reader import NotKnownError
from minicontroller.gateway.judging.forms.delete_acls import MOST_ACLS, MOST_FILTERS
from minicontroller.gateway.judging.judge import Judge
from minicontroller.gateway.judging.mirror import Mirror
from minicontroller.gateway.judging.records import Records
from minicontroller.gateway.judging.review import Reviewer
from minicontroller.gateway.judging.turns import Turns
from minicontroller.policies.rules.ruleset import rules_of
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.protocol.acls import AclOperation, PermissionType
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.config_resources import ResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages import (
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
    metadata,
)
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.caller import Caller, Listener
from tests.gateway.judging.lagging import BROKERS, Deed, LaggingCluster, LaggingNetwork, Truth

RACES = int(os.environ.get("RACES", "25"))
MOST_PARTITIONS, MOST_REPLICAS, LEAST, MOST = 4, 2, 10, 99
POLICIES = ("delete", "compact")
RULES = f"""
[[name_pattern]]
pattern = '[a-z-]+'

[[partitions]]
max = {MOST_PARTITIONS}

[[replication]]
max = {MOST_REPLICAS}

[[config_bounds]]
configs = {{ "retention.ms" = {{ min = {LEAST}, max = {MOST}, absent = "allow" }} }}

[[config_bounds]]
configs = {{ "cleanup.policy" = {{ allowed = ["delete", "compact"] }} }}

[[protected_topics]]
topics = "kept"
operations = ["delete"]

[[protected_operations]]
operations = ["elect_leaders"]
election_types = ["preferred"]

[[protected_operations]]
operations = ["delete_acls"]
resources = "*:precious"
"""
NAMES = ("a", "kept", "BAD")


class KeptLog(AuditLog):
    """A log that keeps its events."""

    def __init__(self) -> None:
        settings = AuditSettings(
            folder=Path(),
            always=False,
            interval_seconds=1,
            refuses=True,
            max_bytes=1 << 30,
            max_seconds=3600,
            max_queue=1 << 20,
        )
        super().__init__(settings, cluster_id="log", node=0)
        self.events: list[AuditEvent] = []

    def append(self, _epoch: int, _sequence: int, line: bytes | Callable[[], AuditEvent]) -> int:
        self.events.append(msgspec.json.decode(line, type=AuditEvent) if isinstance(line, bytes) else line())
        return len(self.events)


class Gateway:
    """The part of a gateway that judges, in the process of the test."""

    def __init__(self, cluster: LaggingCluster, nursery: trio.Nursery, *, enforces: bool = True) -> None:
        self.log = KeptLog()
        config = NodeConfig({"broker.id": "0", "zookeeper.connect": "none"})
        turns = Turns()
        self.mirror = Mirror(cast(Network, LaggingNetwork(cluster)), config, is_busy=turns.is_about_topic)
        policy = PolicyRunner(rules=rules_of([(Path("rules.toml"), RULES.encode())]))
        self.judge = Judge(self.mirror, turns, policy, nursery, enforces=enforces, passes_on_failure=False)
        decisions = NodeDecisions(
            RecentDecisions(), broker_id=0, epoch=lambda: 1, counts=Counter(), would_be_refused=Counter()
        )
        records = Records(self.mirror, self.judge, decisions)
        self.reviewer = Reviewer(self.mirror, self.judge, records, nursery, answers_wait=False)

    async def begin(self) -> None:
        while self.mirror.age_seconds is None:
            try:
                await self.mirror.read()
            except NotKnownError:
                await trio.sleep(1)
        self.mirror.record(AuditRecorder(self.log, EventOrigin("log", 1, 0, "lagging")))

    async def follow(self) -> None:
        while True:
            await trio.sleep(0.7)
            try:
                await self.mirror.read()
            except NotKnownError:
                continue

    async def ask(self, cluster: LaggingCluster, key: ApiKey, request: Any, broker: int) -> Any:
        """Ask through the gateway, as a client that is connected to this broker."""
        version = KAFKA[key].max_version
        header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="client")
        frame = KAFKA.encode_request(header, request)[4:]
        review = None
        if self.reviewer.takes(key) and not self.reviewer.passes(frame):
            review = await self.reviewer.review(Caller(Listener(name="CLIENTS"), "127.0.0.1", 1), frame)
            if review is not None:
                await review.inquire(partial(cluster.inquired, broker))
        passed = frame if review is None else review.frame[4:]
        response = None
        if passed:
            await trio.sleep(cluster.random.choice([0.0, 0.002, 0.1]))
            response = cluster.carry_out(passed, broker)
            await trio.sleep(cluster.random.choice([0.0, 0.002, 0.1]))
        answer = response if review is None else (await review.answer(response))[4:]
        return KAFKA.decode_response(key, version, answer or b"")[1]


class Client:
    """Asks for good and bad changes at random, one after the other."""

    def __init__(self, cluster: LaggingCluster, gateways: list[Gateway]) -> None:
        self._cluster = cluster
        self._gateways = gateways
        self._random = cluster.random

    async def run(self, requests: int) -> None:
        for _ in range(requests):
            await trio.sleep(self._random.choice([0.0, 0.0, 0.01, 0.5, 3.0]))
            asks = [self._creation, self._deletion, self._growth, self._setting, self._setting, self._list]
            asks += [self._list, self._replacement, self._move, self._question, self._question]
            key, request = self._random.choice(asks)(self._random.choice(NAMES))
            gateway = self._random.choice(self._gateways)
            await gateway.ask(self._cluster, key, request, self._random.choice(BROKERS))

    def _retention(self) -> str:
        return str(self._random.choice([LEAST, 50, -1, -1, 5]))

    def _creation(self, name: str) -> tuple[ApiKey, Any]:
        configs = [create_topics.CreatableTopicConfig("retention.ms", self._retention())]
        wanted = create_topics.CreatableTopic(
            name,
            self._random.choice([1, 2, MOST_PARTITIONS, MOST_PARTITIONS + 1]),
            self._random.choice([1, 1, MOST_REPLICAS + 1]),
            [],
            configs if self._random.random() < 0.5 else [],
        )
        return ApiKey.CREATE_TOPICS, create_topics.CreateTopicsRequest([wanted])

    def _deletion(self, name: str) -> tuple[ApiKey, Any]:
        topic = self._cluster.now.get(name)
        wanted = delete_topics.DeleteTopicState(name)
        if topic is not None and self._random.random() < 0.5:
            wanted = delete_topics.DeleteTopicState(None, topic.topic_id)
        return ApiKey.DELETE_TOPICS, delete_topics.DeleteTopicsRequest([wanted])

    def _growth(self, name: str) -> tuple[ApiKey, Any]:
        count, topic = self._random.randint(1, MOST_PARTITIONS + 3), self._cluster.now.get(name)
        named = None  # or the replicas of as many as there are to be added in truth
        if topic is not None and self._random.random() < 0.5:
            more = max(0, count - len(topic.rows))
            named = [create_partitions.CreatePartitionsAssignment(list(topic.rows[0]))] * more
        wanted = create_partitions.CreatePartitionsTopic(name, count, named)
        return ApiKey.CREATE_PARTITIONS, create_partitions.CreatePartitionsRequest([wanted])

    def _setting(self, name: str) -> tuple[ApiKey, Any]:
        return self._incremental(name, "retention.ms", self._random.choice([0, 0, 1]), self._retention())

    def _list(self, name: str) -> tuple[ApiKey, Any]:
        value = self._random.choice(["compact", "delete"])
        return self._incremental(name, "cleanup.policy", self._random.choice([0, 2, 3]), value)

    def _incremental(self, name: str, key: str, operation: int, value: str) -> tuple[ApiKey, Any]:
        config = incremental_alter_configs.IncrementalAlterableConfig(key, operation, None if operation == 1 else value)
        resource = incremental_alter_configs.IncrementalAlterConfigsResource(2, name, [config])
        return (
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            incremental_alter_configs.IncrementalAlterConfigsRequest([resource]),
        )

    def _replacement(self, name: str) -> tuple[ApiKey, Any]:
        config = alter_configs.AlterableConfig("retention.ms", self._retention())
        resource = alter_configs.AlterConfigsResource(2, name, [config])
        return ApiKey.ALTER_CONFIGS, alter_configs.AlterConfigsRequest([resource])

    def _move(self, name: str) -> tuple[ApiKey, Any]:
        replicas = self._random.choice([[1], [2, 1], [1, 2, 3]])
        row = alter_partition_reassignments.ReassignablePartition(self._random.randint(0, 2), replicas)
        topic = alter_partition_reassignments.ReassignableTopic(name, [row])
        return (
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[topic]),
        )

    def _question(self, name: str) -> tuple[ApiKey, Any]:
        names = {name, self._random.choice(NAMES)}
        topics = [metadata.MetadataRequestTopic(name=each) for each in sorted(names)]
        return ApiKey.METADATA, metadata.MetadataRequest(topics, allow_auto_topic_creation=True)


async def others(cluster: LaggingCluster, times: int) -> None:
    """Change topics past the gateways, also to what the rules forbid."""
    for _ in range(times):
        await trio.sleep(cluster.random.choice([0.0, 0.5, cluster.random.uniform(0, 4)]))
        name = cluster.random.choice(NAMES)
        bad, topic = {"retention.ms": "-1", "cleanup.policy": "compact"}, cluster.now.get(name)
        if topic is None:
            topic = cluster.made(cluster.random.choice([1, 9]), cluster.random.choice([1, 3]), bad)
        else:
            topic = cluster.random.choice([None, msgspec.structs.replace(topic, configs=())])
        cluster.put(name, topic)


def _id(topic_id: bytes) -> str:
    """An id as the audit log writes it."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def _is(told: RecordedState, topic: Truth) -> bool:
    return (
        told.topic_id == _id(topic.topic_id)
        and tuple(map(tuple, told.replicas)) == topic.rows
        and dict(told.configs) == dict(topic.configs)
    )


def violations(deed: Deed) -> Iterator[str]:
    """What the rules say about a change, by the true state before it."""
    before, after = deed.before, deed.after
    if after is None:
        if deed.name == "kept":
            yield "a protected topic is deleted"
        return
    if before is None or before.topic_id != after.topic_id:
        before = Truth(b"", ())
        if deed.name != deed.name.lower():
            yield "the name of a new topic"
    if len(after.rows) > MOST_PARTITIONS and len(after.rows) != len(before.rows):
        yield f"{len(after.rows)} partitions"
    for index, row in enumerate(after.rows):
        is_as_others = (
            bool(before.rows) and index >= len(before.rows) and row == before.rows[0]
        )  # as the cluster has it
        is_old = index < len(before.rows) and before.rows[index] == row
        if len(row) > MOST_REPLICAS and not is_old and not is_as_others:
            yield f"{len(row)} replicas"
    held, configs = dict(before.configs), dict(after.configs)
    for key, value in configs.items():
        is_good = LEAST <= int(value) <= MOST if key == "retention.ms" else value in POLICIES
        if held.get(key) != value and not is_good:
            yield f"{key} {value}"


def untruths(log: KeptLog, cluster: LaggingCluster) -> Iterator[str]:
    """What a log tells that was never so."""
    was = {(name, topic) for state in cluster.states for name, topic in state.items()}
    for event in log.events:
        if isinstance(event, Decision) and event.policy is None and not event.error_code:
            yield f"passed without a verdict: {event.api} {event.name}: {event.unjudged}"
        if (
            isinstance(event, Decision)
            and event.effect is Effect.APPLIED
            and event.api != "Metadata"  # others may have created its topic
            and event.name not in cluster.done
        ):
            yield f"{event.api} of {event.name} was not carried out"
        if not isinstance(event, Observed) or event.after is None:
            continue
        told = event.after
        if event.before and event.before.topic_id == told.topic_id and len(event.before.replicas) > len(told.replicas):
            yield f"partitions of {event.topic} became fewer"
        if not any(event.topic == each and _is(told, topic) for each, topic in was):
            yield f"{event.topic} never was {told}"
    ids = {_id(topic.topic_id) for topic in cluster.now.values()}
    for event in log.events:
        if isinstance(event, Observed) and event.after is None and event.before and event.before.topic_id in ids:
            yield f"{event.topic} is there, but the log says that it is gone"


async def race(cluster: LaggingCluster, gateways: int, clients: int, requests: int) -> list[str]:
    """Let clients race, and return what was wrong."""
    async with trio.open_nursery() as nursery:
        all_gateways = [Gateway(cluster, nursery) for _ in range(gateways)]
        for gateway in all_gateways:
            await gateway.begin()
            nursery.start_soon(gateway.follow)
        async with trio.open_nursery() as racing:
            racing.start_soon(others, cluster, 3)
            for _ in range(clients):
                racing.start_soon(Client(cluster, all_gateways).run, requests)
        for gateway in all_gateways:
            await gateway.reviewer.wait_recorded()
        nursery.cancel_scope.cancel()
    wrong = [f"{text}: {deed}" for deed in cluster.deeds for text in violations(deed)]
    if cluster.is_soon:
        wrong += [text for gateway in all_gateways for text in untruths(gateway.log, cluster)]
    return wrong


def raced(random: Random) -> list[str]:
    """Return what was wrong in one race."""
    cluster = LaggingCluster(random, random.choice([0.5, 4.0, 500.0]))
    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(race, cluster, random.choice([1, 2]), 3, 8, clock=clock)


@settings(max_examples=RACES, deadline=None)
@given(random=st.randoms(use_true_random=True))
def test_nothing_passes_a_rule(random: Random) -> None:
    """Nothing is carried out against the rules, with any number of gateways and whatever the age of
    what brokers show; and where they are not very late, the logs tell nothing that was not so.
    """
    assert raced(random) == []


async def test_replicas_are_named_for_another_number_of_partitions(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    """CreatePartitions names replicas for fewer partitions than what was seen lacks, because others
    have added some: it does not go past the limit on the number of partitions.
    """
    cluster, gateway = await at_rest(nursery)
    cluster.put("a", msgspec.structs.replace(cluster.now["a"], rows=((1,),) * MOST_PARTITIONS))
    named = [create_partitions.CreatePartitionsAssignment([1])] * 2
    wanted = create_partitions.CreatePartitionsTopic("a", MOST_PARTITIONS + 2, named)
    asked = create_partitions.CreatePartitionsRequest([wanted])
    response = await gateway.ask(cluster, ApiKey.CREATE_PARTITIONS, asked, BROKERS[0])
    assert response.results[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # which clients try again
    assert cluster.deeds == []


async def test_an_election_of_everything_is_one_of_what_was_judged(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    """An election of everything leaves a topic alone that the gateway did not see."""
    cluster, gateway = await at_rest(nursery)
    cluster.put("b", cluster.made(1))
    everything = elect_leaders.ElectLeadersRequest(elect_leaders.ElectionType.UNCLEAN, topic_partitions=None)
    response = await gateway.ask(cluster, ApiKey.ELECT_LEADERS, everything, BROKERS[0])
    assert [row.topic for row in response.replica_election_results] == ["a"]
    assert cluster.done == {"a"}
    everything = elect_leaders.ElectLeadersRequest(elect_leaders.ElectionType.PREFERRED, topic_partitions=None)
    response = await gateway.ask(cluster, ApiKey.ELECT_LEADERS, everything, BROKERS[0])
    (row,) = response.replica_election_results
    assert row.partition_result[0].error_code == ErrorCode.POLICY_VIOLATION


async def test_acls_are_deleted_that_were_judged(nursery: trio.Nursery, autojump_clock: object) -> None:
    """DeleteAcls leaves ACLs alone that its filters match and that the gateway did not see, and
    answers for each filter.
    """
    cluster, gateway = await at_rest(nursery)
    seen, other, unseen = (acl(name) for name in ("a", "b", "precious"))
    cluster.acls, cluster.shown_acls = [seen, other, unseen], [seen, other]
    filters = [
        delete_acls.DeleteAclsFilter(ResourceType.TOPIC, name, 1, None, None, 1, 1) for name in ("a", "precious", None)
    ]
    asked = delete_acls.DeleteAclsRequest(filters)
    response = await gateway.ask(cluster, ApiKey.DELETE_ACLS, asked, BROKERS[0])
    assert [row.matching_acls for row in response.filter_results] == [[seen], [], [other]]
    assert cluster.acls == [unseen]
    cluster.shown_acls = cluster.acls
    response = await gateway.ask(cluster, ApiKey.DELETE_ACLS, asked, BROKERS[0])
    assert [row.error_code for row in response.filter_results] == [ErrorCode.POLICY_VIOLATION] * 3
    assert cluster.acls == [unseen]


async def test_how_much_there_is_is_told_to_nobody_without_rights(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Where a request means more than the gateway judges, or names everything, a client without
    rights gets the refusal of the cluster, and no more rows than there.
    """
    cluster, gateway = await at_rest(nursery)
    cluster.acls = cluster.shown_acls = [acl(f"a{number}") for number in range(MOST_ACLS + 1)]
    everything = delete_acls.DeleteAclsFilter(ResourceType.TOPIC, None, 1, None, None, 1, 1)
    election = elect_leaders.ElectLeadersRequest(elect_leaders.ElectionType.UNCLEAN, topic_partitions=None)
    for grants, code in ((True, ErrorCode.INVALID_REQUEST), (False, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)):
        cluster.grants = grants
        for filters in ([everything], [everything] * (MOST_FILTERS + 1)):
            asked = delete_acls.DeleteAclsRequest(filters)
            response = await gateway.ask(cluster, ApiKey.DELETE_ACLS, asked, BROKERS[0])
            assert [row.error_code for row in response.filter_results] == [code] * len(filters)
        told = await gateway.ask(cluster, ApiKey.ELECT_LEADERS, election, BROKERS[0])
        assert bool(told.replica_election_results) is grants
        forbidden = msgspec.structs.replace(election, election_type=elect_leaders.ElectionType.PREFERRED)
        told = await gateway.ask(cluster, ApiKey.ELECT_LEADERS, forbidden, BROKERS[0])
        assert bool(told.replica_election_results) is grants
    assert len(cluster.acls) == MOST_ACLS + 1


async def test_who_observes_passes_what_stands_for_too_much(nursery: trio.Nursery, autojump_clock: object) -> None:
    """The client's own request goes on, and counts as one that nobody judged."""
    cluster, _ = await at_rest(nursery)
    gateway = Gateway(cluster, nursery, enforces=False)
    cluster.acls = cluster.shown_acls = [acl(f"a{number}") for number in range(MOST_ACLS + 1)]
    everything = delete_acls.DeleteAclsFilter(ResourceType.TOPIC, None, 1, None, None, 1, 1)
    asked = delete_acls.DeleteAclsRequest([everything])
    response = await gateway.ask(cluster, ApiKey.DELETE_ACLS, asked, BROKERS[0])
    assert len(response.filter_results[0].matching_acls) == MOST_ACLS + 1
    assert (cluster.acls, gateway.judge.failures) == ([], 1)


async def test_what_is_refused_keeps_nobody_waiting(nursery: trio.Nursery, autojump_clock: object) -> None:
    """A request that goes no further leaves its line before the cluster is asked how to refuse it,
    which a broker may hold up for long.
    """
    cluster, gateway = await at_rest(nursery)
    asked = create_partitions.CreatePartitionsRequest([create_partitions.CreatePartitionsTopic("gone", 2, None)])
    header = RequestHeader(api_key=ApiKey.CREATE_PARTITIONS, api_version=3, correlation_id=1, client_id="client")
    frame = KAFKA.encode_request(header, asked)[4:]
    caller = Caller(Listener(name="CLIENTS"), "127.0.0.1", 1)
    with trio.fail_after(5):
        reviews = [await gateway.reviewer.review(caller, frame) for _ in range(2)]
    assert cluster.deeds == []
    for review in reviews:
        assert review is not None
        review.abandon()


def acl(name: str) -> delete_acls.DeleteAclsMatchingAcl:
    return delete_acls.DeleteAclsMatchingAcl(
        0, None, ResourceType.TOPIC, name, 3, "User:x", "*", AclOperation.READ, PermissionType.ALLOW
    )


async def at_rest(nursery: trio.Nursery) -> tuple[LaggingCluster, Gateway]:
    """Return a cluster whose brokers go on to show one topic alone, and a gateway that sees it."""
    cluster = LaggingCluster(Random(0), most_seconds=500.0)
    cluster.failing = 0
    cluster.put("a", cluster.made(1))
    gateway = Gateway(cluster, nursery)
    while "a" not in gateway.mirror.image.topics:
        await gateway.mirror.read()
    cluster.stop_brokers()
    return cluster, gateway
