"""Reads who a certificate belongs to: the subject as Java prints it, which is how Kafka names a
client, and whether another certificate has the same owner.

Rule: a subject's text is that of Java's `X500Principal.getName()` (RFC 2253) to the character,
because ACLs and `ssl.principal.mapping.rules` were written for it. TLS does not limit its length,
so it is measured before it is read.

`ssl.principal.mapping.rules` turn a subject into a user's name, and mean what they mean to Kafka.
Their patterns are run on names that strangers chose, so they are RE2's, which take time in
proportion to the name; what RE2 does not know (a look-around, a back reference) is a mistake in the
configuration.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence

from cryptography import x509

from ..cluster.errors import ConfigurationError

MAX_SUBJECT_BYTES = 8 * 1024
"""The longest subject, encoded, that names a client."""
KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""RFC 2253, 2.3: every other attribute is printed by its number, with its bytes."""
TEXTS = frozenset({12, 19, 20, 22, 27, 30})
"""DER's tags of UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString. Java
reads the bytes of each as UTF-8.
"""
ESCAPED = {ord(character): f"\\{character}" for character in ',=+<>#;"\\'} | {0: "\\00"}
SPACES = " \r"
MAX_RULES = 10_000
"""The longest text of rules, in characters."""
DEFAULT = "DEFAULT"
RULE = re.compile(r"DEFAULT|RULE:(?P<pattern>(?:\\.|[^\\/])*+)/(?P<new>(?:\\.|[^\\/])*+)/(?P<case>[LU]?)", re.DOTALL)
END_OF_RULE = re.compile(r"\s*+(?:,\s*+|\Z)")

Rule = Callable[[str], str | None]
"""Returns the name that a rule makes of a subject, or None if it does not apply."""
Pieces = Sequence[str | int]
"""A replacement: texts, and numbers of groups."""


def distinguished_name(certificate: bytes) -> str:
    """Return the subject of a certificate in DER. Raises ValueError for one that is too long, or
    that cannot be read: OpenSSL accepts more than the library that reads the name.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of lengths that X.520 does not allow
            subject = x509.load_der_x509_certificate(certificate).subject.public_bytes()
    except (ValueError, TypeError, x509.InvalidVersion):
        raise ValueError("its certificate is not well-formed") from None
    return name_from_der(subject)


def name_from_der(subject: bytes) -> str:
    """Print an X.501 name. Raises ValueError if it is too long."""
    if len(subject) > MAX_SUBJECT_BYTES:
        raise ValueError(f"a subject of more than {MAX_SUBJECT_BYTES} bytes names nobody")
    ((_, sets, _),) = _values(subject)
    return ",".join(reversed(["+".join(_attributes(content)) for _, content, _ in _values(sets)]))


def ensure_same_owner(
    before: x509.Certificate, after: x509.Certificate, *, other_name: bool, fewer_names: bool
) -> None:
    """Raise ConfigurationError if a certificate has another subject than the one before it, or
    lacks one of its alternative names, unless that is allowed. Kafka refuses the same.
    """
    if not other_name and before.subject != after.subject:
        old, new = (name_from_der(each.subject.public_bytes()) for each in (before, after))
        raise ConfigurationError(
            f"Keystore DistinguishedName does not match: existing={old}, new={new} (ssl.allow.dn.changes)."
        )
    lost = _alternative_names(before) - _alternative_names(after)
    if not fewer_names and lost:
        names = ", ".join(sorted(lost))
        raise ConfigurationError(
            f"Keystore SubjectAltNames do not match: {names} would be missing (ssl.allow.san.changes)."
        )


def _alternative_names(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return set()
    return {str(getattr(name, "value", name)) for name in names}


def _attributes(content: bytes) -> Iterator[str]:
    for _, attribute, _ in _values(content):
        (_, number, _), (tag, data, whole) = _values(attribute)
        name = _object_identifier(number)
        keyword = KEYWORDS.get(name)
        if keyword is None or tag not in TEXTS:
            yield f"{keyword or name}=#{whole.hex()}"
        else:
            yield f"{keyword}={_escaped(data.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    escaped = text.translate(ESCAPED)
    lead = len(escaped) - len(escaped.lstrip(SPACES))
    trail = len(escaped.rstrip(SPACES)) if lead < len(escaped) else lead
    return "".join(f"\\{character}" for character in escaped[:lead]) + (
        escaped[lead:trail] + "".join(f"\\{character}" for character in escaped[trail:])
    )


def _object_identifier(data: bytes) -> str:
    arcs, value = list[int](), 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            arcs.append(value)
            value = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _values(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the tag, the content and the whole of each value in DER that stands one behind another.
    The certificate's parser has checked them.
    """
    start = 0
    while start < len(data):
        tag, size, begin = data[start], data[start + 1], start + 2
        if size >= 0x80:
            begin += size & 0x7F
            size = int.from_bytes(data[start + 2 : begin])
        yield tag, data[begin : begin + size], data[start : begin + size]
        start = begin + size


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
