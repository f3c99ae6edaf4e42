"""minicontroller: the admin half of a Kafka broker as a program of its own."""

from .version import __version__

__all__ = ["__version__"]
