"""TopicTotals and names of topics: counted once for an image, and never mistaken for
those of another.
"""

import trio
import trio.testing

from minicontroller.cluster.entities import Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.network.http.topic_statistics import SORTED_NAMES_SECONDS, TopicStatistics, TopicTotals
from minicontroller.network.http.views import MAX_ROWS, topics

LED, HEADLESS = Partition(replicas=(1, 2), leader=2), Partition(replicas=(2,))


def image(*names: str) -> Image:
    return Image().with_topics(
        Topic(name, bytes([index + 1] * 16), (LED, HEADLESS)) for index, name in enumerate(names)
    )


async def test_figures_are_those_of_the_image() -> None:
    """Topics, partitions and those without a leader or without the preferred one; another image has
    its own.
    """
    statistics = TopicStatistics()
    both = TopicTotals(topics=2, partitions=4, leaderless=2, not_led_as_preferred=4)
    assert await statistics.figures(image("a", "b")) == both
    one = TopicTotals(topics=1, partitions=2, leaderless=1, not_led_as_preferred=2)
    assert await statistics.figures(image("a")) == one


async def test_a_list_that_is_a_moment_old_says_so(autojump_clock: trio.testing.MockClock) -> None:
    """A list of names that is not sorted again yet says that it is old, and the next request gets
    the new one.
    """
    statistics = TopicStatistics()
    assert topics(image("b", "a"), statistics, "", 0).current
    after = image("b", "a", "c")
    stale = topics(after, statistics, "", 0)
    assert ([row.name for row in stale.rows], stale.current) == (["a", "b"], False)
    await trio.sleep(SORTED_NAMES_SECONDS)
    fresh = topics(after, statistics, "", 0)
    assert ([row.name for row in fresh.rows], fresh.current) == (["a", "b", "c"], True)


def hundred_and_one() -> Image:
    return image(*(f"t{number:03}" for number in range(MAX_ROWS + 1)))


async def test_a_page_has_an_end() -> None:
    """No more rows than MAX_ROWS, and none that is gone since the names were sorted."""
    statistics = TopicStatistics()
    assert len(topics(hundred_and_one(), statistics, "", 0).rows) == MAX_ROWS
    assert topics(Image(), statistics, "", 0).rows == []
