"""Rules and a policy in Python as one judge, which gives a verdict on each request.

Rule: a verdict allows for one reason only: all were asked and none denied. A violation carries the
policy's message to the caller. An exception, a returned value and rules that fail are faults of the
policy, and refuse as well (K201-11). The first that denies decides, and rules come before a policy
in Python.

Nothing here waits. The controller runs a policy in Python in a process of its own: it knows its
`PolicyDescription`, and asks it between `found` and `verdict`. Others, a back-test for instance,
use a `PolicyJudge`, which calls the policy in this process.
"""

import inspect
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from .interface import (
    AdminRequest,
    AlterBrokerConfigsRequest,
    AlterLoggersRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    JudgedRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from .legacy import LegacyPolicies
from .loading import policy_hash
from .rules.vocabulary import CONFIG_APIS, OPERATION_OF_API
from .verdict import Finding, PolicyOutcome, RuleAction, Verdict, refusal

NO_TEXT = "Request parameters do not satisfy the configured policy."
MAX_TEXT = 8_000
"""So many characters fit into a string of the protocol (32,767 bytes of UTF-8),
whichever they are.
"""

METHODS: Mapping[type[JudgedRequest], str] = {
    CreateTopicRequest: "validate_create_topic",
    AlterTopicRequest: "validate_alter_topic",
    DeleteTopicRequest: "validate_delete_topic",
    DeleteRecordsRequest: "validate_delete_records",
    AlterBrokerConfigsRequest: "validate_alter_broker_configs",
    AlterLoggersRequest: "validate_alter_loggers",
    AdminRequest: "validate_admin",
}

PolicyReply = tuple[PolicyOutcome, str | None]
"""The outcome that a policy in Python decided on, and the reason unless it allowed the request."""


class Rules(Protocol):
    """Rules beside a policy in Python. A `RuleSet` is one, but it is not imported here: its engines
    take 20 MiB.
    """

    @property
    def name(self) -> str: ...

    @property
    def hash(self) -> str:
        """The SHA-256 of their content, in hexadecimal."""

    @property
    def rule_actions(self) -> Mapping[str, RuleAction]: ...

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences about rules that may not do what their author means."""

    @property
    def reads_creation(self) -> bool:
        """Whether a rule asks when a topic that is to be deleted was created."""

    @property
    def judged_apis(self) -> frozenset[str]:
        """Kafka's names of the APIs whose `AdminRequest`s a rule judges."""

    def judge(self, request: JudgedRequest, cluster: ClusterState) -> tuple[Finding, ...]: ...


class PolicyDescription(msgspec.Struct, frozen=True):
    """The description of a policy in Python, for a node that did not load it itself."""

    name: str
    hash: str = ""
    """SHA-256 of its files when it was loaded, in hexadecimal; empty for a policy that judges
    nothing.
    """
    kinds: frozenset[str] = frozenset()
    """The class names of the requests that it judges."""


NO_POLICY = PolicyDescription(TopicManagementPolicy.__qualname__)
"""The description for a node without a policy in Python."""


def describe_policy(policy: TopicManagementPolicy) -> PolicyDescription:
    return PolicyDescription(_name(policy), policy_hash(policy), frozenset(kind.__name__ for kind in _methods(policy)))


class Verdicts:
    """Makes verdicts of the findings of rules and the reply of a policy in Python."""

    def __init__(self, policy: PolicyDescription = NO_POLICY, rules: Rules | None = None) -> None:
        self.policy = policy
        self.rules = rules
        names = (policy.name if policy.hash else "", "" if rules is None else rules.name)
        self.name = " and ".join(filter(None, names)) or policy.name
        """The name of the policy's class, of the rule files, or both."""
        hashes = [each for each in (policy.hash, "" if rules is None else rules.hash) if each]
        self.policy_hash = sha256(" ".join(hashes).encode()).hexdigest() if len(hashes) > 1 else "".join(hashes)
        """SHA-256, in hexadecimal, of the policy and rules that are in force."""
        by_rules = frozenset[str]() if rules is None else rules.judged_apis
        self.judged_apis = CONFIG_APIS | OPERATION_OF_API.keys() if AdminRequest.__name__ in policy.kinds else by_rules
        """Kafka's names of the APIs whose `AdminRequest`s rules or policy judge."""

    def asks(self, request: JudgedRequest) -> bool:
        return type(request).__name__ in self.policy.kinds

    def found(self, request: JudgedRequest, cluster: ClusterState) -> tuple[tuple[Finding, ...], str | None]:
        """Return the findings of the rules on the request, or none and a traceback if the rules
        failed as a whole, which is a fault of this program.
        """
        if self.rules is None:
            return (), None
        try:
            return self.rules.judge(request, cluster), None
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a panic of the engine is none of Exception's
            return (), f"evaluating its rules failed:\n{traceback.format_exc()}"

    def verdict(
        self, findings: tuple[Finding, ...], fault: str | None, said: PolicyReply, seconds: float = 0.0
    ) -> Verdict:
        decision, message = said
        if fault is not None:
            decision, message = PolicyOutcome.BROKEN, fault
        elif (denied := refusal(findings)) is not None:
            decision, message = PolicyOutcome.VIOLATED, sendable(denied.message) or NO_TEXT
        text = None if message is None else encodable(message)
        return Verdict(decision, self.name, text, seconds, findings, self.policy_hash)


class PolicyJudge(Verdicts):
    """A policy in Python and the rules beside it, both called in this process."""

    def __init__(self, policy: TopicManagementPolicy | None = None, rules: Rules | None = None) -> None:
        policy = policy or TopicManagementPolicy()
        super().__init__(describe_policy(policy), rules)
        self._methods = _methods(policy)

    @property
    def has_code(self) -> bool:
        """False if its class overrides none of the interface's methods."""
        return bool(self._methods)

    def judge(self, request: JudgedRequest, cluster: ClusterState) -> Verdict:
        """Ask rules and policy, and return the verdict. What they raise becomes part of the
        verdict.
        """
        began = time.perf_counter()
        findings, fault = self.found(request, cluster)
        ask = self.question(request, cluster)
        said = (PolicyOutcome.ALLOWED, None) if ask is None else ask()
        return self.verdict(findings, fault, said, time.perf_counter() - began)

    def question(self, request: JudgedRequest, cluster: ClusterState) -> Callable[[], PolicyReply] | None:
        """Return a function that calls the policy in Python and raises nothing; None if the policy
        does not judge requests of this kind.
        """
        method = self._methods.get(type(request))
        return None if method is None else partial(call_policy, method, request, cluster)


def _name(policy: TopicManagementPolicy) -> str:
    return policy.policy_name if isinstance(policy, LegacyPolicies) else type(policy).__qualname__


def _methods(policy: TopicManagementPolicy) -> Mapping[type, Callable[[Any, ClusterState], object]]:
    """Return the method for each kind of request that the policy overrides. Other kinds are allowed
    without a call.
    """
    methods: dict[type, Callable[[Any, ClusterState], object]] = {}
    for request, name in METHODS.items():
        method = getattr(policy, name)
        if getattr(method, "__func__", None) is not getattr(TopicManagementPolicy, name):
            methods[request] = method
    return methods


def call_policy(method: Callable[..., object], *arguments: object) -> PolicyReply:
    """Call a method of a policy. Nothing that it raises gets out, not even from the `__str__` of
    its exceptions.
    """
    try:
        try:
            returned = method(*arguments)
        except PolicyViolation as violation:
            return PolicyOutcome.VIOLATED, sendable(str(violation)) or NO_TEXT
        if returned is None:
            return PolicyOutcome.ALLOWED, None
        if inspect.iscoroutine(returned):
            returned.close()
        return PolicyOutcome.BROKEN, f"it returned {returned!r:.200}, but a policy must return None to allow"
    except BaseException as error:  # noqa: BLE001 - a policy's SystemExit is no better than its ValueError
        return PolicyOutcome.BROKEN, f"it raised:\n{_traceback(error)}"


def _traceback(error: BaseException) -> str:
    """Format a traceback without the frame of `call_policy`."""
    beyond = error.__traceback__.tb_next if error.__traceback__ is not None else None
    return encodable("".join(traceback.format_exception(type(error), error, beyond)))


def sendable(text: str) -> str:
    """Strip and shorten a text so that it fits into a string of the protocol, as valid UTF-8."""
    return encodable(text.strip()[:MAX_TEXT])


def encodable(text: str) -> str:
    """Replace by question marks what UTF-8 cannot encode, such as the surrogates in file names that
    are not UTF-8.
    """
    return text.encode("utf-8", "replace").decode()
