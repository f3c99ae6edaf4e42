"""Kafka's `ssl.principal.mapping.rules`: how the subject of a certificate becomes a user's name.

Rule: rules mean what they mean to Kafka. Their patterns are run on names that strangers chose, so
they are RE2's, which take time in proportion to the name; what RE2 does not know (a look-around, a
back reference) is a mistake in the configuration.
"""

import re
from collections.abc import Callable, Sequence

MAX_RULES = 10_000
"""The longest text of rules, in characters."""
DEFAULT = "DEFAULT"
RULE = re.compile(r"DEFAULT|RULE:(?P<pattern>(?:\\.|[^\\/])*+)/(?P<new>(?:\\.|[^\\/])*+)/(?P<case>[LU]?)", re.DOTALL)
END_OF_RULE = re.compile(r"\s*+(?:,\s*+|\Z)")

Rule = Callable[[str], str | None]
"""Returns the name that a rule makes of a subject, or None if it does not apply."""
Pieces = Sequence[str | int]
"""A replacement: texts, and numbers of groups."""


class MappingFault(ValueError):  # noqa: N818 - it is what is wrong with the rules
    """The rules cannot be used. The message is a sentence without its subject."""


class PrincipalMapper:
    """Maps subjects to names by the first rule that applies."""

    def __init__(self, text: str = DEFAULT) -> None:
        """Read rules. Raises MappingFault."""
        if len(text) > MAX_RULES:
            raise MappingFault(f"has more than {MAX_RULES} characters")
        self._rules = _rules(text.strip())

    def name_of(self, subject: str) -> str:
        """Return the name of a user. Raises ValueError if no rule applies."""
        for rule in self._rules:
            name = rule(subject)
            if name is not None:
                return name
        raise ValueError("no rule of ssl.principal.mapping.rules applies to the subject of its certificate")


def _rules(text: str) -> list[Rule]:
    rules: list[Rule] = []
    position = 0
    while position < len(text):
        rule = RULE.match(text, position)
        end = END_OF_RULE.match(text, position if rule is None else rule.end())
        if end is None:
            raise MappingFault(
                f"is not a list of DEFAULT and RULE:pattern/replacement/, each with L or U behind it, from {text[position : position + 40]!r} on"
            )
        if rule is not None:
            rules.append(_default if rule["pattern"] is None else _rule(rule["pattern"], rule["new"], rule["case"]))
        position = end.end()
    return rules


def _default(subject: str) -> str:
    return subject


def _rule(pattern: str, replacement: str, case: str) -> Rule:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0]
        told = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise MappingFault(f"has a pattern that RE2 does not know, {pattern!r}: {told}") from None
    pieces = _pieces(replacement, compiled.groups)

    def apply(subject: str) -> str | None:
        if compiled.fullmatch(subject) is None:
            return None
        new: str = compiled.sub(lambda match: "".join(_piece(match, piece) for piece in pieces), subject)
        return new.lower() if case == "L" else new.upper() if case == "U" else new

    return apply


def _piece(match: re.Match[str], piece: str | int) -> str:
    return piece if isinstance(piece, str) else match.group(piece) or ""


def _pieces(replacement: str, groups: int) -> Pieces:
    """Read Java's form of a replacement: `$1` is a group, and a backslash takes the next character
    as it is. As in Kafka, a number that no group has is text, unless there are no groups at all.
    """
    pieces: list[str | int] = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        position += 1
        if character == "\\":
            pieces.append(replacement[position])  # the pattern of a rule lets none stand at the end
            position += 1
        elif character == "$":
            number, position = _number_of_group(replacement, position, groups)
            pieces.append("$" if number is None else number)
        else:
            pieces.append(character)
    return pieces


def _number_of_group(text: str, start: int, groups: int) -> tuple[int | None, int]:
    """Read the number behind a `$`, of as many digits as there are groups for. Return None and
    `start` if the `$` stands for itself.
    """
    digits = text[start : start + 1]
    if not (digits.isascii() and digits.isdigit()):
        raise MappingFault(f"has a replacement whose $ names no group by number, {text!r} (\\$ is the character)")
    if int(digits) > groups:
        if groups == 0:
            raise MappingFault(f"has a replacement, {text!r}, that names a group, and a pattern without one")
        return None, start
    end = start + 1
    while text[end : end + 1].isascii() and text[end : end + 1].isdigit() and int(text[start : end + 1]) <= groups:
        end += 1
    return int(text[start:end]), end
