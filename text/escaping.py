"""Foreign text for a terminal.

Rule: a name is whatever a cluster says it is, so nothing that a terminal would obey reaches one:
what is not printable, bidirectional marks and line ends included, is shown as an escape.
"""


def escaped(text: str) -> str:
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape", "backslashreplace").decode()
