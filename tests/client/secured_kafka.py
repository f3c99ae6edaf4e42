"""A real Kafka 3.9.1 with a listener for each way of being let in: one broker, all of
them at once.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tests.support.certificates import Authority
from tests.support.kafka import KafkaCluster
from tests.support.ports import free_port

HOST = "127.0.0.1"
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "ELSEWHERE": "SSL",
    "NEWEST": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "ONLY512": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
}
"""By name: the security protocol. MUTUAL wants a certificate of the client, ELSEWHERE shows one of
another host, NEWEST speaks TLSv1.3 alone; ONLY512 has one mechanism, LOGIN and BOTH have all.
"""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LOGIN = "org.apache.kafka.common.security"
PLAIN_USER, PLAIN_PASSWORD = "bob", "planted-bob"
USER, PASSWORD = "al=ice,b", "planted,sécret=ª\u2168"
"""With all that SCRAM escapes, and what SASLprep would change: Kafka changes nothing."""
ITERATIONS = 4096


class SecuredKafka:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.ports = {name: free_port() for name in LISTENERS}
        keystore = self.authority.issue("kafka", HOST, "localhost")
        elsewhere = self.authority.issue("elsewhere", "elsewhere.example")
        listeners = ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items())
        self.kafka = KafkaCluster(
            folder / "kafka",
            brokers=1,
            settings={
                "listeners": listeners,
                "advertised.listeners": listeners,
                "listener.security.protocol.map": ",".join(f"{name}:{way}" for name, way in LISTENERS.items()),
                "inter.broker.listener.name": "PLAINTEXT",
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(keystore),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.authority.file),
                "listener.name.mutual.ssl.client.auth": "required",
                "listener.name.elsewhere.ssl.keystore.type": "PEM",
                "listener.name.elsewhere.ssl.keystore.location": str(elsewhere),
                "listener.name.newest.ssl.enabled.protocols": "TLSv1.3",
                "listener.name.only512.sasl.enabled.mechanisms": "SCRAM-SHA-512",
                **{
                    f"listener.name.{name}.{key}": value
                    for name in ("login", "only512", "both")
                    for key, value in logins().items()
                },
            },
        )
        self.kafka.addresses[1] = self.address("PLAINTEXT")

    def address(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"

    def start(self) -> None:
        self.kafka.start()
        mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, ITERATIONS), PASSWORD.encode())
            for mechanism in mechanisms
        ]
        admin = AdminClient({"bootstrap.servers": self.address("PLAINTEXT"), "log_level": 0})
        for future in admin.alter_user_scram_credentials(wanted).values():
            future.result()


def logins() -> dict[str, str]:
    scram = f"{LOGIN}.scram.ScramLoginModule required;"
    return {
        "plain.sasl.jaas.config": f'{LOGIN}.plain.PlainLoginModule required user_{PLAIN_USER}="{PLAIN_PASSWORD}";',
        "scram-sha-256.sasl.jaas.config": scram,
        "scram-sha-512.sasl.jaas.config": scram,
    }


@contextmanager
def running_secured_kafka() -> Iterator[SecuredKafka]:
    """It answers on each of its listeners for the length of the block."""
    folder = Path(tempfile.mkdtemp(prefix="secured-kafka-"))
    secured = SecuredKafka(folder)
    try:
        secured.start()
        yield secured
    finally:
        secured.kafka.stop()
        shutil.rmtree(folder, ignore_errors=True)
