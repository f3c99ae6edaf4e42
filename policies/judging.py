"""Rules and a policy in Python as one judge: what they have to say of a request, and what comes of
it.

Rule: a verdict allows for one reason only: all were asked and none had anything against the
request. A violation is the policy's word to the caller; an exception, a returned value and rules
that cannot be asked are faults, and refuse as well (K201-11). The first that denies gives the
answer, the rules coming first.

Nothing here waits. The controller asks the policy in Python in a process of its own between `found`
and `verdict`, and knows of it what `describe` tells; who has no need of that, a back-test for
instance, takes a `Judge`, which has the policy itself.
"""

import inspect
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from .interface import (
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
from .verdict import Decision, Finding, Verdict, refusal

NO_TEXT = "Request parameters do not satisfy the configured policy."
MAX_TEXT = 8_000
"""Characters that fit a string of the protocol, whatever they are."""

METHODS: Mapping[type[JudgedRequest], str] = {
    CreateTopicRequest: "validate_create_topic",
    AlterTopicRequest: "validate_alter_topic",
    DeleteTopicRequest: "validate_delete_topic",
    DeleteRecordsRequest: "validate_delete_records",
    AlterBrokerConfigsRequest: "validate_alter_broker_configs",
    AlterLoggersRequest: "validate_alter_loggers",
}
"""What is asked about which request."""

Said = tuple[Decision, str | None]
"""Of a policy in Python: what it decided, and why if it did not allow."""


class Rules(Protocol):
    """Rules beside a policy in Python. A `RuleSet` is one, but it is not imported here: its engines
    take 20 MiB.
    """

    @property
    def name(self) -> str:
        """The names of the rule files."""

    @property
    def hash(self) -> str:
        """The SHA-256 of their content, in hexadecimal."""

    @property
    def rule_names(self) -> tuple[str, ...]:
        """The names of all rules, in their order."""

    @property
    def reads_creation(self) -> bool:
        """Whether a rule asks when a topic that is to be deleted was created."""

    def judge(self, request: JudgedRequest, cluster: ClusterState) -> tuple[Finding, ...]:
        """Return what the rules have against the request."""


class Described(msgspec.Struct, frozen=True):
    """What is to be known of a policy in Python without loading it."""

    name: str
    hash: str = ""
    """SHA-256 of what defines it, when it was loaded; empty for one that judges nothing."""
    kinds: frozenset[str] = frozenset()
    """The requests that it is asked about, by the names of their classes."""


NOBODY = Described(TopicManagementPolicy.__qualname__)
"""The policy of who has none."""


def describe(policy: TopicManagementPolicy) -> Described:
    return Described(_name(policy), policy_hash(policy), frozenset(kind.__name__ for kind in _methods(policy)))


class Verdicts:
    """Makes verdicts of what rules find and a policy in Python says."""

    def __init__(self, policy: Described = NOBODY, rules: Rules | None = None) -> None:
        self.policy = policy
        self.rules = rules
        names = (policy.name if policy.hash else "", "" if rules is None else rules.name)
        self.name = " and ".join(filter(None, names)) or policy.name
        """Of its class, of its files, or both."""
        hashes = [each for each in (policy.hash, "" if rules is None else rules.hash) if each]
        self.policy_hash = sha256(" ".join(hashes).encode()).hexdigest() if len(hashes) > 1 else "".join(hashes)
        """SHA-256, in hexadecimal, of what is in force."""

    def asks(self, request: JudgedRequest) -> bool:
        """Whether the policy in Python judges such a request."""
        return type(request).__name__ in self.policy.kinds

    def found(self, request: JudgedRequest, cluster: ClusterState) -> tuple[tuple[Finding, ...], str | None]:
        """Return what the rules have against the request, and why they could not tell, which is our
        fault.
        """
        if self.rules is None:
            return (), None
        try:
            return self.rules.judge(request, cluster), None
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a panic of the engine is none of Exception's
            return (), f"its rules could not be asked:\n{traceback.format_exc()}"

    def verdict(self, findings: tuple[Finding, ...], fault: str | None, said: Said, seconds: float = 0.0) -> Verdict:
        """Return the verdict that follows from all that was said."""
        decision, message = said
        if fault is not None:
            decision, message = Decision.BROKEN, fault
        elif (denied := refusal(findings)) is not None:
            decision, message = Decision.VIOLATED, sendable(denied.message) or NO_TEXT
        told = None if message is None else encodable(message)
        return Verdict(decision, self.name, told, seconds, findings, self.policy_hash)


class Judge(Verdicts):
    """A policy in Python and the rules beside it, asked in this process."""

    def __init__(self, policy: TopicManagementPolicy | None = None, rules: Rules | None = None) -> None:
        policy = policy or TopicManagementPolicy()
        super().__init__(describe(policy), rules)
        self._methods = _methods(policy)

    @property
    def has_code(self) -> bool:
        """Whether there is a policy in Python that judges something."""
        return bool(self._methods)

    def judge(self, request: JudgedRequest, cluster: ClusterState) -> Verdict:
        """Ask rules and policy, and return the verdict. Raises nothing of theirs."""
        began = time.perf_counter()
        findings, fault = self.found(request, cluster)
        ask = self.question(request, cluster)
        said = (Decision.ALLOWED, None) if ask is None else ask()
        return self.verdict(findings, fault, said, time.perf_counter() - began)

    def question(self, request: JudgedRequest, cluster: ClusterState) -> Callable[[], Said] | None:
        """Return a function that asks the policy in Python and raises nothing; None if it judges no
        such request.
        """
        method = self._methods.get(type(request))
        return None if method is None else partial(answer, method, request, cluster)


def _name(policy: TopicManagementPolicy) -> str:
    return policy.policy_name if isinstance(policy, LegacyPolicies) else type(policy).__qualname__


def _methods(policy: TopicManagementPolicy) -> Mapping[type, Callable[[Any, ClusterState], object]]:
    """Return the policy's method for each kind of request. One that it did not override allows, and
    is never called.
    """
    methods: dict[type, Callable[[Any, ClusterState], object]] = {}
    for request, name in METHODS.items():
        method = getattr(policy, name)
        if getattr(method, "__func__", None) is not getattr(TopicManagementPolicy, name):
            methods[request] = method
    return methods


def answer(method: Callable[..., object], *arguments: object) -> Said:
    """Call a method of a policy. Whatever it raises, also its exceptions' `__str__`,
    stays within.
    """
    try:
        try:
            returned = method(*arguments)
        except PolicyViolation as violation:
            return Decision.VIOLATED, sendable(str(violation)) or NO_TEXT
        if returned is None:
            return Decision.ALLOWED, None
        if inspect.iscoroutine(returned):
            returned.close()
        return Decision.BROKEN, f"it returned {returned!r:.200}, but a policy allows by returning nothing"
    except BaseException as error:  # noqa: BLE001 - a policy's SystemExit is no better than its ValueError
        return Decision.BROKEN, f"it raised:\n{_traceback(error)}"


def _traceback(error: BaseException) -> str:
    """Format a policy's traceback, without the line here that called it."""
    beyond = error.__traceback__.tb_next if error.__traceback__ is not None else None
    return encodable("".join(traceback.format_exception(type(error), error, beyond)))


def sendable(text: str) -> str:
    """Shorten a text to what a string of the protocol can carry, in valid UTF-8."""
    return encodable(text.strip()[:MAX_TEXT])


def encodable(text: str) -> str:
    """Replace what UTF-8 has no form for by question marks: names of files that Python could not
    read have such characters.
    """
    return text.encode("utf-8", "replace").decode()
