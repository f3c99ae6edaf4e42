"""The values of `sasl.jaas.config`: `LoginModule required key="value" ...;`.

Rule: what this module raises never repeats a value: it may be a password.
"""

import re
from collections.abc import Mapping

import msgspec

_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s="\';]+)|([=;]))', re.DOTALL)
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_USER_PREFIX = "user_"
_EQUALS, _END = "\0=", "\0;"
"""Signs, told apart from quoted values that look like them."""


class JaasConfig(msgspec.Struct, frozen=True):
    """One login module and its options."""

    module: str
    options: Mapping[str, str]

    @property
    def users(self) -> dict[str, str]:
        """Name to password, of PlainLoginModule's `user_NAME=...` options."""
        prefix = len(_USER_PREFIX)
        return {key[prefix:]: value for key, value in self.options.items() if key.startswith(_USER_PREFIX)}


def parse_jaas(text: str) -> JaasConfig:
    """Raises ValueError, with a sentence that says what is expected where."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[1].lower() not in _FLAGS:
        raise ValueError('a JAAS configuration reads: LoginModuleClass required key="value" ... ;')
    if tokens[-1] != _END or _END in tokens[:-1]:
        raise ValueError("a JAAS configuration holds one login module and ends in a semicolon")
    options, rest = {}, tokens[2:-1]
    for position in range(0, len(rest), 3):
        match rest[position : position + 3]:
            case [key, sign, value] if sign == _EQUALS and _EQUALS not in (key, value):
                options[key] = value
            case _:
                raise ValueError(f"option {position // 3 + 1} of the JAAS configuration is not of the form key=value")
    return JaasConfig(tokens[0], options)


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"the JAAS configuration cannot be read from its character {position + 1} on")
        quoted, bare, sign = match.groups()
        tokens.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare or f"\0{sign}")
        position = match.end()
    return tokens
