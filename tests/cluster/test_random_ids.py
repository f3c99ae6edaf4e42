"""Random ids are unique."""

from uuid import RFC_4122, UUID

from minicontroller.cluster.random_ids import new_id
from minicontroller.cluster.znodes.topics import uuid_text


def test_ids_are_random_uuids() -> None:
    """A new id is a UUID of version 4, as Kafka makes them, whose text is no option of a command
    line.
    """
    ids = [new_id() for _ in range(2_000)]
    assert len(set(ids)) == len(ids)
    assert {(UUID(bytes=each).version, UUID(bytes=each).variant) for each in ids} == {(4, RFC_4122)}
    assert not any(uuid_text(each).startswith("-") for each in ids)
    assert all(len({each[place] for each in ids}) >= 16 for place in range(16))
