"""A place of its own on the S3 server for each test."""

from itertools import count

from minicontroller.pipeline.location import Location
from tests.support.s3 import S3

NUMBERS = count(1)


class Bucket:
    """A bucket with a folder for audit files and one for tables."""

    def __init__(self, store: S3) -> None:
        self.store = store
        self.name = f"bucket-{next(NUMBERS)}"
        self.audit = Location.parse(f"s3://{self.name}/audit")
        self.tables = Location.parse(f"s3://{self.name}/some/tables")
        store.put(self.name)

    def put(self, name: str, content: bytes) -> None:
        """Put a file into the folder for audit files."""
        self.store.put(f"{self.name}/audit/{name}", content)

    def delete(self, name: str) -> None:
        self.store.delete(f"{self.name}/audit/{name}")
