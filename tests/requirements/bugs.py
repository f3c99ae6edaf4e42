"""A bug against each of the weightiest clauses: a text of the program, and what stands there
instead.

Whoever changes such a text changes the bug with it, so that it breaks the clause as before;
`python -m tests.requirements.plant CLAUSE` shows that.
"""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
HANDLERS = "controller/handlers"


class Bug(NamedTuple):
    clause: str
    what: str
    file: str
    text: str
    instead: str

    @property
    def has_its_place(self) -> bool:
        return (ROOT / self.file).read_text().count(self.text) == 1

    def plant(self, tree: Path) -> None:
        """Put the bug into a copy of the program."""
        file = tree / self.file
        file.write_text(file.read_text().replace(self.text, self.instead))


BUGS = (
    Bug(
        "K4-2", "a topic that is refused has the whole request refused", f"{HANDLERS}/parts.py",
        "except Refusal as refusal:\n        return Outcome(change, refusal=refusal.with_traceback(None))",
        "except ArithmeticError:\n        raise",
    ),
    Bug(
        "K4-3", "a refused growth has no text", "admin/create_partitions.py",
        'raise Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partitions.")',
        "raise Refusal(ErrorCode.INVALID_PARTITIONS)",
    ),
    Bug(
        "K4-6a", "an answer does not wait for the other nodes", "controller/active/propagation.py",
        "while (behind := self._behind(number, request, broker_id)) and not self._ended:",
        "while (behind := []) and not self._ended:",
    ),
    Bug(
        "K4-C1", "a node that is not the controller says that it cannot know", "network/serving/forwarding.py",
        "raise Refusal(ErrorCode.NOT_CONTROLLER, reason",
        "raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, reason",
    ),
    Bug(
        "K4-C2a", "a topic may be named twice", f"{HANDLERS}/create_topics.py",
        "if self.occurrences[wanted.name] > 1:",
        "if self.occurrences[wanted.name] > 2:",
    ),
    Bug(
        "K4-C3", "everybody may create topics", f"{HANDLERS}/create_topics.py",
        "or context.may(CREATE_TOPIC, name)",
        "or bool(name)",
    ),
    Bug(
        "K4-C4d", "a topic without a number of partitions has one", "admin/create_topics.py",
        'partitions = config.integer("num.partitions")',
        "partitions = 1",
    ),
    Bug(
        "K4-C6", "without time nothing is carried out that is not planned yet", f"{HANDLERS}/changes.py",
        "carry_out(in_any_case=timeout_ms <= 0)",
        "carry_out(in_any_case=False)",
    ),
    Bug(
        "K4-C7", "what is late is answered as a success", f"{HANDLERS}/changes.py",
        "    for outcome in late:\n        outcome.refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT)\n",
        "",
    ),
    Bug(
        "K4-C8b", "a name is checked before the counts", "admin/create_topics.py",
        "    brokers = placed_brokers(image)\n    counts",
        "    brokers = placed_brokers(image)\n    check_name(image, wanted.name)\n    counts",
    ),
    Bug(
        "K4-D1b", "a topic that an earlier part of a long request deletes is not known", f"{HANDLERS}/delete_topics.py",
        "if (before := self._carried_out.get(key)) is not None:",
        'if (before := self._carried_out.get(b"")) is not None:',
    ),
    Bug(
        "K4-D3", "a topic that is being deleted is marked again", "controller/active/topic_writing.py",
        "is_marked = draft.image.topics[marked.name].marked_for_deletion",
        "is_marked = marked.name in draft.image.leftover_configs",
    ),
    Bug(
        "K4-D4", "everybody may delete topics", f"{HANDLERS}/delete_topics.py",
        "if name in self.denied or not self._context.may(DELETE_TOPIC, name):",
        "if not name:",
    ),
    Bug(
        "K4-A3b", "a topic may shrink", "admin/create_partitions.py",
        "if wanted.count < current:",
        "if wanted.count < 0:",
    ),
    Bug(
        "K590-2c", "a commit does not look whether another controller was elected", "controller/active/writer.py",
        "operations: list[Operation] = [self._fence]",
        "operations: list[Operation] = []",
    ),
    Bug(
        "K590-4a", "a forwarded request is forwarded again", "network/serving/forwarding.py",
        "if not ctx.forwarded and forwarder is not None:",
        "if forwarder is not None:",
    ),
    Bug(
        "K590-5a", "the controller takes the node for the client", "network/serving/dispatcher.py",
        "origin=_forwarded_origin(caller, header)\n            if forwarded\n",
        "origin=_forwarded_origin(caller, header)\n            if forwarded and not caller.host\n",
    ),
    Bug(
        "K590-6b", "anybody may forward for others, who are not named then", "network/serving/dispatcher.py",
        "if origin is not None and not ctx.forwarded:",
        "if origin is not None and ctx.forwarded and not ctx.caller.from_peer:",
    ),
    Bug(
        "K201-3", "the policy does not see the earlier elements of a batch", f"{HANDLERS}/planning.py",
        "judge(request, view(draft.image, port.policy.topic_states), context)",
        "judge(request, view(port.cache.image, port.policy.topic_states), context)",
    ),
    Bug(
        "K201-6", "a violation has no message", "admin/policy/runner.py",
        "said_to_the_caller = verdict.message if verdict.decision is PolicyOutcome.VIOLATED else None",
        "said_to_the_caller = None",
    ),
    Bug(
        "K201-7a", "old versions are answered POLICY_VIOLATION", f"{HANDLERS}/planning.py",
        "or version >= since or outcome.judgement is None:",
        "or version >= 0 or outcome.judgement is None:",
    ),
    Bug(
        "K201-11", "a policy that fails allows", "admin/policy/runner.py",
        "if verdict.decision is PolicyOutcome.ALLOWED:",
        "if verdict.decision is not PolicyOutcome.VIOLATED:",
    ),
    Bug(
        "U-3c", "what the rules forbid passes the gateway", "gateway/judging/judge.py",
        "            if self.enforces:\n                each.refuse(refusal)\n            elif each.outcome.judgement is None",
        "            if each.outcome.judgement is None",
    ),
)  # fmt: skip
