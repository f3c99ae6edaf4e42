"""One Spark for all tests of the pipeline: a session in this process takes seconds to start, and a
process can have one at a time.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from minicontroller.pipeline.session import spark_session

HERE = Path(__file__).parent
PATIENCE_SECONDS = 600  # a busy machine starts Spark in minutes
SMALL = {"spark.driver.memory": "1g"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(PATIENCE_SECONDS))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """As the commands start it, on two threads."""
    with spark_session("local[2]", settings=SMALL) as session:
        yield session
