"""Which texts can be names of topics, principals, hosts and APIs, so that a condition or a pattern
that nothing can ever meet is a mistake.

Rule: each function returns the end of a sentence that begins with the text, or None if the text, or
something that its pattern matches, is possible.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from ipaddress import ip_address

from .matching import USER
from .vocabulary import ELECTION_TYPES, OPERATION_OF_API

TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
HOST_CHARACTERS = frozenset("0123456789abcdefABCDEF:.%")
SIGNS = frozenset("*?")
MAX_TOPIC = 249
USER_TYPE = "User:"
APIS = (
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "AlterPartitionReassignments",
    "DeleteRecords",
    "Metadata",
    *OPERATION_OF_API,
)
"""Kafka's names of the APIs whose requests are judged; Metadata creates topics automatically."""
KINDS = ("acl", "user", "client_quota", "token", "group", "client_metrics", "topic", "replica")
OPERATION_KINDS = ("set", "delete", "append", "subtract")
WORDS: Mapping[str, tuple[str, ...]] = {
    "api": APIS,
    "kind": KINDS,
    "election_type": ELECTION_TYPES,
}
"""The only values of some fields of a request."""
ACL_TYPES = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
ACL_PATTERNS = ("LITERAL", "PREFIXED")
PLACEHOLDER = re.compile(r"(?P<of_a_class>\\[pPx])?\{(?P<name>[A-Za-z_]\w{0,99}+)\}")
LITERAL_REGEX = re.compile(r"/\^?(?P<text>[\w.@-]++)\$?/")
LITERAL_BEGINNING = re.compile(r"\^(?P<text>[\w.@-]++)(?P<end>\$?)")
WILDCARD = re.compile(r"[*?]")
OPTIONAL = re.compile(r"\)(?:[*?]|\{0)|\|")
"""The signs of a regular expression after which a part of it need not match."""
REGEX_PART = re.compile(
    r"\\[pP]\{\w{0,999}+\}|\\x\{\w{0,999}+\}|\\.|\[\^?\]?(?:\\.|\[:\^?\w{1,99}+:\]|[^\]\\]){0,999}+\]|\{\d{1,9}+(?:,\d{0,999}+)?\}|.",
    re.DOTALL,
)
MEANING = frozenset(".^$*+?()[]{}|\\")


def near(text: str, known: Iterable[str]) -> str:
    """Return what to write instead of an unknown word: the nearest known one, or all of them."""
    words = list(known)
    folded = {word.lower(): word for word in words}
    found = get_close_matches(text.lower(), list(folded), 1, 0.6)
    return f"; did you mean {folded[found[0]]}?" if found else f"; known are {', '.join(words)}"


def is_regex(pattern: str) -> bool:
    return len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/")


def placeholder(text: str, known: tuple[str, ...] = (USER,)) -> str | None:
    """Return the mistake that a text has a placeholder which stands for nothing."""
    for found in PLACEHOLDER.finditer(text):
        shown = f"{{{found['name']}}}"
        if not found["of_a_class"] and shown not in known:
            return f"has the placeholder {shown}, which stands for nothing{f'; there is {known[0]}' if known else ''}"
    return None


def impossible_regex(pattern: str, allowed: frozenset[str]) -> str | None:
    """Return why a regular expression can match no text of these characters, as far as that is
    certain: it names another one in a place that must match.
    """
    if OPTIONAL.search(pattern) or "(?" in pattern:
        return None
    tokens = REGEX_PART.findall(pattern.replace(USER, ""))
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        literal = token[1] if len(token) == 2 and token[0] == "\\" and not token[1].isalnum() else token
        is_literal = len(literal) == 1 and (literal is not token or literal not in MEANING)
        if is_literal and literal not in allowed and following not in {"*", "?"} and not following.startswith("{0"):
            return f"has {literal!r} in it"
    return None


# ------------------------------------------------------------------ topics, hosts


def topic(text: str) -> str | None:
    if text in {"", ".", ".."} or len(text) > MAX_TOPIC:
        return "is the name of no topic"
    return part_of_topic(text)


def part_of_topic(text: str) -> str | None:
    strange = next((character for character in text if character not in TOPIC_CHARACTERS), None)
    return None if strange is None else f"can match no topic: no name has {strange!r} in it"


def topic_regex(pattern: str) -> str | None:
    why = impossible_regex(pattern, TOPIC_CHARACTERS)
    return None if why is None else f"can match no topic: it {why}, and no name has that"


