"""The replicas by which a gateway judges a request, also where no cluster places them so."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.image import Image
from minicontroller.gateway.judging.forms.create_topics import by_name
from minicontroller.gateway.judging.questions import by_counts
from minicontroller.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic


@given(
    brokers=st.lists(st.integers(0, 9), unique=True, max_size=5),
    racks=st.lists(st.sampled_from([None, "a", "b"]), min_size=5, max_size=5),
    partitions=st.integers(1, 20),
    factor=st.integers(1, 8),
)
def test_counts_are_those_of_the_request(
    brokers: list[int], racks: list[str | None], partitions: int, factor: int
) -> None:
    """Every partition has as many different replicas as are asked for; those without a broker are
    negative, and there is a reason if there are any.
    """
    placed = by_counts(list(zip(sorted(brokers), racks, strict=False)), partitions, factor, random=Random(0).randrange)
    assert [len(set(row)) for row in placed.rows] == [factor] * partitions
    assert placed.count == partitions * factor
    unknown = {replica for row in placed.rows for replica in row} - set(brokers)
    assert len(unknown) == max(0, factor - len(brokers)) and all(replica < 0 for replica in unknown)
    assert placed.refusal is not None or not unknown


def wanted(*rows: tuple[int, list[int]]) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in rows]
    return CreatableTopic(name="t", assignments=assignments)


def test_named_replicas_are_judged_as_they_are() -> None:
    """Unknown brokers, no brokers, and the last word about a partition are what a policy sees; a
    partition below 0 is refused.
    """
    placed = by_name(Image(), wanted((1, []), (0, [1, 99]), (0, [7])))
    assert (list(placed.rows), placed.refusal is not None) == ([(7,), ()], True)
    with pytest.raises(Refusal):
        by_name(Image(), wanted((-1, [1])))
