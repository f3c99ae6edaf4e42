"""No secret reaches the log: planted wherever a request can carry one, and searched
in the files.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from minicontroller.audit.event import REDACTED
from minicontroller.cluster.errors import LEFT_OUT, MAX_TEXT, fitting
from minicontroller.policies import AlterBrokerConfigsRequest, ClusterState, TopicManagementPolicy
from minicontroller.policies.interface import PolicyViolation
from minicontroller.policies.legacy import AlterConfigMetadata, LegacyPolicies
from minicontroller.process.observe.secrets import redact, redact_configs
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
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


def test_what_is_redacted() -> None:
    """Values of passwords, of listeners' and plugins' keys and of unknown keys are hidden; topics'
    own configs are not.
    """
    configs: Mapping[str, str] = {
        "retention.ms": "1",
        "num.io.threads": "8",
        "ssl.keystore.password": SECRET,
        "listener.name.x.plain.sasl.jaas.config": SECRET,
        "my.plugin.token": SECRET,
    }
    assert redact_configs(configs) == {
        "retention.ms": "1",
        "num.io.threads": "8",
        "ssl.keystore.password": REDACTED,
        "listener.name.x.plain.sasl.jaas.config": REDACTED,
        "my.plugin.token": REDACTED,
    }


def altering(resource_type: int, name: str, **configs: str) -> AlterConfigsRequest:
    rows = [AlterableConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return AlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=rows)]
    )


async def test_no_secret_is_written(tmp_path: Path) -> None:
    """P-1c: no password reaches the log, whether it was among a broker's configs, allowed or
    refused with a message that quotes it, or put into a topic's by mistake.
    """
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
            await world.ask(CreateTopicsRequest(topics=[wrong], timeout_ms=30_000), 7)
            await world.ask(altering(TOPIC, "t", sasl_jaas_config=SECRET), 2)
            await world.ask(altering(BROKER, "1", ssl_keystore_password=SECRET), 2)
            await world.ask(altering(BROKER, "1", listener_name_plaintext_ssl_key_password=SECRET), 2)
    for number in range(2):
        folder = tmp_path / str(number)
        assert len(decisions_in(folder)) == 5
        assert all(SECRET.encode() not in file.read_bytes() for file in folder.iterdir())


QUOTING = """
[[config_bounds]]
configs = { "retention.ms" = { max = 5 } }

[[rule]]
name = "quoting"
operations = "alter_broker"
condition = '''!("my.plugin.token" in request.config_operations)'''
message_expression = '''"Not " + request.config_operations["my.plugin.token"] + " of " + after.configs["my.plugin.token"]'''
action = "warn"
"""


class QuotingClass(TopicManagementPolicy):
    """Decides as `QUOTING` does."""

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        key = "my.plugin.token"
        if int(request.effective_configs["retention.ms"]) > 5:
            text = "retention.ms 6 (by log.retention.ms) is more than 5."
            raise PolicyViolation(f"{text} Not {request.config_operations[key]} of {request.after[key]}")


@pytest.mark.parametrize("kind", ["rules", "class"])
@pytest.mark.parametrize(
    "value", [SECRET, "retention.ms", "The policy", " ".join(f'"{word:04}"' for word in range(600))]
)
async def test_what_a_policy_says_is_told_as_it_is(
    kind: str, value: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A policy's message is recorded unchanged, because the policy never sees possible secrets; so
    no caller can hide parts of it.
    """
    caplog.set_level(logging.INFO, "minicontroller.policy")
    (tmp_path / "rules.toml").write_text(QUOTING if kind == "rules" else "rule_count = 0")
    settings = {"audit.dir": str(tmp_path / "audit"), "policy.rules.files": str(tmp_path / "rules.toml")}
    policy = QuotingClass() if kind == "class" else TopicManagementPolicy()
    async with ruling(settings, policy=policy) as world:
        caplog.clear()  # of what the rules say when they are loaded
        request = altering(BROKER, "", log_retention_ms="6", my_plugin_token=value)
        assert (await world.ask(request, 2)).responses[0].error_code == ErrorCode.POLICY_VIOLATION
        shown = [world.node.recent_decisions.after(0)[-1].reason, *caplog.messages]
    event = decisions_in(tmp_path / "audit")[-1]
    assert event.policy is not None
    told = [event.message or "", event.policy.message or "", *(each.message for each in event.policy.findings), *shown]
    said = "retention.ms 6 (by log.retention.ms) is more than 5."
    assert all(said in each or f"Not {REDACTED} of {REDACTED}" in each for each in told)
    assert any(f"Not {REDACTED} of {REDACTED}" in each for each in told)
    assert any(
        each.startswith("The policy ") and "AlterConfigs of broker (default)" in each for each in caplog.messages
    )
    assert SECRET not in "".join(told)
    assert event.config_operations == {"log.retention.ms": "6", "my.plugin.token": REDACTED}


@pytest.mark.parametrize("shift", range(0, 40, 7))
def test_a_secret_where_a_long_message_is_cut(shift: int) -> None:
    """A message too long for the protocol is cut in the middle, and no part of a secret there
    remains.
    """
    secret = "hunter2-and-a-long-tail-of-it"
    padding = "\N{SNOWMAN}" * (MAX_TEXT // 2 - shift)
    for text in (f"{padding}{secret}{padding * 2}", f"{padding * 2}{secret}{padding}"):
        cut = fitting(text)
        assert LEFT_OUT in cut
        told = redact(cut, {secret})
        assert not [part for part in (secret[:6], secret[-6:]) if part in told]


def test_a_part_of_a_secret_is_found_between_its_own_quotes() -> None:
    """A quoted part of a secret is hidden although a short quoted text precedes it."""
    jaas = 'some.LoginModule required name="me" password=\'hunter2-and-more\' user_x="a \\" b";'
    assert (
        redact('The password hunter2-and-more of a \\" b is short.', {jaas})
        == f"The password {REDACTED} of {REDACTED} is short."
    )


def test_a_message_beside_countless_secrets_is_not_told() -> None:
    """A message beside too many secrets to search for is left out."""
    assert redact("one of them is 1234", {'"aaaa"' * 10, *map(str, range(1000, 1600))}) == REDACTED
