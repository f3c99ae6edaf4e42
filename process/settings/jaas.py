"""Parses `sasl.jaas.config`, the credentials of this node and of the users it accepts, and the file
that `java.security.auth.login.config` names.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="..."
    user_alice="...";

The file has such an entry for each of its sections:

    internal.KafkaServer {
        org.apache.kafka.common.security.plain.PlainLoginModule required username="node" ...;
    };
    Client {
        org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" ...;
    };

Rule: a section means what it means to Kafka: that of a listener goes before the one for all, and
`Client` is the login at ZooKeeper. No exception message and no repr contains a value, because any
value may be a secret.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from ...cluster.errors import ConfigurationError
from .environment import JAAS_FILE

PLAIN_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_LOGIN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LOGIN_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "PLAIN": PLAIN_LOGIN_MODULE,
        "SCRAM-SHA-256": SCRAM_LOGIN_MODULE,
        "SCRAM-SHA-512": SCRAM_LOGIN_MODULE,
        "OAUTHBEARER": OAUTHBEARER_LOGIN_MODULE,
    }
)
"""Kafka's login module by the mechanisms that are offered."""

_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(
    r"""(?P<skipped>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
      | "(?P<double>(?:\\.|[^"\\\n])*+)"
      | '(?P<single>(?:\\.|[^'\\\n])*+)'
      | (?P<sign>[=;])
      | (?P<word>(?:(?!//|/\*)[^\s=;"'])++)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v"}
_USER = "user_"


class JaasError(ValueError):
    """A JAAS configuration is invalid. Each of its mistakes is the end of a sentence, which
    contains no value.
    """

    def __init__(self, *mistakes: str) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


class JaasConfig(msgspec.Struct, frozen=True):
    """One login module and its options."""

    login_module: str
    options: Mapping[str, str]

    @property
    def username(self) -> str | None:
        """The name under which this node authenticates to other nodes."""
        return self.options.get("username")

    @property
    def password(self) -> str | None:
        return self.options.get("password")

    @property
    def users(self) -> dict[str, str]:
        """The password of each accepted user by name (PlainLoginModule's `user_<name>`)."""
        return {name.removeprefix(_USER): value for name, value in self.options.items() if name.startswith(_USER)}

    def __repr__(self) -> str:
        return f"JaasConfig({self.login_module!r}, options {', '.join(map(repr, self.options))})"


class _JaasToken(msgspec.Struct, frozen=True):
    text: str
    is_sign: bool = False

    def is_a(self, sign: str) -> bool:
        return self.is_sign and self.text == sign


def parse_jaas(text: str) -> JaasConfig:
    """Parse a JAAS configuration of one login module. Raises JaasError."""
    modules = parse_modules(text)
    if len(modules) != 1:
        raise JaasError(f"exactly one login module belongs here, and there are {len(modules)}")
    return modules[0]


def parse_modules(text: str) -> tuple[JaasConfig, ...]:
    """Parse login modules, each of which ends with a semicolon. Raises JaasError."""
    tokens = list(_tokens(text))
    ends = [index for index, token in enumerate(tokens) if token.is_a(";")]
    if not ends or ends[-1] != len(tokens) - 1:
        raise JaasError("a login module and its options end with a semicolon, and here is none at the end")
    mistakes: list[str] = []
    begins = [0, *(end + 1 for end in ends)]
    modules = [_module(tokens[begin:end], mistakes) for begin, end in zip(begins, ends, strict=False)]
    if mistakes:
        raise JaasError(*dict.fromkeys(mistakes))
    return tuple(modules)


def _module(tokens: list[_JaasToken], mistakes: list[str]) -> JaasConfig:
    if len(tokens) < 2 or tokens[0].is_sign or tokens[1].is_sign:
        mistakes.append("it begins with the class of a login module and a control flag (required)")
        return JaasConfig("", {})
    if tokens[1].text.lower() not in _FLAGS:
        mistakes.append(f"after the class of the login module one of {', '.join(sorted(_FLAGS))} must follow")
    return JaasConfig(tokens[0].text, _options(tokens[2:], mistakes))


def _options(tokens: list[_JaasToken], mistakes: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for number in range(0, len(tokens), 3):
        match tokens[number : number + 3]:
            case [_JaasToken(is_sign=False) as name, _JaasToken("=", True), _JaasToken(is_sign=False) as value]:
                options[name.text] = value.text
            case _:
                mistakes.append(f"option {number // 3 + 1} is not of the form name=value")
                break  # from here on what is a name and what a value is anybody's guess
    return options


def _tokens(text: str) -> Iterator[_JaasToken]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError(f"what begins at character {position + 1} is neither a word nor a quoted text that ends")
        position = match.end()
        if match["sign"]:
            yield _JaasToken(match["sign"], is_sign=True)
        elif match["word"]:
            yield _JaasToken(match["word"])
        elif not match["skipped"]:
            yield _JaasToken(_ESCAPE.sub(_unescaped, match["double"] or match["single"] or ""))


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPED.get(escape, escape)


Sections = Mapping[str, tuple[JaasConfig, ...]]
AT_ZOOKEEPER, OF_LISTENERS = "Client", "KafkaServer"
OF_JAVA = "${"
"""The sign in a value of a JAAS file in whose place Java puts one of its system properties."""
MAX_FILE_CHARACTERS = 1_000_000
_PIECE = re.compile(
    r"""(?P<skipped>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
      | (?P<quoted>"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+')
      | (?P<sign>[{};])
      | (?P<word>(?:(?!//|/\*)[^\s{};"'])++)""",
    re.VERBOSE | re.DOTALL,
)


def read_jaas_file(file: str) -> Sections:
    """Read the sections of the JAAS file that a node's configuration names. Raises
    ConfigurationError with all mistakes.
    """
    try:
        with Path(file).open(encoding="utf-8") as opened:
            sections = parse_jaas_file(opened.read(MAX_FILE_CHARACTERS + 1))
        if not any(map(_is_read, sections)):
            raise JaasError(f"there is no section {AT_ZOOKEEPER}, {OF_LISTENERS} or <listener>.{OF_LISTENERS}")
        _refuse_properties_of_java(sections)
    except JaasError as error:
        raise ConfigurationError("\n".join(f"{JAAS_FILE}: {file}: {each}." for each in error.mistakes)) from None
    except (OSError, ValueError) as error:
        reason = (
            "it is not text in UTF-8"
            if isinstance(error, UnicodeError)
            else getattr(error, "strerror", None) or str(error)
        )
        raise ConfigurationError(f"{JAAS_FILE}: {file}: {reason}.") from None
    return sections


def section_of(sections: Sections, listener: str) -> str | None:
    return next((name for name in (f"{listener.lower()}.{OF_LISTENERS}", OF_LISTENERS) if name in sections), None)


def login_of_mechanism(modules: tuple[JaasConfig, ...], mechanism: str) -> JaasConfig | None:
    """Return what a listener's section says of one mechanism: the options of its login module, with
    the username and the password of the first module that has them, as Kafka takes them. None if it
    says nothing.
    """
    kind = LOGIN_MODULES.get(mechanism)
    own = next((module for module in modules if module.login_module == kind), None)
    user = next((module for module in modules if module.username is not None), None)
    if kind is None or (own is None and user is None):
        return None
    shared = (
        {} if user is None else {name: user.options[name] for name in ("username", "password") if name in user.options}
    )
    return JaasConfig(kind, {**({} if own is None else own.options), **shared})


def parse_jaas_file(text: str) -> dict[str, tuple[JaasConfig, ...]]:
    """Parse the sections of a JAAS file by their names. Raises JaasError with all mistakes up to
    where a section does not end.
    """
    if len(text) > MAX_FILE_CHARACTERS:
        raise JaasError(f"a JAAS file has at most {MAX_FILE_CHARACTERS} characters")
    pieces = [match for match in _pieces(text) if not match["skipped"]]
    found: dict[str, tuple[JaasConfig, ...]] = {}
    mistakes: list[str] = []
    at = 0
    while at < len(pieces):
        name = pieces[at][0].strip("\"'")
        if pieces[at]["sign"] or at + 1 == len(pieces) or pieces[at + 1][0] != "{":
            raise JaasError(*mistakes, "each section is of the form name { login module with its options; };")
        end = next((i for i in range(at + 2, len(pieces)) if pieces[i][0] == "}"), None)
        if end is None or end + 1 == len(pieces) or pieces[end + 1][0] != ";":
            raise JaasError(*mistakes, f"section {name} does not end with }};")
        if name in found:
            mistakes.append(f"section {name} is there twice")
        found[name] = ()
        try:
            content = text[pieces[at + 1].end() : pieces[end].start()]
            found[name] = parse_modules(content) if end > at + 2 else ()
        except JaasError as error:
            mistakes += [f"section {name}: {each}" for each in error.mistakes]
        at = end + 2
    if mistakes:
        raise JaasError(*mistakes)
    return found


def _is_read(section: str) -> bool:
    return section in {AT_ZOOKEEPER, OF_LISTENERS} or section.endswith(f".{OF_LISTENERS}")


def _refuse_properties_of_java(sections: Sections) -> None:
    mistakes = [
        f"section {section}: option {name} has a property of Java, ${{...}}, which has no value here"
        for section in filter(_is_read, sections)
        for module in sections[section]
        for name, value in module.options.items()
        if OF_JAVA in value
    ]
    if mistakes:
        raise JaasError(*mistakes)


def _pieces(text: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise JaasError(f"what begins on line {line} is neither a word nor a quoted text that ends")
        yield match
        position = match.end()
