"""The interface through which the writer is observed.

The writer calls its observer when plans are dropped, when elements are completed, when an element
in doubt is resolved, and when the state was loaded again. The calls come in the order of these
events, before any waiting caller goes on.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ...cluster.image import Image
from .jobs import StagedElement


class WriterObserver(Protocol):
    """Observes the writer's elements. Its methods must neither wait nor raise."""

    def undone(self, elements: Iterable[StagedElement]) -> None:
        """Note that these elements will not take effect in the form that later plans saw."""

    def completed(self, before: Image, after: Image, elements: Sequence[StagedElement]) -> None:
        """Note that these elements, in this order, turned the image `before` into `after`. Each
        took effect, was refused, or had nothing to write.
        """

    def resolved(self, image: Image | None, element: StagedElement) -> None:
        """Note the outcome of an element in doubt. It took effect if it has no refusal and there is
        an image, which was read from the store; otherwise its outcome is unknown.
        """

    def reloaded(self, image: Image) -> None:
        """Note that the writer continues from an image that was read from the store."""


class NoObserver:
    """An observer that ignores everything."""

    def undone(self, elements: Iterable[StagedElement]) -> None: ...

    def completed(self, before: Image, after: Image, elements: Sequence[StagedElement]) -> None: ...

    def resolved(self, image: Image | None, element: StagedElement) -> None: ...

    def reloaded(self, image: Image) -> None: ...
