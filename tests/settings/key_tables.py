"""The tables of docs/configuration.md, made from the declarations. To write them anew: `python -m
tests.settings.key_tables`.

What a node follows is found in the source: a key that no module of the program names, but for the
tables and for what judges changes, cannot change what the program does.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from minicontroller.policies.configs import broker_keys
from minicontroller.policies.configs.tables import read_table
from minicontroller.process.settings import keys, topic_configs
from minicontroller.process.settings.dynamic_keys import is_fixed_at_start
from minicontroller.process.settings.keys import KEYS, SECURITY_KEYS_OF_A_LISTENER
from minicontroller.process.settings.refused_keys import REFUSED
from tests.support import program

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "configuration.md"
CHANGES = {"-": "", "internal": "", "plugin": "", "broker": "each", "cluster": "all", "throttle": "throttle"}
DECLARING = {"keys.py", "refused_keys.py", "broker_keys.py", "topic_keys.py", "canonical.py", "broker_changes.py"}
"""Modules that name keys without following them."""

NO_NODE = frozenset({"audit", "client", "gateway", "pipeline"})
"""The folders of the program that no node imports, or that know no configuration of a node."""

Row = list[str]


def rows() -> dict[str, Row]:
    return {row[0]: row for table in (keys.OWN_TABLE, broker_keys.TABLE) for row in read_table(table)}


def named_in_the_source() -> set[str]:
    found = set()
    for module in program.modules(*(folder for folder in program.FOLDERS if folder not in NO_NODE)):
        if module.name not in DECLARING:
            nodes = ast.walk(ast.parse(module.read_text()))
            found |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return found & set(KEYS)


def defaults_of_topics() -> set[str]:
    return {synonym.name for topic_key in topic_configs.TOPIC_KEYS.values() for synonym in topic_key.synonyms}


def sections() -> dict[str, list[Row]]:
    """Every key in exactly one of them."""
    own = {row[0] for row in read_table(keys.OWN_TABLE)} - keys.PLUGIN_KEYS
    topics = defaults_of_topics()
    followed = named_in_the_source() - own - topics
    refused = REFUSED.keys() - followed
    parts: dict[str, list[Row]] = {"own": [], "followed": [], "topics": [], "refused": [], "idle": []}
    names = {"own": own, "topics": topics, "followed": followed, "refused": refused}
    for name, row in rows().items():
        parts[next((part for part, members in names.items() if name in members), "idle")].append(row)
    return parts


def table(part: list[Row]) -> Iterator[str]:
    yield "| key | type | default | limits | what it is for | changes |"
    yield "|---|---|---|---|---|---|"
    for name, kind, default, limits, mode, documentation in part:
        shown = {"-": "-", "max": "2^63 - 1"}.get(default, f"`{default}`")
        bounds = "" if limits == "-" else f"`{limits}`".replace("|", "\\|")
        yield f"| `{name}` | {kind} | {shown} | {bounds} | {documentation} | {changes(name, kind, mode)} |"


def changes(name: str, kind: str, mode: str) -> str:
    """How a key may change while a node runs; empty for not at all."""
    if is_fixed_at_start(name) or kind == "password" or name in REFUSED:
        return ""
    return "listener" if name in SECURITY_KEYS_OF_A_LISTENER else CHANGES[mode]


def filled(document: str) -> str:
    """The document with its tables as they should be."""
    for name, part in sections().items():
        before, _, rest = document.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        document = "\n".join([f"{before}<!-- {name} -->", *table(part), f"{end}{after}"])
    return document


if __name__ == "__main__":
    DOCUMENT.write_text(filled(DOCUMENT.read_text()))
