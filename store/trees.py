"""Reads of parts of the tree of znodes, in as many rounds as they have levels.

Rule: a znode that this session may not read seems to have no children, and nothing fails by it.
"""

from collections.abc import Sequence

from .base import HIDDEN, Store


async def listed_below(store: Store, parents: Sequence[str]) -> dict[str, list[str]]:
    """Return the paths of the children of those of these znodes that exist. Raises StoreError."""
    entries = zip(parents, await store.get_many(parents), strict=True)
    there = {path: entry is not HIDDEN for path, entry in entries if entry is not None}
    readable = [path for path, is_readable in there.items() if is_readable]
    names = dict(zip(readable, await store.children_many(readable), strict=True))
    return {path: [f"{path}/{name}" for name in names.get(path) or ()] for path in there}


async def whole_trees(store: Store, roots: Sequence[str]) -> list[str]:
    """Return the paths of those of these znodes that exist, and of all that lie below them; each
    comes before those below it. Raises StoreError.
    """
    found: list[str] = []
    level = list(roots)
    while level:
        below = await listed_below(store, level)
        found += below
        level = [path for paths in below.values() for path in paths]
    return found
