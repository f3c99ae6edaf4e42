"""The base of the families of calls that make the AdminClient: one module each.

Rule: a module of a family loads neither trio, which a shell that completes a command must not wait
for, nor messages: a call imports those of its own API, so that a command loads no other.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .batches import Batches


class Calls:
    def __init__(self, batches: "Batches") -> None:
        self._batches = batches
