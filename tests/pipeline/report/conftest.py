"""Spark as reports on little data want it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.report.histories import PLAIN


@pytest.fixture(name="plain_spark", scope="package")
def without_compiling(spark: SparkSession) -> Iterator[SparkSession]:
    for key, value in PLAIN.items():
        spark.conf.set(key, value)
    yield spark
    for key in PLAIN:
        spark.conf.unset(key)
