"""One S3 server for the tests of object stores, and a bucket of its own for each test."""

import os
from collections.abc import Iterator

import pytest

from tests.pipeline.stores.buckets import Bucket
from tests.support.s3 import S3, running_s3


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """Start a server that this process asks, and the processes that it starts."""
    with running_s3(tmp_path_factory.mktemp("s3")) as store, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in store.environment.items():
            patch.setenv(name, value)
        yield store


@pytest.fixture
def bucket(store: S3) -> Bucket:
    return Bucket(store)