def topic_pattern(pattern: str) -> str | None:
    if (fault := placeholder(pattern)) is not None:
        return fault
    if is_regex(pattern):
        return topic_regex(pattern[1:-1])
    return part_of_topic("".join(each for each in pattern.replace(USER, "") if each not in SIGNS))


def host(text: str) -> str | None:
    if (fault := part_of_host(text)) is not None:
        return fault
    try:
        ip_address(text)
    except ValueError:
        return "can match no client: it is no IP address"
    return None


def part_of_host(text: str) -> str | None:
    strange = next((character for character in text if character not in HOST_CHARACTERS), None)
    return None if strange is None else f"can match no client: no IP address has {strange!r} in it"


def host_regex(pattern: str) -> str | None:
    why = impossible_regex(pattern, HOST_CHARACTERS)
    return None if why is None else f"can match no client: it {why}, and no IP address has that"


def host_pattern(pattern: str) -> str | None:
    """Whether a pattern of a rule can match the address of a client."""
    if is_regex(pattern):
        return host_regex(pattern[1:-1])
    if SIGNS.isdisjoint(pattern):
        return host(pattern)
    return part_of_host("".join(each for each in pattern if each not in SIGNS))


# ------------------------------------------------------------------ principals


def principal(text: str) -> str | None:
    kind, colon, _ = text.partition(":")
    if not colon:
        return f"can match no principal: write it with its type, as {USER_TYPE}{text}"
    if f"{kind}:" != USER_TYPE and f"{kind.strip()}:".lower() == USER_TYPE.lower():
        return f"can match no principal; did you mean {USER_TYPE}{text.partition(':')[2].strip()}?"
    return None


def beginning_of_principal(text: str) -> str | None:
    return None if not text or USER_TYPE.startswith(text) else principal(text)


def principal_pattern(pattern: str) -> str | None:
    if is_regex(pattern):
        literal = LITERAL_REGEX.fullmatch(pattern)
        return None if literal is None else principal(literal["text"])
    if (fault := placeholder(pattern, ())) is not None:
        return fault
    beginning = WILDCARD.split(pattern, maxsplit=1)[0]
    return principal(pattern) if beginning == pattern else beginning_of_principal(beginning)


def principal_regex(pattern: str) -> str | None:
    """Whether a regular expression, which need not match the whole of it, can match a principal."""
    whole = LITERAL_BEGINNING.fullmatch(pattern)
    if whole is None:
        return None
    return principal(whole["text"]) if whole["end"] else beginning_of_principal(whole["text"])


# ------------------------------------------------------------------ resources


def acl_pattern(pattern: str) -> str | None:
    """Whether a pattern of a rule can match the name of a resource pattern of ACLs."""
    if is_regex(pattern) or pattern[:1] in SIGNS:
        return None
    kind, *rest = pattern.split(":", 2)
    known = [each for each in ACL_TYPES if _may_begin(kind, each, is_whole=bool(rest))]
    patterns = [each for each in ACL_PATTERNS if not rest or _may_begin(rest[0], each, is_whole=len(rest) > 1)]
    if known and patterns and (rest or not SIGNS.isdisjoint(pattern)):
        return None
    name = rest[-1] if rest else pattern
    return f"can match no ACL: these are named TYPE:PATTERN:NAME, such as Topic:LITERAL:{name}"


def _may_begin(text: str, word: str, *, is_whole: bool) -> bool:
    beginning = WILDCARD.split(text, maxsplit=1)[0]
    return word.startswith(beginning) if beginning != text or not is_whole else word == text


def quota_pattern(pattern: str) -> str | None:
    """Whether a pattern of a rule can match the name of an entity with quotas."""
    if is_regex(pattern) or not SIGNS.isdisjoint(pattern) or pattern.partition("=")[0] in {"user", "client-id", "ip"}:
        return None
    return f"can match no quota: these are named by what they are about, such as user={pattern}"


RESOURCES: Mapping[frozenset[str], Callable[[str], str | None]] = {
    frozenset({"create_acls", "delete_acls"}): acl_pattern,
    frozenset({"alter_client_quotas"}): quota_pattern,
    frozenset({"elect_leaders", "alter_replica_log_dirs"}): topic_pattern,
}
"""Whether a pattern can match the name of a resource, by the operations on such resources."""


def resource_pattern(operations: frozenset[str]) -> Callable[[str], str | None]:
    """Return the function for patterns of resources of a rule that judges these operations."""
    for about, possible in RESOURCES.items():
        if operations and operations <= about:
            return possible
    return placeholder
