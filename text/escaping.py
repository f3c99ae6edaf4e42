"""Makes text from elsewhere safe for a terminal.

Rule: a cluster may give anything any name, so nothing that a terminal would obey reaches it.
Characters that are not printable, bidirectional marks and line ends included, become escapes.
"""


def escaped(text: str) -> str:
    """Return the text with escapes in place of characters that are not printable."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape", "backslashreplace").decode()
