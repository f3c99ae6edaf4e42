"""The text of an expression as the engine gets it.

Rule: an expression is checked as its author wrote it, and positions are those of that text. The
engine gets another text, without maps, which it would copy key by key, and without regular
expressions, which it would compile for each evaluation.
"""

from .syntax import SyntaxNode


class EngineText:
    """A text with replacements, which are made all at once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._edits: list[tuple[int, int, str]] = []
        """Replacements in the text: begin, end, and the new text."""

    def replace(self, begin: int, end: int, words: str) -> None:
        self._edits.append((begin, end, words))

    def rewritten(self) -> str:
        text = self._text
        for start, end, words in sorted(self._edits, reverse=True):
            text = f"{text[:start]}{words}{text[end:]}"
        return text

    def between(self, left: SyntaxNode, right: SyntaxNode) -> str:
        """Return the text between two nodes. With parentheses or comments it is more than the
        operator.
        """
        return self._text[left.at + len(left.text) : right.at].strip()

    def after(self, node: SyntaxNode, closing: str) -> int:
        """Return the offset after the closing sign that follows the node; 0 if another text
        follows.
        """
        rest = self._text[node.at + len(node.text) :]
        return len(self._text) - len(rest.lstrip()) + 1 if rest.lstrip().startswith(closing) else 0
