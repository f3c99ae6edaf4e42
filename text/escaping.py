"""Escapes untrusted text for a terminal.

Rule: names in a cluster may contain anything, so every unprintable character is escaped, including
terminal control sequences, bidirectional marks and line ends.
"""


def escaped(text: str) -> str:
    """Return the text with escapes in place of characters that are not printable."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape", "backslashreplace").decode()
