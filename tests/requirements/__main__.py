"""Writes docs/requirements.md anew."""

from tests.requirements.table import DOCUMENT, document

if __name__ == "__main__":
    DOCUMENT.write_text(document())
