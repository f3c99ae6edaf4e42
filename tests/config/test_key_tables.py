"""docs/configuration.md and the declared keys are one thing."""

from minicontroller.controller.config.keys import KEYS, PLUGIN_PREFIXES, key_named
from tests.config.key_tables import DOCUMENT, filled, sections

TEXT = DOCUMENT.read_text()


def test_the_tables_are_the_declarations() -> None:
    """The document has each key with its type, default, limits and meaning as they are declared."""
    assert filled(TEXT) == TEXT, "write them anew: python -m tests.config.key_tables"


def test_each_key_stands_once() -> None:
    """Every declared key is in one table, and no other is."""
    named = [row[0] for part in sections().values() for row in part]
    assert sorted(named) == sorted(KEYS)
    assert all(TEXT.count(f"\n| `{name}` |") == 1 for name in KEYS)


def test_no_table_is_empty() -> None:
    """There is a table of our own keys, of Kafka's, of those of topics, and of those without
    effect.
    """
    assert all(sections().values())


def test_the_prefixes_are_named() -> None:
    """What plugins and policies may be told by is in the text."""
    assert all(f"`{prefix}`" in TEXT for prefix in PLUGIN_PREFIXES)
    assert key_named("listener.dialect.client") is not None
