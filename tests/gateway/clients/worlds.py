"""Kafkas before which clients are compared, in plain text and with TLS and logins,
each with a gateway in front of it that lets logins pass, or authenticates clients itself.

A way is `direct` or `gateway`. A client gets an `Access`, which says how it reaches the cluster on
its way, as whom, and how the names of what it makes begin: what it sees on both ways is equal but
for these.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.support.certificates import Authority
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.kafka import KafkaCluster, KafkaProcesses
from tests.support.kafka_kraft import KAFKAS, STANDARD_AUTHORIZER, ZOOKEEPER, Kafka, KraftCluster, started
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.wire import Wire

PLAINTEXT, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL"
DIRECT, GATEWAY = "direct", "gateway"
WAYS = (DIRECT, GATEWAY)
PASS, ENVELOPE, MAP = IDENTITIES = ("pass", "envelope", "map")
ADMIN, ALICE, MALLORY = "admin", "alice", "mallory"
USERS = (ADMIN, ALICE, MALLORY)
"""A super user, one who may do everything with what is theirs, and one who may do nothing."""
NEWEST = KAFKAS[-1]
SHARE = KAFKAS[2:]
"""The Kafkas that have share groups, and the other features of a Kafka 4."""
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
NAMES = "NAMES-"
"""It stands for how names begin, which is not the same on both ways."""
FORBIDDEN = "forbidden"
WORDS = "No such names, please."
RULES = f"""
[[protected_topics]]
topics = ["*-{FORBIDDEN}"]
message = "{WORDS}"
"""
BROKERS = 2
FEATURES = {"group.version": 1, "transaction.version": 2, "share.version": 1}


def password_of(user: str) -> str:
    return f"{user}-secret"


def login_of(user: str) -> str:
    return f'{PLAIN} username="{user}" password="{password_of(user)}";'


_PASSWORDS = (f'user_{user}="{password_of(user)}"' for user in (*USERS, "gateway"))
LOGINS = f"{PLAIN} {' '.join(_PASSWORDS)};"
"""Whom a listener lets in: at the brokers, and at a gateway that authenticates clients itself."""


@dataclass(frozen=True)
class Access:
    """A way to the cluster, as a user."""

    way: str
    bootstrap: str
    protocol: str
    user: str
    ca: Path
    prefix: str
    """The beginning of the names of what the client makes."""

    @property
    def logs_in(self) -> bool:
        return self.protocol != PLAINTEXT

    @property
    def has_tls(self) -> bool:
        return self.protocol == SASL_SSL

    def librdkafka(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.logs_in:
            settings |= {"sasl.mechanism": "PLAIN", "sasl.username": self.user}
            settings |= {"sasl.password": password_of(self.user), "ssl.ca.location": str(self.ca)}
        return {**settings, "log_level": 0}

    def java(self) -> dict[str, str]:
        settings = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.logs_in:
            settings |= {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": login_of(self.user),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.ca),
            }
        return settings

    def program(self) -> dict[str, str | int]:
        """The argument of the programs in Go and JavaScript."""
        told: dict[str, str | int] = {
            "address": self.bootstrap,
            "topic": f"{self.prefix}topic",
            "forbidden": f"{self.prefix}{FORBIDDEN}",
        }
        if self.logs_in:
            told |= {"ca": str(self.ca), "mechanism": "plain"}
            told |= {"user": self.user, "password": password_of(self.user)}
        return {**told, "group": f"{self.prefix}group", "replicas": BROKERS}


class SecuredKafkaCluster(KafkaCluster):
    """A Kafka on ZooKeeper whose clients have a listener of their own."""

    def __init__(self, folder: Path, brokers: int, settings: Mapping[str, str], protocol: str) -> None:
        super().__init__(folder, brokers, settings)
        self.protocol = protocol
        self.internal = {number: f"127.0.0.1:{free_port()}" for number in self.addresses}

    def _properties(self, number: int) -> dict[str, str]:
        listeners = f"CLIENTS://{self.addresses[number]},INTERNAL://{self.internal[number]}"
        return {
            **super()._properties(number),
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": f"CLIENTS:{self.protocol},INTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
        }

    def _asked_at(self, number: int) -> str:
        return self.internal[number]


class World:
    """A cluster and a gateway with one of the identities."""

    def __init__(self, kafka: Kafka, protocol: str, folder: Path, identity: str = PASS) -> None:
        self.kafka, self.protocol, self.identity = kafka, protocol, identity
        authority = Authority(folder)
        self.ca = authority.file
        self._certificate = authority.issue("servers", "127.0.0.1")
        self.internal = ""
        """An address of the cluster at which everybody may do everything."""
        self._gateway: GatewayProcess | None = None
        self._cluster: KafkaProcesses | None = None

    @contextmanager
    def running(self) -> Iterator["World"]:
        folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        settings = self.settings_of_kafka()
        cluster: SecuredKafkaCluster | KraftCluster
        if self.kafka.mode == ZOOKEEPER:
            cluster = SecuredKafkaCluster(folder, BROKERS, settings, self.protocol)
        else:
            cluster = KraftCluster(folder, self.kafka.version, BROKERS, settings, protocol=self.protocol)
        with started(cluster):
            self._cluster, self.internal = cluster, cluster.internal[1]
            give_rights(AdminClient({"bootstrap.servers": self.internal}))
            if self.kafka in SHARE:
                take_the_newest_features(cluster.internal.values())
            controllers = cluster.controllers.values() if isinstance(cluster, KraftCluster) else ()
            with running_gateway(cluster.bootstrap, settings=self._of_the_gateway(controllers)) as gateway:
                self._gateway = gateway
                yield self

    def access(self, way: str, user: str, purpose: str) -> Access:
        """The purpose makes the names differ from those of others."""
        assert self._cluster is not None and self._gateway is not None
        bootstrap = self._cluster.addresses[1] if way == DIRECT else self._gateway.bootstrap
        return Access(way, bootstrap, self.protocol, user, self.ca, f"{way}-{user}-{purpose}-")

    @property
    def gateway(self) -> GatewayProcess:
        assert self._gateway is not None
        return self._gateway

    def settings_of_kafka(self) -> dict[str, str]:
        is_old = self.kafka.mode == ZOOKEEPER
        return {
            "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": LOGINS,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._certificate),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer" if is_old else STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS;User:admin;User:gateway",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "offsets.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "2",
        }

    def _of_the_gateway(self, controllers: Iterable[str]) -> dict[str, str]:
        settings = {"upstream.security.protocol": self.protocol, "identity": self.identity}
        if self.protocol != PLAINTEXT:
            settings |= {
                "upstream.sasl.mechanism": "PLAIN",
                "upstream.sasl.jaas.config": login_of("gateway"),
            }
        if self.protocol == SASL_SSL:
            settings |= {
                "upstream.ssl.truststore.type": "PEM",
                "upstream.ssl.truststore.location": str(self.ca),
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self._certificate),
            }
        if self.identity != PASS:
            credentials = self.ca.with_name("credentials.properties")
            credentials.write_text("".join(f"{user}={login_of(user)}\n" for user in USERS))
            settings |= {
                "security.protocol": self.protocol,
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.clients.plain.sasl.jaas.config": LOGINS,
                "identity.credentials.file": str(credentials),
            }
        if self.identity == ENVELOPE:
            settings |= {
                "upstream.controllers": ",".join(controllers),
                "upstream.controller.security.protocol": PLAINTEXT,
            }
        rules = self.ca.with_name("rules.toml")
        rules.write_text(RULES)
        return {**settings, "policy.rules.files": str(rules)}


def take_the_newest_features(addresses: Iterable[str]) -> None:
    """The consumer protocol of KIP-848 and the transactions of KIP-890, as in a new cluster."""
    addresses = list(addresses)
    updates = [{"feature": name, "max_version_level": level, "upgrade_type": 1} for name, level in FEATURES.items()]
    with Wire(addresses[0]) as wire:
        told = wire.ask("UpdateFeatures", 1, {"feature_updates": updates, "timeout_ms": 60_000})
    assert told["error_code"] == 0, told
    for address in addresses:
        until(partial(finalized, address), right=lambda seen: seen >= FEATURES.keys())


def finalized(address: str) -> set[str]:
    """The features that a broker says to be in force."""
    with Wire(address) as wire:
        told = wire.ask("ApiVersions", 3, {"client_software_name": "tests", "client_software_version": "1"})
    return {each["name"] for each in told["finalized_features"]}


def give_rights(admin: AdminClient) -> None:
    """Alice may do everything with what is named after her."""
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    bindings = [
        AclBinding(
            kind,
            f"{way}-{ALICE}-",
            ResourcePatternType.PREFIXED,
            f"User:{ALICE}",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for kind in kinds
        for way in WAYS
    ]
    for made in admin.create_acls(bindings).values():
        made.result(60)
