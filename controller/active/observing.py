"""How the writer is observed.

The writer calls its observer when plans come to nothing, when elements are completed, when an
element that was in doubt is resolved, and when the state was read anew. The calls come in the order
of what happens, before anybody who waits for an element goes on.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..metadata.image import Image
from .jobs import Element


class WriterObserver(Protocol):
    """Sees what becomes of the writer's elements; it must neither wait nor raise."""

    def undone(self, elements: Iterable[Element]) -> None:
        """Note that these elements will not take effect as the plans behind them saw it."""

    def completed(self, before: Image, after: Image, elements: Sequence[Element]) -> None:
        """Note that these elements, in this order, made the image `after` of the image `before`:
        each took effect, was refused, or had nothing to write.
        """

    def resolved(self, image: Image | None, element: Element) -> None:
        """Note that an element was in doubt, and took effect if it has no refusal and there is an
        image, which was read from the store. Otherwise nothing is known of it.
        """

    def reloaded(self, image: Image) -> None:
        """Note that the writer goes on from an image that was read from the store."""


class NoObserver:
    """An observer that ignores everything."""

    def undone(self, elements: Iterable[Element]) -> None: ...

    def completed(self, before: Image, after: Image, elements: Sequence[Element]) -> None: ...

    def resolved(self, image: Image | None, element: Element) -> None: ...

    def reloaded(self, image: Image) -> None: ...
