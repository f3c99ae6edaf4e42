"""docs/configuration.md and the declared keys are one thing."""

from minicontroller.admin.configs.broker_changes import validate_broker_configs
from minicontroller.cluster.errors import Refusal
from minicontroller.policies.configs.values import KeyType
from minicontroller.process.settings.keys import KEYS, PLUGIN_PREFIXES, key_named
from minicontroller.process.settings.loading import config_from_mapping
from tests.settings.key_tables import DOCUMENT, changes, filled, sections

TEXT = DOCUMENT.read_text()
NODE = config_from_mapping({"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092"})
NUMBERS = {KeyType.SHORT, KeyType.INT, KeyType.LONG}
VALUES = {
    "advertised.listeners": "PLAINTEXT://host:1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "principal.builder.class": "another.Class",
}
"""The values that are tried of keys whose default is none, or is no change."""


def test_the_tables_are_the_declarations() -> None:
    """The document has each key with its type, default, limits and meaning as they are declared."""
    assert filled(TEXT) == TEXT, "write them anew: python -m tests.settings.key_tables"


def test_each_key_stands_once() -> None:
    """Every declared key is in one table, and no other is."""
    named = [row[0] for part in sections().values() for row in part]
    assert sorted(named) == sorted(KEYS)
    assert all(TEXT.count(f"\n| `{name}` |") == 1 for name in KEYS)


def test_the_last_column_is_what_a_running_node_takes() -> None:
    """A key that is marked can be changed so, with its default or a value that Kafka takes, and no
    other can.
    """
    for name, kind, _, _, mode, _ in (row for part in sections().values() for row in part):
        column = changes(name, kind, mode)
        spelled = f"listener.name.plaintext.{name}" if column == "listener" else name
        for_one, for_all = takes(spelled, per_broker=True), takes(spelled, per_broker=False)
        assert (for_one, for_all) == (column != "", column in {"all", "throttle"}), name


def takes(name: str, *, per_broker: bool) -> bool:
    key = key_named(name)
    assert key is not None
    base = KEYS[key.name.removeprefix("listener.name.plaintext.")]
    value = VALUES.get(base.name, base.default)
    if value is None:
        value = "1" if base.type in NUMBERS else "x"
    try:
        validate_broker_configs({name: value}, NODE, per_broker=per_broker)
    except Refusal:
        return False
    return True


def test_no_table_is_empty() -> None:
    """There is a table of our own keys, of Kafka's, of those of topics, and of those without
    effect.
    """
    assert all(sections().values())


def test_the_prefixes_are_named() -> None:
    """What plugins and policies may be told by is in the text."""
    assert all(f"`{prefix}`" in TEXT for prefix in PLUGIN_PREFIXES)
    assert key_named("listener.dialect.client") is not None
