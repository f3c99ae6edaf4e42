"""The scenarios in their order, and how one is put to a cluster: one request at a time on one
connection, each outcome kept.

The same code asks the real Kafka when a recording is made and the program under test when it is
compared.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.conformance.case import Case, ScramFinal, ScramFirst, TokenHmacOf, TokenIdOf, TopicIdOf
from tests.conformance.cases import (
    acls,
    alter_configs,
    cluster,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    elections,
    features,
    groups,
    leaving,
    loggers,
    logs,
    metadata,
    offsets,
    producers,
    quotas,
    reassignments,
    secured_acls,
    secured_actions,
    secured_authorization,
    secured_groups,
    secured_logins,
    secured_moves,
    secured_quotas,
    secured_tokens,
    secured_users,
    walked,
)
from tests.conformance.logins import ScramLogin, Token
from tests.support.waiting import at_last
from tests.support.wire import Body, ConnectionEndedError, Login, Wire, request_frame

SCENARIOS: dict[str, list[Case]] = {
    "metadata": metadata.CASES,
    "cluster": cluster.CASES,
    "describe_configs": describe_configs.CASES,
    "alter_configs": alter_configs.CASES,
    "loggers": loggers.CASES,
    "create_partitions": create_partitions.CASES,
    "delete_topics": delete_topics.CASES,
    "create_topics": create_topics.CASES,
    "logs": logs.CASES,
    "elections": elections.CASES,
    "reassignments": reassignments.CASES,
    "acls": acls.CASES,
    "quotas": quotas.CASES,
    "features": features.CASES,
    "producers": producers.CASES,
    "groups": groups.CASES,
    "offsets": offsets.CASES,
    "delete_records": delete_records.CASES,
    "leaving": leaving.CASES,
    "walked": walked.CASES,
}
"""Metadata is first, because it looks at an empty cluster; the coordinators' topics are made last.
"""

SECURED: dict[str, list[Case]] = {
    "secured/authorization": secured_authorization.CASES,
    "secured/acls": secured_acls.CASES,
    "secured/quotas": secured_quotas.CASES,
    "secured/users": secured_users.CASES,
    "secured/actions": secured_actions.CASES,
    "secured/tokens": secured_tokens.CASES,
    "secured/logins": secured_logins.CASES,
    "secured/groups": secured_groups.CASES,
    "secured/moves": secured_moves.CASES,
}
"""The scenarios of a cluster whose clients log in and need ACLs."""
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SECURED_USERS = ("admin", "alice", "bob", "carol")
SECURED_SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": SCRAM_MODULE,
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": SCRAM_MODULE,
    "delegation.token.secret.key": "conformance-key",
    "connection.failed.authentication.delay.ms": "0",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="admin" password="admin-secret" '
        + " ".join(f'user_{user}="{user}-secret"' for user in SECURED_USERS)
        + ";"
    ),
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
}
"""The settings of a secured cluster. The listener keeps its name, so ports are chosen as ever."""


KAFKA_SETTINGS = {**SECURED_SETTINGS, "inter.broker.listener.name": "PLAINTEXT"}
"""Kafka's brokers have no listener of their own for each other."""


def login(user: str) -> Login | None:
    """Return the name and the password of a user of a secured cluster."""
    return (user, f"{user}-secret") if user else None


SILENCE_SECONDS = 5.0  # nothing takes Kafka so long here: what is not answered by then is never answered
SETTLE_SECONDS = 60.0
STILL_COMING = {14, 15, 16}  # a coordinator that is on its way

READS = {"Metadata", "DescribeConfigs"}

CLOSED, SILENT = "closed", "silent"


@dataclass
class Outcome:
    """The outcome of a request: an answer, or how it failed to come."""

    case: Case
    request: bytes
    frame: bytes | None
    ended: str = ""

    @cached_property
    def answer(self) -> Body | None:
        return None if self.frame is None else self.case.answer(self.frame)


Judge = Callable[[Outcome], bool]


def settled(outcome: Outcome) -> bool:
    """Whether an answer says that nothing is on its way any more."""
    return not STILL_COMING & set(error_codes(outcome.answer))


def all_led(answer: Body) -> bool:
    return not any(error_codes(answer)) and all(topic["partitions"] for topic in answer["topics"])


