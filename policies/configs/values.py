"""The types of config values: parsed from text and rendered as text, as Kafka's ConfigDef does.

Rule: what Kafka accepts is accepted, and what it refuses is refused with its message, which clients
show to people. There is one exception: NaN is not a number here. Kafka takes it for a ratio, and
every later comparison with it is false.
"""

import math
import re
from enum import IntEnum

Value = bool | int | float | str | tuple[str, ...] | None
"""A parsed value. A list is a tuple. A password is a str, so check the type before
showing a value.
"""


class KeyType(IntEnum):
    """The types of config keys, with their numbers in DescribeConfigs (version 3 and later)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class InvalidValueError(ValueError):
    """A value is not valid for its key. The message is that of Kafka's ConfigException."""

    def __init__(self, name: str, shown: str, reason: str) -> None:
        super().__init__(f"Invalid value {shown} for configuration {name}: {reason}")


_JAVA_SPACE = "".join(map(chr, range(0x21)))
_ROUND_ELEMENTS = " \t\n\x0b\f\r"
_INTEGER = re.compile(r"([+-]?)(?=\d)0*+(\d{0,64}+)")
_BITS = {KeyType.INT: 32, KeyType.SHORT: 16, KeyType.LONG: 64}
_DECIMAL = re.compile(r"([+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)[fFdD]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]++\.?[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP][+-]?[0-9]++)[fFdD]?")
_INFINITE = {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}


def parse_value(name: str, kind: KeyType, text: str) -> Value:
    """Parse the value of a key. Raises InvalidValueError, never for a password."""
    trimmed = text.strip(_JAVA_SPACE)
    match kind:
        case KeyType.BOOLEAN:
            if trimmed.lower() not in {"true", "false"}:
                raise InvalidValueError(name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case KeyType.INT | KeyType.SHORT | KeyType.LONG:
            number = _integer(trimmed, _BITS[kind])
            if number is None:
                raise InvalidValueError(name, text, f"Not a number of type {kind.name}")
            return number
        case KeyType.DOUBLE:
            real = _double(trimmed)
            if real is None:
                raise InvalidValueError(name, text, "Not a number of type DOUBLE")
            return real
        case KeyType.LIST:
            return tuple(element.strip(_ROUND_ELEMENTS) for element in trimmed.split(",")) if trimmed else ()
        case _:
            return trimmed


def render_value(value: Value) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return java_double(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def show_value(value: Value) -> str:
    """Render a value as Kafka does in errors, where a list is in brackets."""
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else render_value(value) or ""


def java_double(value: float) -> str:
    """Render a number as Java's Double.toString does: 0.25, 1.0E-5, 1.7976931348623157E308."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}"
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa, _, exponent = _scientific(value).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _scientific(value: float) -> str:
    """Render a number with an exponent, by the fewest digits that identify it."""
    return next(text for digits in range(17) if float(text := f"{value:.{digits}e}") == value)


MAX_PORT = 65_535
BRACKETS = frozenset("[]")
MAX_INT = 2**31 - 1


def is_number(text: str, most: int) -> bool:
    """Whether a text consists of digits only and its number is at most `most`."""
    return text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= most


def host_and_port(text: str) -> tuple[str, int] | None:
    """Return the host and the port of `host:port`, in which an IPv6 address stands in brackets.
    None if the text is no such address.
    """
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None  # without brackets it does not show where the port begins
    if not host or not BRACKETS.isdisjoint(host) or not is_number(port, MAX_PORT):
        return None
    return host, int(port)


def java_int(text: str) -> int | None:
    """Parse a number as Java's Integer.parseInt does: an optional sign, and digits of any script.
    None if Java throws.
    """
    return _integer(text, 32)


def _integer(text: str, bits: int) -> int | None:
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(f"{match[1]}0{match[2]}")
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def _double(text: str) -> float | None:
    if text in _INFINITE:
        return _INFINITE[text]
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        return float(decimal[1])
    hexadecimal = _HEXADECIMAL.fullmatch(text)
    if hexadecimal:
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    return None
