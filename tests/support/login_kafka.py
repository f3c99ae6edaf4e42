"""A Kafka 4 whose clients log in over TLS, and whose authorizer says whom it has judged."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from minicontroller.security.credentials import ScramCredentials
from tests.support.certificates import Authority
from tests.support.kafka_kraft import NEWEST_VERSION, STANDARD_AUTHORIZER, KraftCluster, started

PASSWORD = "planted-secret"
MODULES = "org.apache.kafka.common.security"
PLAIN = f"{MODULES}.plain.PlainLoginModule required"
PREFIX = "listener.name.clients"
BOB = ScramCredentials("b=o,b", PASSWORD, "SCRAM-SHA-512")
SESSION_MS = 4000
ACLS = [
    AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
    for kind, name, pattern, user, operation in (
        (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "gateway", AclOperation.CLUSTER_ACTION),
        (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "gateway", AclOperation.DESCRIBE),
        (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "gateway", AclOperation.DESCRIBE_CONFIGS),
        (ResourceType.TOPIC, "of-", ResourcePatternType.PREFIXED, "gateway", AclOperation.DESCRIBE),
        (ResourceType.TOPIC, "of-", ResourcePatternType.PREFIXED, "gateway", AclOperation.DESCRIBE_CONFIGS),
        (ResourceType.TOPIC, "of-alice-", ResourcePatternType.PREFIXED, "alice", AclOperation.CREATE),
        (ResourceType.TOPIC, "of-shared-", ResourcePatternType.PREFIXED, "shared", AclOperation.CREATE),
        (ResourceType.TOPIC, "of-", ResourcePatternType.PREFIXED, "shared", AclOperation.DESCRIBE),
    )
]


def trust(authority: Authority) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.file)}


@contextmanager
def login_kafka(authority: Authority) -> Iterator[KraftCluster]:
    """One node whose clients log in over TLS, by passwords and by tokens that nobody signed, and
    whose authorizer says whom it has judged.
    """
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in ("alice", "gateway", "shared"))
    controllers = f'{PLAIN} username="node" password="{PASSWORD}" user_node="{PASSWORD}" user_gateway="{PASSWORD}";'
    settings = {
        f"{PREFIX}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{PREFIX}.plain.sasl.jaas.config": f"{PLAIN} {users};",
        f"{PREFIX}.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        f"{PREFIX}.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        f"{PREFIX}.oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{PREFIX}.plain.connections.max.reauth.ms": "600000",
        f"{PREFIX}.scram-sha-512.connections.max.reauth.ms": str(SESSION_MS),
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": controllers,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("kafka", "127.0.0.1")),
        **trust(authority),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:node",
    }
    cluster = KraftCluster(
        Path(tempfile.mkdtemp(prefix="kafka-")),
        NEWEST_VERSION,
        settings=settings,
        protocol="SASL_SSL",
        controller_protocol="SASL_SSL",
    )
    cluster.loggers["kafka.authorizer.logger"] = "DEBUG"
    with started(cluster):
        admin = AdminClient({"bootstrap.servers": cluster.internal[1]})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(BOB.username, info, PASSWORD.encode())
        admin.alter_user_scram_credentials([change])[BOB.username].result(30)
        for created in admin.create_acls(ACLS).values():
            created.result(30)
        yield cluster
