"""Parses `sasl.jaas.config`: the credentials of this node, and those of the users it accepts.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="..."
    user_alice="...";

Rule: no exception message and no repr contains a value, because any value may be a secret.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

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
