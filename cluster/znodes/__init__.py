"""Kafka's znodes: where they lie, and how their contents are written and read."""
