"""Rules and a policy in Python as one judge: what they have to say of a request, and what comes of it.

Rule: a verdict allows for one reason only: all were asked and none had anything against the request. A violation is the policy's word to the
caller; an exception, a returned value and rules that cannot be asked are faults, and refuse as well (K201-11). The first that denies gives
the answer, the rules coming first.

Nothing here waits. The controller puts the policy in Python into a thread with a time limit between `found` and `verdict`; who has no need
of that, a back-test for instance, takes `judge`, which is all three.
"""

import inspect
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from .interface import (
    AlterBrokerConfigsRequest,
    AlterLoggersRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from .legacy import LegacyPolicies
from .loading import policy_hash
from .verdict import Decision, Finding, Verdict, refusal

if TYPE_CHECKING:
    from .rules import RuleSet

NO_TEXT = "Request parameters do not satisfy the configured policy."
MAX_TEXT = 8_000
"""Characters that fit a string of the protocol, whatever they are."""

Judged = PolicyRequest | AlterBrokerConfigsRequest | AlterLoggersRequest
Said = tuple[Decision, str | None]
"""Of a policy in Python: what it decided, and why if it did not allow."""


class Judge:
    """One policy in Python and the rules beside it."""

    def __init__(
        self,
        policy: TopicManagementPolicy | None = None,
        rules: "RuleSet | None" = None,
        *,
        class_hash: str | None = None,
    ) -> None:
        """`class_hash` is what `policy_hash` gave when the policy was loaded; else it is asked now."""
        self._policy = policy or TopicManagementPolicy()
        self._class_hash = policy_hash(self._policy) if class_hash is None else class_hash
        self._methods = _methods(self._policy)
        self.rules = rules
        class_name = _name(self._policy)
        names = (class_name if self._class_hash else "", "" if rules is None else rules.name)
        self.name = " and ".join(filter(None, names)) or class_name
        """Of its class, of its files, or both."""
        both = f"{self._class_hash} {rules.hash}" if rules is not None and rules.hash else ""
        self.policy_hash = sha256(both.encode()).hexdigest() if both else self._class_hash
        """SHA-256, in hexadecimal, of what is in force."""

    @property
    def has_code(self) -> bool:
        """Whether there is a policy in Python that is asked about something."""
        return bool(self._methods)

    def with_rules(self, rules: "RuleSet | None") -> "Judge":
        """The same policy, as it was loaded, beside other rules."""
        return Judge(self._policy, rules, class_hash=self._class_hash)

    def judge(self, request: Judged, cluster: ClusterState) -> Verdict:
        """What comes of asking rules and policy, here and now. Raises nothing of theirs."""
        began = time.perf_counter()
        findings, fault = self.found(request, cluster)
        ask = self.question(request, cluster)
        said = (Decision.ALLOWED, None) if ask is None else ask()
        return self.verdict(findings, fault, said, time.perf_counter() - began)

    def found(self, request: Judged, cluster: ClusterState) -> tuple[tuple[Finding, ...], str | None]:
        """What the rules have against the request, and why they could not tell, which is our fault."""
        if self.rules is None:
            return (), None
        try:
            return self.rules.judge(request, cluster), None
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a panic of the engine is none of Exception's
            return (), f"its rules could not be asked:\n{traceback.format_exc()}"

    def question(self, request: Judged, cluster: ClusterState) -> Callable[[], Said] | None:
        """What to call to ask the policy in Python; None where it does not care. What it raises stays within."""
        method = self._methods.get(type(request))
        return None if method is None else partial(answer, method, request, cluster)

    def verdict(self, findings: tuple[Finding, ...], fault: str | None, said: Said, seconds: float = 0.0) -> Verdict:
        """What comes of all that was said."""
        decision, message = said
        if fault is not None:
            decision, message = Decision.BROKEN, fault
        elif (denied := refusal(findings)) is not None:
            decision, message = Decision.VIOLATED, sendable(denied.message) or NO_TEXT
        told = None if message is None else encodable(message)
        return Verdict(decision, self.name, told, seconds, findings, self.policy_hash)


def _name(policy: TopicManagementPolicy) -> str:
    return policy.policy_name if isinstance(policy, LegacyPolicies) else type(policy).__qualname__


def _methods(policy: TopicManagementPolicy) -> Mapping[type, Callable[[Any, ClusterState], object]]:
    """What to call for a request. A method that the policy did not override allows, and costs nothing."""
    methods: dict[type, Callable[[Any, ClusterState], object]] = {}
    for request, name in (
        (CreateTopicRequest, "validate_create_topic"),
        (AlterTopicRequest, "validate_alter_topic"),
        (DeleteTopicRequest, "validate_delete_topic"),
        (DeleteRecordsRequest, "validate_delete_records"),
        (AlterBrokerConfigsRequest, "validate_alter_broker_configs"),
        (AlterLoggersRequest, "validate_alter_loggers"),
    ):
        method = getattr(policy, name)
        if getattr(method, "__func__", None) is not getattr(TopicManagementPolicy, name):
            methods[request] = method
    return methods


def answer(method: Callable[..., object], *arguments: object) -> Said:
    """Ask a policy. All that is the policy's stays within, its exceptions' `__str__` included."""
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
    """Of the policy: without the line here that called it."""
    beyond = error.__traceback__.tb_next if error.__traceback__ is not None else None
    return encodable("".join(traceback.format_exception(type(error), error, beyond)))


def sendable(text: str) -> str:
    """What a string of the protocol can carry: valid UTF-8, and not too long."""
    return encodable(text.strip()[:MAX_TEXT])


def encodable(text: str) -> str:
    """The text, with question marks for what UTF-8 has no form for: names of files that Python could not read have such characters."""
    return text.encode("utf-8", "replace").decode()
