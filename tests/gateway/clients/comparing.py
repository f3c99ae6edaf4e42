"""Has clients do the same directly and through the gateway, and compares what they saw and what
they left behind.

What they leave behind is read from the cluster itself. Names are told apart by the way, which is
taken out of everything before it is compared. A step that is called `refused` asks for something
that the gateway's policy refuses; it is told by itself.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from tests.gateway.clients import java, scripts
from tests.gateway.clients.every_request import by_every_request, by_newest_requests
from tests.gateway.clients.tools import by_tools
from tests.gateway.clients.worlds import (
    ADMIN,
    ALICE,
    DIRECT,
    FORBIDDEN,
    GATEWAY,
    IDENTITIES,
    MALLORY,
    NAMES,
    PASS,
    SHARE,
    USERS,
    WAYS,
    Access,
    World,
)
from tests.support.kafka import KAFKA_VERSION
from tests.support.kafka_kraft import KAFKAS, NEWEST_VERSION, Kafka
from tests.support.programs import run_go, run_javascript
from tests.support.waiting import at_last

REFUSED = "refused = "
REQUEST = re.compile(r"Request\(processor=.*")
"""A request as Kafka's controller shows it in an error, with its memory and connection."""
KNOWN = ("quorum = ClusterAuthorizationException",)
"""The steps whose lines differ, and why: DescribeQuorum 2 is hidden by the gateway, and version 1
has no text for an error.
"""
KNOWN_OF_OWN_LOGINS = (*KNOWN, "kafka-delegation-tokens ")
"""The steps whose lines differ at a gateway that authenticates clients itself, which hides
delegation tokens, too.
"""
SETTLE_SECONDS = 20.0  # what was deleted may still be shown
Script = Callable[[Sequence[Access]], list[list[str]]]


def each_by_itself(script: Callable[[Access], list[str]]) -> Script:
    """Return a script that goes all ways at once."""

    def both(accesses: Sequence[Access]) -> list[list[str]]:
        with ThreadPoolExecutor() as pool:
            return list(pool.map(script, accesses))

    return both


@dataclass(frozen=True)
class Client:
    """A client's script, and the users as whom it goes."""

    script: Script
    users: tuple[str, ...]
    kafkas: tuple[Kafka, ...] = KAFKAS
    """The Kafkas that have what it asks for."""
    identities: tuple[str, ...] = IDENTITIES
    """The identities of the gateways that it goes through."""
    records_count: bool = True
    """Whether it writes as many records on each way: markers of transactions are records, too."""


OLD, NEW = KAFKA_VERSION, NEWEST_VERSION
"""The versions of the clients that come with Kafka."""

CLIENTS: Mapping[str, Client] = {
    "librdkafka": Client(each_by_itself(scripts.by_confluent_kafka), (ADMIN, ALICE)),
    "librdkafka without rights": Client(each_by_itself(scripts.by_confluent_kafka_without_rights), (MALLORY,)),
    "kafka-python": Client(each_by_itself(scripts.by_kafka_python), (ALICE,)),
    "aiokafka": Client(each_by_itself(scripts.by_aiokafka), (ALICE,)),
    "franz-go": Client(each_by_itself(lambda access: run_go(access.program()).splitlines()), (ALICE,)),
    "kafkajs": Client(each_by_itself(lambda access: run_javascript(access.program()).splitlines()), (ALICE,)),
    f"Java {OLD}": Client(partial(java.clients_of, version=OLD), (ADMIN, ALICE), identities=(PASS,)),
    f"Java {NEW}": Client(partial(java.clients_of, version=NEW), (ADMIN, ALICE)),
    f"Kafka Streams {NEW}": Client(partial(java.streams_of, version=NEW), (ALICE,), records_count=False),
    f"Java {NEW}, share groups": Client(partial(java.share_groups_of, version=NEW), (ALICE,), SHARE),
    f"kafka-*.sh {OLD}": Client(partial(by_tools, version=OLD), (ADMIN, ALICE), identities=(PASS,)),
    f"kafka-*.sh {NEW}": Client(partial(by_tools, version=NEW), (ADMIN, ALICE)),
    "requests in every version": Client(each_by_itself(by_every_request), USERS, identities=(PASS,)),
    "requests in the newest version": Client(each_by_itself(by_newest_requests), USERS, identities=(PASS,)),
}


