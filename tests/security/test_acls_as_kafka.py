"""The index of ACLs decides like Kafka's own AclAuthorizer, which runs in
`tests/java/acl-oracle`.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from minicontroller.protocol.acls import (
    ANYBODY,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.security.acls import AclIndex
from minicontroller.security.authorizer import java_address
from tests.support.java import java
from tests.support.kafka import kafka_libs
from tests.support.maven import needs_maven

ORACLE = Path(__file__).parents[1] / "java" / "acl-oracle" / "AclOracle.java"
LIMIT_SECONDS = 120
WORLDS = 400
QUESTIONS = 25
PRINCIPALS = ("User:a", "User:b", "Group:a", "User:with:colon", "User:ANONYMOUS", "User:*")
HOSTS = ("10.0.0.1", "10.0.0.2", "::1")
NAMES = ("a", "ab", "abc", "abcd", "b", "ba", "*", "a*", "é", "A", "𝄞a", "a.b-c_d")
OPERATIONS = [each for each in AclOperation if each > AclOperation.ANY]
TYPES = [each for each in AclResourceType if each > AclResourceType.ANY]


class World:
    """Some ACLs, the index of them, and the lines that tell them to Kafka's authorizer."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.few_types = random.sample(TYPES, 2)
        everyone = random.random() < 0.3
        self.index = AclIndex(allow_everyone=everyone)
        self.lines = [f"new\t{str(everyone).lower()}"]
        for _ in range(random.randrange(4)):
            self._set_resource()

    def _set_resource(self) -> None:
        random = self._random
        pattern = ResourcePattern(
            random.choice(self.few_types),
            random.choice((*NAMES, WILDCARD, WILDCARD)),
            random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        )
        entries = {*self.index.resources.get(pattern, ()), *(self._entry() for _ in range(random.randint(1, 3)))}
        self.index.set_resource(pattern, entries)
        place = f"{pattern.resource_type}\t{pattern.name}\t{pattern.pattern_type}"
        for each in entries:
            what = f"{each.operation:d}\t{each.permission_type:d}"
            self.lines.append(f"acl\t{place}\t{each.principal}\t{each.host}\t{what}")

    def _entry(self) -> AccessControlEntry:
        random = self._random
        return AccessControlEntry(
            random.choice((*PRINCIPALS[:3], ANYBODY, ANYBODY)),
            random.choice((*map(java_address, HOSTS), WILDCARD, WILDCARD)),
            random.choice(OPERATIONS),
            random.choice((PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY)),
        )

    def questions(self) -> Iterator[tuple[str, bool]]:
        """Yield lines that ask Kafka's authorizer, with the index's answers."""
        for _ in range(QUESTIONS):
            name, (who, host, operation, kind) = self._random.choice(NAMES), self._asked()
            bits = self.index.allowed_to(who, java_address(host), kind, [name])[0]
            yield f"ask\t{who}\t{host}\t{operation}\t{kind}\t{name}", bits & 1 << operation != 0

    def _asked(self) -> tuple[str, str, AclOperation, AclResourceType]:
        choice = self._random.choice
        return choice(PRINCIPALS), choice(HOSTS), choice(OPERATIONS), choice(self.few_types)


@needs_maven
@pytest.mark.slow
def test_decisions_are_those_of_kafkas_authorizer() -> None:
    """Some thousands of random decisions."""
    random = Random(4)
    lines: list[str] = []
    expected: list[tuple[list[str], str, bool]] = []
    for _ in range(WORLDS):
        world = World(random)
        lines += world.lines
        for question, answer in world.questions():
            lines.append(question)
            expected.append((world.lines, question, answer))
    answers = ask_kafka(lines)
    assert len(answers) == len(expected) == WORLDS * QUESTIONS
    wrong = [each for each, answer in zip(expected, answers, strict=True) if each[2] != (answer == "true")]
    assert wrong == []
    assert 1000 < answers.count("true") < len(answers) - 1000


def ask_kafka(lines: list[str]) -> list[str]:
    command = [*java(kafka_libs()), str(ORACLE)]
    text = "\n".join(lines)
    run = subprocess.run(
        command, input=text, capture_output=True, text=True, encoding="utf-8", timeout=LIMIT_SECONDS, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout.splitlines()
