"""Takes out of outputs of tools in what two clusters differ by nature: addresses, ids, times,
folders, and the order of what comes from hash maps. How a tool is used is left out.

This is the only place where outputs are changed before they are recorded or compared.
"""

import json
import re
from collections.abc import Mapping

from tests.conformance.tools.call import Call

TRACE = re.compile(r"^\s++(at .*+|\.\.\. \d++ more)\n?", re.MULTILINE)
"""The lines of a stack trace of Java."""
USAGE = re.compile(r"^(Option +Description|usage: ).*+", re.MULTILINE | re.DOTALL)
"""Kafka's own prose, which is no answer of a cluster."""
PATTERNS = (
    (re.compile(r"(?<=TopicId: )[\w-]{22}"), "AN-ID"),
    (re.compile(r"(?<=Cluster ID: )[\w-]{22}"), "AN-ID"),
    (re.compile(r"(?<=tokenId : )[\w-]{22}"), "AN-ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{3})?)?"), "A-TIME"),
    (re.compile(r"^[\w-]{22}(?=\s+\S{88}\s)", re.MULTILINE), "AN-ID"),
    (re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}==(?!\S)"), "AN-HMAC"),
    (re.compile(r'(?<="logDir":")[^"]*+'), "A-DIRECTORY"),
    (re.compile(r"(?<=\s)NODE-\d  \(\d\)"), "A-NODE  (N)"),  # which is the coordinator
    (re.compile(r"Request Request\([^\n]*+"), "A-DUMP"),  # of the broker's own object
    (re.compile(r"[ \t]++$", re.MULTILINE), ""),
)


class Normaliser:
    """Makes the outputs of one cluster comparable."""

    def __init__(self, addresses: Mapping[int, str], folder: str) -> None:
        self._names = {address: f"NODE-{number}" for number, address in addresses.items()}
        self._names[folder] = "FOLDER"

    def normal(self, call: Call, text: str) -> str:
        for value, name in self._names.items():
            text = text.replace(value, name)
        text = USAGE.sub("USAGE", TRACE.sub("", text))
        for pattern, replacement in PATTERNS:
            text = pattern.sub(replacement, text)
        lines = [in_order(line) for line in text.splitlines()]
        if call.unordered:
            lines = sorted(line.strip() for line in lines)
        return "\n".join(lines).strip("\n")


def in_order(line: str) -> str:
    """Sort the lists of a line that is a JSON document of log directories."""
    if not line.startswith('{"brokers"'):
        return line
    document = json.loads(line)
    for broker in document["brokers"]:
        for directory in broker["logDirs"]:
            directory["partitions"].sort(key=lambda each: each["partition"])
    return json.dumps(document)