@dataclass
class Outcome:
    """Holds what a client was answered and what it left behind, on each way."""

    client: str
    user: str
    seen: dict[str, list[str]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """The text about the topic that the gateway refuses, on each way."""
    left: dict[str, list[str]] = field(default_factory=dict)

    @property
    def differences(self) -> list[str]:
        """Return the lines of one way that the other does not have."""
        found = []
        for lines in (self.seen, self.left):
            one, other = (lines[way] for way in WAYS)
            found += [f"{WAYS[0]}: {line}" for line in one if line not in other]
            found += [f"{WAYS[1]}: {line}" for line in other if line not in one]
        return found


def compare(world: World, client: str, user: str) -> Outcome:
    """Have a client go both ways at once."""
    outcome = Outcome(client, user)
    known = KNOWN if world.identity == PASS else KNOWN_OF_OWN_LOGINS
    purpose = "".join(letter if letter.isalnum() else "-" for letter in client).lower()
    accesses = [world.access(way, user, purpose) for way in WAYS]
    for access, lines in zip(accesses, CLIENTS[client].script(accesses), strict=True):
        plain = [REQUEST.sub("Request(...)", line.replace(access.prefix, NAMES)) for line in lines]
        outcome.seen[access.way] = [line for line in plain if not line.startswith((REFUSED, *known))]
        outcome.refused[access.way] = "".join(line.removeprefix(REFUSED) for line in plain if line.startswith(REFUSED))

    def left() -> dict[str, list[str]]:
        return {
            access.way: [
                line.replace(access.prefix, NAMES)
                for line in left_behind(world, access.prefix, CLIENTS[client].records_count)
            ]
            for access in accesses
        }

    outcome.left = at_last(left, right=lambda seen: seen[DIRECT] == seen[GATEWAY], within=SETTLE_SECONDS)
    return outcome


def left_behind(world: World, prefix: str, with_records: bool) -> list[str]:
    """Return a line for each topic with its configs, and if records count for its end, the offsets
    of groups, and ACLs.
    """
    admin = AdminClient({"bootstrap.servers": world.internal})
    topics = [name for name in admin.list_topics(timeout=60).topics if name.startswith(prefix)]
    lines = [line for name in topics if not name.endswith(FORBIDDEN) for line in _of_topic(admin, name)]
    if not with_records:
        return sorted(lines)
    lines += [_records(admin, name) for name in topics if not name.endswith(FORBIDDEN)]
    for listed in admin.list_consumer_groups().result(60).valid:
        if listed.group_id.startswith(prefix):
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(listed.group_id)])
            told = asked[listed.group_id].result(60).topic_partitions
            lines.append(
                f"group {listed.group_id} {sorted((each.topic, each.partition, each.offset) for each in told)}"
            )
    anybody: list[Any] = [None, None, AclOperation.ANY, AclPermissionType.ANY]
    anything: list[Any] = [ResourceType.ANY, None, ResourcePatternType.ANY]
    wanted = AclBindingFilter(*anything, *anybody)
    lines += [f"acl {each}" for each in admin.describe_acls(wanted).result(60) if each.name.startswith(f"{prefix}acl")]
    return sorted(lines)


def _of_topic(admin: AdminClient, name: str) -> Iterable[str]:
    partitions = admin.list_topics(name, timeout=60).topics[name].partitions
    yield f"topic {name} {[len(each.replicas) for each in partitions.values()]}"
    (told,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name)]).values()
    dynamic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    yield f"configs {name} {sorted((each.name, each.value) for each in told.result(60).values() if each.source == dynamic)}"


def _records(admin: AdminClient, name: str) -> str:
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    partitions = admin.list_topics(name, timeout=60).topics[name].partitions
    ends = admin.list_offsets({TopicPartition(name, number): latest for number in partitions})
    return f"records {name} {sorted((key.partition, end.result(60).offset) for key, end in ends.items())}"
