"""Kafka's config keys: their types, values and defaults, without a node."""
