"""No secret reaches the log: planted wherever a request can carry one, and searched in the files."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from minicontroller.controller.audit.records import Moment, Origin, decision
from minicontroller.controller.audit.requests import AuditedRequest, Judgement, Record
from minicontroller.controller.cluster.image import Image
from minicontroller.controller.context import RequestContext
from minicontroller.controller.errors import LEFT_OUT, MAX_TEXT, Refusal, fitting
from minicontroller.controller.handlers.changes import Change
from minicontroller.controller.hiding import hidden, without
from minicontroller.policies import AlterBrokerConfigsRequest, TopicManagementPolicy
from minicontroller.policies.audit_event import HIDDEN, Effect, encode
from minicontroller.policies.interface import PolicyViolation
from minicontroller.policies.legacy import AlterConfigMetadata, LegacyPolicies
from minicontroller.policies.verdict import Action, Finding, Verdict
from minicontroller.policies.verdict import Decision as PolicyVerdict
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.audit.logs import decisions_in
from tests.handlers.altering import BROKER, TOPIC
from tests.handlers.ruling import ruling

SECRET = "correct-horse-battery"


class Quoting:
    """An older policy that quotes what it is asked about."""

    def configure(self, configs: Mapping[str, str]) -> None:
        pass

    def validate(self, metadata: AlterConfigMetadata) -> None:
        raise PolicyViolation(f"Not {dict(metadata.configs)}.")

    def close(self) -> None:
        pass


def test_what_is_hidden() -> None:
    """Values of password keys, of listeners' keys, of plugins', and of keys that nobody knows; topics' own keys are plain."""
    configs: Mapping[str, str] = {
        "retention.ms": "1",
        "num.io.threads": "8",
        "ssl.keystore.password": SECRET,
        "listener.name.x.plain.sasl.jaas.config": SECRET,
        "my.plugin.token": SECRET,
    }
    assert hidden(configs) == {
        "retention.ms": "1",
        "num.io.threads": "8",
        "ssl.keystore.password": HIDDEN,
        "listener.name.x.plain.sasl.jaas.config": HIDDEN,
        "my.plugin.token": HIDDEN,
    }


def altering(resource_type: int, name: str, **configs: str) -> AlterConfigsRequest:
    rows = [AlterableConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return AlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=rows)]
    )


async def test_no_secret_is_written(tmp_path: Path) -> None:
    """P-1: a password among a broker's configs, allowed or refused with a message that quotes it, or put into a topic's by mistake."""
    policies: list[TopicManagementPolicy | None] = [None, LegacyPolicies(alter=Quoting())]
    for number, policy in enumerate(policies):
        async with ruling({"audit.dir": str(tmp_path / str(number))}, policy=policy) as world:
            topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
            await world.make(topic)
            wrong = CreatableTopic(
                name="u",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="sasl.jaas.config", value=SECRET)],
            )
            await world.ask(CreateTopicsRequest(topics=[wrong], timeout_ms=1000), 7)
            await world.ask(altering(TOPIC, "t", sasl_jaas_config=SECRET), 2)
            await world.ask(altering(BROKER, "1", ssl_keystore_password=SECRET), 2)
            await world.ask(altering(BROKER, "1", listener_name_plaintext_ssl_key_password=SECRET), 2)
    for number in range(2):
        folder = tmp_path / str(number)
        assert len(decisions_in(folder)) == 5
        assert all(SECRET.encode() not in file.read_bytes() for file in folder.iterdir())


def test_quoted_secrets() -> None:
    """What a policy quotes of a secret is hidden in every message of the event, and so is the operand itself."""
    said = f"Not {SECRET}!"
    verdict = Verdict(
        PolicyVerdict.VIOLATED, "Rules", said, findings=(Finding("r", Action.DENY, said),), policy_hash="h"
    )
    asked = AlterBrokerConfigsRequest(broker="1", principal=None, config_operations={"my.plugin.token": SECRET})
    context = RequestContext(
        api_key=33,
        api_version=2,
        client_api_version=2,
        correlation_id=1,
        client_id=None,
        client_host="",
        principal=None,
        listener="PLAINTEXT",
        caller=None,  # type: ignore[arg-type]
    )
    judgement = Judgement(asked, Image(), verdict)
    refused = Change(
        kind="broker",
        topic="1",
        refusal=Refusal(ErrorCode.POLICY_VIOLATION, said),
        judgement=judgement,
        operations=asked.config_operations,
    )
    event = decision(
        Moment(Origin("c", 1, 1), 1, 1),
        Record(AuditedRequest(1, context, validate_only=False), 0, refused, judgement, Image(), 0),
        refused,
        effect=Effect.NONE,
        refusal=refused.refusal,
        before=None,
        after=None,
        assumed=(),
        latency_us=1,
    )
    assert SECRET.encode() not in encode(event)
    assert event.message == f"Not {HIDDEN}!"
    assert event.config_operations == {"my.plugin.token": HIDDEN}


@pytest.mark.parametrize("shift", range(0, 40, 7))
def test_a_secret_where_a_long_message_is_cut(shift: int) -> None:
    """A message that no string of the protocol holds loses its middle, and neither half of a secret that stood there is told."""
    secret = "hunter2-and-a-long-tail-of-it"
    padding = "\N{SNOWMAN}" * (MAX_TEXT // 2 - shift)
    for text in (f"{padding}{secret}{padding * 2}", f"{padding * 2}{secret}{padding}"):
        cut = fitting(text)
        assert LEFT_OUT in cut
        told = without(cut, {secret})
        assert not [part for part in (secret[:6], secret[-6:]) if part in told]


def test_a_part_of_a_secret_is_found_between_its_own_quotes() -> None:
    """What stands in quotes of either kind is hidden by itself, though something short stands in quotes before it."""
    jaas = 'some.LoginModule required name="me" password=\'hunter2-and-more\' user_x="a \\" b";'
    assert (
        without('The password hunter2-and-more of a \\" b is short.', {jaas})
        == f"The password {HIDDEN} of {HIDDEN} is short."
    )


def test_a_message_beside_countless_secrets_is_not_told() -> None:
    """To look for each of them would take long: nothing is told then."""
    assert without("one of them is 1234", {'"aaaa"' * 10, *map(str, range(1000, 1600))}) == HIDDEN
