"""minicontroller: the admin half of a Kafka broker as a program of its own."""

__version__ = "0.1.0"
