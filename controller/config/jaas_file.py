"""Reads a JAAS file, as `java.security.auth.login.config` names one to Kafka.

    Client {
        org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="...";
    };

Rule: no exception message contains a value, because any value may be a secret.
"""

import re
from collections.abc import Iterator

from .jaas import JaasConfig, JaasError, parse_jaas

MAX_FILE_CHARACTERS = 1_000_000
_PIECE = re.compile(
    r"""(?P<skipped>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
      | (?P<quoted>"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+')
      | (?P<sign>[{};])
      | (?P<word>(?:(?!//|/\*)[^\s{};"'])++)""",
    re.VERBOSE | re.DOTALL,
)


def parse_jaas_file(text: str) -> dict[str, JaasConfig]:
    """Parse the sections of a JAAS file by their names. Raises JaasError."""
    if len(text) > MAX_FILE_CHARACTERS:
        raise JaasError(f"a JAAS file has at most {MAX_FILE_CHARACTERS} characters")
    pieces = [match for match in _pieces(text) if not match["skipped"]]
    found: dict[str, JaasConfig] = {}
    at = 0
    while at < len(pieces):
        name = pieces[at][0].strip("\"'")
        if pieces[at]["sign"] or at + 1 == len(pieces) or pieces[at + 1][0] != "{":
            raise JaasError("each section is of the form name { login module with its options; };")
        end = next((i for i in range(at + 2, len(pieces)) if pieces[i][0] == "}"), None)
        if end is None or end + 1 == len(pieces) or pieces[end + 1][0] != ";":
            raise JaasError(f"section {name} does not end with }};")
        if name in found:
            raise JaasError(f"section {name} is there twice")
        try:
            found[name] = parse_jaas(text[pieces[at + 1].end() : pieces[end].start()])
        except JaasError as error:
            raise JaasError(f"section {name}: {error}") from None
        at = end + 2
    return found


def _pieces(text: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None:
            raise JaasError(f"what begins at character {position + 1} is neither a word nor a quoted text that ends")
        yield match
        position = match.end()