def error_codes(part: Any) -> Iterator[int]:
    """Yield all error codes of an answer, however deep."""
    if isinstance(part, dict):
        yield from [part["error_code"]] if "error_code" in part else []
        for value in part.values():
            yield from error_codes(value)
    elif isinstance(part, list):
        for value in part:
            yield from error_codes(value)


class Performer:
    """Asks one node, and remembers the topics' ids that it was told.

    A node that is not the controller learns of a change after the controller has answered: there
    every read may need a moment.
    """

    def __init__(
        self, address: str, *, every_read_settles: bool = False, silence_seconds: float = SILENCE_SECONDS
    ) -> None:
        """A request without an answer after `silence_seconds` has none."""
        self.address = address
        self.silence_seconds = silence_seconds
        self._settling_apis = READS if every_read_settles else set()
        self.topic_ids: dict[str, str] = {}
        self.tokens: dict[str, Token] = {}
        """Delegation tokens, by the case that made them."""
        self._scram = ScramLogin()
        self._wires: dict[tuple[str, str], Wire] = {}
        """The connection of each user and of each dialogue."""
        self._correlation_id = 0

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    def perform(self, case: Case, right: Judge = settled) -> Outcome:
        """Ask once; or, if the case settles, until the answer is right or the time is over."""
        self._wait_until_led(case.once_led, case.user)
        settles = case.settles or case.api in self._settling_apis
        return at_last(lambda: self._ask(case), right=right, within=SETTLE_SECONDS if settles else 0)

    def _ask(self, case: Case) -> Outcome:
        self._correlation_id += 1
        request = case.frame or request_frame(
            case.api,
            case.version,
            self._fill(case.body),
            correlation_id=self._correlation_id,
            client_id="conformance",
        )
        wire = self._wire_of(case)
        try:
            outcome = Outcome(case, request, wire.exchange(request))
        except (ConnectionEndedError, BrokenPipeError):
            outcome = Outcome(case, request, None, CLOSED)
        except TimeoutError:
            outcome = Outcome(case, request, None, SILENT)
        if outcome.frame is None:
            self.close()
        self._learn(outcome.answer)
        self._learn_secrets(case, outcome.answer or {})
        return outcome

    def _wire_of(self, case: Case) -> Wire:
        name = (case.user, case.dialogue)
        if name not in self._wires:
            user = "" if case.dialogue else case.user
            self._wires[name] = Wire(self.address, login=login(user))
        self._wires[name].be_patient_for(self.silence_seconds)
        return self._wires[name]

    def _wait_until_led(self, topics: Sequence[str], user: str) -> None:
        if not topics:
            return
        body = {"topics": [{"name": name} for name in topics], "allow_auto_topic_creation": False}
        with Wire(self.address, login=login(user)) as wire:
            self._learn(at_last(lambda: wire.ask("Metadata", 12, body), right=all_led, within=SETTLE_SECONDS))

    def _learn(self, answer: Body | None) -> None:
        for topic in (answer or {}).get("topics") or []:
            if topic.get("name") and topic.get("topic_id") and not is_zero(topic["topic_id"]):
                self.topic_ids[topic["name"]] = topic["topic_id"]

    def _learn_secrets(self, case: Case, answer: Body) -> None:
        if answer.get("token_id"):
            self.tokens[f"{case.name} v{case.version}"] = Token(
                answer["token_id"], answer["hmac"], answer["issue_timestamp_ms"]
            )
        if answer.get("auth_bytes"):
            self._scram.hear(bytes.fromhex(answer["auth_bytes"]))

    def _fill(self, body: Any) -> Any:
        match body:
            case TopicIdOf():
                return self.topic_ids[body.topic]
            case TokenIdOf():
                return self.tokens[body.token].token_id
            case TokenHmacOf():
                return bytes.fromhex(self.tokens[body.token].hmac)
            case ScramFirst():
                return self._scram.first(body.header, self._fill(body.user), body.more)
            case ScramFinal():
                password = self._fill(body.password)
                return self._scram.final(body.mechanism, password, body.binding, body.nonce)
        if isinstance(body, dict):
            return {key: self._fill(value) for key, value in body.items()}
        if isinstance(body, list):
            return [self._fill(element) for element in body]
        return body


def is_zero(topic_id: str) -> bool:
    return not topic_id.replace("-", "").strip("0")
