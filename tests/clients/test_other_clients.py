"""aiokafka, kafkajs and franz-go over TLS, known by a certificate and by SCRAM, at a node that is
not the controller.
"""

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AsyncNewTopic
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.clients.test_sasl import FORBIDDEN
from tests.clients.test_tls import Secured, secured_nodes
from tests.support.cluster import unlike_kafka
from tests.support.programs import needs_go, needs_npm, run_go, run_javascript, time_to_build
from tests.support.zookeeper import ZooKeeperServer

pytestmark = [pytest.mark.slow, unlike_kafka("the real Kafka of these tests has no TLS")]

USER, PASSWORD = "olga", "olga,secret="
REFUSED = {"MUTUAL": "refused to User:alice", "LOGIN": f"refused to User:{USER}"}
"""The policy's text by listener."""
AT_EVERY_NODE = {"metadata.completion": "cluster"}
"""The user is known to the node that is asked next."""


@pytest.fixture(name="nodes", scope="module")
def nodes_with_a_user(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Secured]:
    with secured_nodes(tmp_path_factory.mktemp("other"), zookeeper, "SSL", AT_EVERY_NODE) as secured:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        admin = AdminClient({"bootstrap.servers": secured.nodes.bootstrap, "log_level": 0})
        change = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        admin.alter_user_scram_credentials([change])[USER].result()
        yield secured


def wanted(nodes: Secured, listener: str, topic: str) -> Mapping[str, str]:
    """Return the arguments of a program."""
    shown = {"cert": str(nodes.alice)} if listener == "MUTUAL" else {"user": USER, "password": PASSWORD}
    return {
        "address": nodes.not_the_controller(listener),
        "topic": topic,
        "forbidden": f"{FORBIDDEN}{topic}",
        "ca": str(nodes.authority.file),
        **shown,
    }


async def by_aiokafka(told: Mapping[str, str]) -> str:
    """Create topics with aiokafka, and return what one of them was refused with."""
    context = ssl.create_default_context(cafile=told["ca"])
    login: dict[str, Any] = {"security_protocol": "SSL"}
    if "cert" in told:
        context.load_cert_chain(told["cert"])
    else:
        login = {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": told["user"],
            "sasl_plain_password": told["password"],
        }
    admin = AIOKafkaAdminClient(bootstrap_servers=told["address"], ssl_context=context, **login)
    await admin.start()
    try:
        made = await admin.create_topics([AsyncNewTopic(told["topic"], 2, 3)])
        assert [code for _, code, *_ in made.topic_errors] == [0]
        while told["topic"] not in await admin.list_topics():
            pass
        refused = await admin.create_topics([AsyncNewTopic(told["forbidden"], 1, 1)])
        assert [code for _, code, *_ in (await admin.delete_topics([told["topic"]])).topic_error_codes] == [0]
    finally:
        await admin.close()
    return str(refused.topic_errors)


@pytest.mark.parametrize("listener", REFUSED)
def test_aiokafka(nodes: Secured, listener: str, topic: str) -> None:
    assert REFUSED[listener] in asyncio.run(by_aiokafka(wanted(nodes, listener, topic)))


@time_to_build
@needs_go
@pytest.mark.parametrize("listener", REFUSED)
def test_franz_go(nodes: Secured, listener: str, topic: str) -> None:
    assert REFUSED[listener] in run_go(wanted(nodes, listener, topic))


@time_to_build
@needs_npm
@pytest.mark.parametrize("listener", REFUSED)
def test_kafkajs(nodes: Secured, listener: str, topic: str) -> None:
    """It shows the code of an error and not its text."""
    assert "Request parameters do not satisfy the configured policy" in run_javascript(wanted(nodes, listener, topic))
