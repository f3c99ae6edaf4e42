"""Kafka's quotas: which one holds for a request, and how it is counted."""
