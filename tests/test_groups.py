"""The tests that share a large program run in one process (tests/conftest.py)."""

import pytest


def test_the_plugin_that_deals_tests_out_knows_their_groups(request: pytest.FixtureRequest) -> None:
    """Without its group, a test could start a second Spark, Kafka or Chromium elsewhere."""
    is_dealt_out = hasattr(request.config, "workerinput")
    assert request.node.nodeid.endswith("@test_groups.py") == is_dealt_out
