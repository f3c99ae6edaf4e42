"""The world of a test, a cluster in it, and another session of it."""

from tests.active.conftest import cluster_fixture, memory_fixture, other_fixture, world_fixture

__all__ = ["cluster_fixture", "memory_fixture", "other_fixture", "world_fixture"]
