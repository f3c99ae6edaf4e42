"""Reads a JAAS file, as `java.security.auth.login.config` names one to Kafka.

    internal.KafkaServer {
        org.apache.kafka.common.security.plain.PlainLoginModule required username="node" ...;
    };
    Client {
        org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" ...;
    };

Rule: a section means what it means to Kafka: that of a listener goes before the one for all, and
`Client` is the login at ZooKeeper. No exception message contains a value, because any value may be
a secret.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...cluster.errors import ConfigurationError
from .environment import JAAS_FILE
from .jaas import LOGIN_MODULES, JaasConfig, JaasError, parse_modules

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
    """Return the name of the section by which a listener logs clients in, or None."""
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
