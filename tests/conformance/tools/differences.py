"""The lines that Kafka's tools write otherwise with our nodes on purpose: docs/conformance.md gives
the reason of each, under the same name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.tools.running import Outcome

Adapt = Callable[[str], str]


@dataclass(frozen=True)
class Difference:
    name: str
    """The heading in docs/conformance.md that gives the reason."""
    lines: str
    """A pattern that matches the whole line of each call that it concerns."""
    adapt: Adapt
    """Turns what was recorded into what is expected of us."""


def replaced(pattern: str, replacement: str) -> Adapt:
    """Every match is replaced."""
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda text: compiled.sub(replacement, text)


FEATURE = "Feature: minicontroller.validate.deletes\tSupportedMinVersion: 1\tSupportedMaxVersion: 1"
NOT_SERVED = (
    "Produce|Fetch|OffsetForLeaderEpoch|JoinGroup|Heartbeat|SyncGroup"
    "|AddPartitionsToTxn|AddOffsetsToTxn|EndTxn|TxnOffsetCommit"
)

DIFFERENCES = [
    Difference("no-dump-of-objects", "kafka-.*FOLDER/alice", replaced("A-DUMP", "Cluster authorization failed.")),
    Difference(
        "a-feature-of-ours",
        "kafka-features( .*)? describe",
        lambda text: f"{text}{FEATURE}\tFinalizedVersionLevel: 0\tEpoch: 0",
    ),
    Difference(
        "only-what-is-served",
        "kafka-broker-api-versions",
        replaced(rf"^({NOT_SERVED})(\(\d+\)): .*", r"\1\2: UNSUPPORTED,"),
    ),
]


def expected(recorded: Outcome) -> Outcome:
    """Return the recorded outcome, changed by every difference that concerns its call."""
    text = recorded.text
    for difference in DIFFERENCES:
        if re.fullmatch(difference.lines, recorded.line):
            text = difference.adapt(text)
    return Outcome(recorded.line, text.rstrip("\n"), recorded.code)
