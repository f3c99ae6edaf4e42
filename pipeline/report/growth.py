"""What grows: topics and partitions over time, and the prefixes of names that grow most.

Rule: counted are the topics that clients see. What a cluster had when its log began is no growth;
and where events are missing, what was there stays counted until the next snapshot says what is.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ..page.charts import Panel, Series, lines_over_time, short_count
from ..page.drawing import REST, Plot, series_colour
from ..page.sheet import Column, Kind, Sheet, count, plural
from ..periods import Axis
from ..tables import Table
from .question import Question, named
from .selection import Selection
from .tops import ascending, descending, top

BEFORE = -1
"""The step of all that was before the axis."""
_CLUSTER = Column("cluster_id", "Cluster", Kind.NAME)
_SIZES = (
    Column("topics_before", "Topics before", Kind.COUNT, sums=True),
    Column("topics", "Topics", Kind.COUNT, sums=True),
    Column("partitions_before", "Partitions before", Kind.COUNT, sums=True),
    Column("partitions", "Partitions", Kind.COUNT, sums=True),
)

Size = tuple[int, int]
"""Topics and partitions."""


@dataclass
class Course:
    """How one cluster changed, by step."""

    changes: dict[int, Size] = field(default_factory=dict)
    lost: dict[int, Size] = field(default_factory=dict)
    """What is not known any more, because events are missing."""
    snapshots: set[int] = field(default_factory=set)

    def sizes(self, steps: int) -> Iterator[Size]:
        """Yield the sizes before the axis and at the end of each step."""
        now = missing = (0, 0)
        for step in range(BEFORE, steps):
            now = _plus(now, self.changes.get(step, (0, 0)))
            missing = _plus(missing, self.lost.get(step, (0, 0)))
            if step == BEFORE or step in self.snapshots:
                now, missing = _plus(now, missing), (0, 0)
            yield now


def growth(selection: Selection) -> Question:
    axis = selection.axis
    states = _states(selection).persist(StorageLevel.MEMORY_AND_DISK)
    courses = {cluster: list(course.sizes(axis.steps)) for cluster, course in _courses(selection, states).items()}
    by_prefix = _by_prefix(states, axis)
    states.unpersist()
    over_time = Sheet(
        "growth_over_time",
        f"Topics and partitions, by {axis.step.name}",
        (_CLUSTER, Column("time", "At the end of what began", Kind.TIME), _SIZES[1], _SIZES[3]),
        [
            (cluster, start, *size)
            for cluster, sizes in courses.items()
            for start, size in zip(axis.starts, sizes[1:], strict=False)
        ],
    )
    by_cluster = Sheet(
        "growth_by_cluster",
        "Growth by cluster",
        (_CLUSTER, *_SIZES),
        [
            (cluster, sizes[0][0], sizes[-1][0], sizes[0][1], sizes[-1][1])
            for cluster, sizes in sorted(courses.items(), key=lambda item: (-item[1][-1][1], item[0]))
        ],
    )
    return Question(
        "growth",
        "What grows?",
        _answer(by_cluster, by_prefix),
        (by_cluster, by_prefix) if by_cluster.all_rows > 1 else (by_prefix,),
        lambda: _drawn(by_cluster, courses, axis.starts),
        note="A prefix is what stands before the first dot, dash or underscore of a topic's name.",
        more=(over_time,) if by_cluster.all_rows > 1 else (by_cluster, over_time),
    )


def _states(selection: Selection) -> DataFrame:
    """Return each state of a topic, with the steps in which it began and ended."""
    history = selection.table(Table.TOPIC_HISTORY).where(~f.col("marked_for_deletion"))
    place = f.struct("from_epoch", "from_sequence")
    first_change = (
        history.where(f.col("from_cause") != "snapshot").groupBy("cluster_id").agg(f.min(place).alias("first"))
    )
    was_there = (f.col("from_cause") == "snapshot") & (f.col("first").isNull() | (place < f.col("first")))
    return history.join(f.broadcast(first_change), "cluster_id", "left").select(
        "cluster_id",
        "topic",
        "partitions",
        f.when(was_there, BEFORE).otherwise(selection.axis.clamped(f.col("from_time"))).alias("begin"),
        selection.axis.clamped(f.col("until_time")).alias("end"),
        (f.col("from_cause") == "snapshot").alias("by_snapshot"),
        (f.col("from_cause") == "create_topic").alias("created"),
        (f.col("until_cause") == "delete_topic").alias("deleted"),
        f.coalesce(f.col("until_cause") == "gap", f.lit(False)).alias("lost"),
    )


def _courses(selection: Selection, states: DataFrame) -> dict[str, Course]:
    """Return the courses by cluster."""
    courses = defaultdict[str, Course](Course)
    edges = states.select("cluster_id", "partitions", f.inline(f.array(_edge("begin", 1), _edge("end", -1))))
    sizes = (f.sum("sign"), f.sum(f.col("sign") * f.col("partitions")))
    counted = (
        edges.where("step IS NOT NULL").groupBy("cluster_id", "step", "lost").agg(*sizes, f.bool_or("by_snapshot"))
    )
    for cluster, step, lost, topics, partitions, by_snapshot in counted.collect():
        course = courses[cluster]
        (course.lost if lost else course.changes)[step] = topics, partitions
        if by_snapshot:
            course.snapshots.add(step)
    epochs = selection.table(Table.CONTROLLER_EPOCHS).where("begins_with_snapshot")
    for cluster, step in epochs.select("cluster_id", selection.axis.clamped(f.col("began"))).collect():
        courses[cluster].snapshots.add(step)
    return dict(sorted(courses.items()))


def _edge(which: str, sign: int) -> SparkColumn:
    """Make a row of where a state began, with 1, or ended, with -1."""
    begins = f.lit(which == "begin")
    return f.struct(
        f.col(which).alias("step"),
        f.lit(sign).alias("sign"),
        (~begins & f.col("lost")).alias("lost"),
        (begins & f.col("by_snapshot")).alias("by_snapshot"),
    )


def _plus(one: Size, other: Size) -> Size:
    return one[0] + other[0], one[1] + other[1]


def _by_prefix(states: DataFrame, axis: Axis) -> Sheet:
    begin, end = f.col("begin"), f.coalesce(f.col("end"), f.lit(axis.steps))
    before = (begin == BEFORE) & (end > BEFORE)
    after = (begin < axis.steps) & (end == axis.steps)
    prefix = f.regexp_extract("topic", r"^([^._-]+)[._-]", 1)
    sizes = {
        "topics_before": f.count_if(before),
        "topics": f.count_if(after),
        "partitions_before": f.sum(f.when(before, f.col("partitions")).otherwise(0)),
        "partitions": f.sum(f.when(after, f.col("partitions")).otherwise(0)),
        "created": f.count_if(f.col("created") & begin.between(0, axis.steps - 1)),
        "deleted": f.count_if(f.col("deleted") & end.between(0, axis.steps - 1)),
    }
    return top(
        "growth_by_prefix",
        "Growth by prefix of the name",
        (
            *(_CLUSTER, Column("prefix", "Prefix", Kind.NAME)),
            Column("growth", "More partitions", Kind.COUNT, sums=True),
            *_SIZES,
            Column("created", "Created", Kind.COUNT, sums=True),
            Column("deleted", "Deleted", Kind.COUNT, sums=True),
        ),
        states.groupBy("cluster_id", f.when(prefix == "", f.col("topic")).otherwise(prefix).alias("prefix"))
        .agg(*(size.alias(name) for name, size in sizes.items()))
        .withColumn("growth", f.col("partitions") - f.col("partitions_before")),
        [*descending("growth", "created"), *ascending("cluster_id", "prefix")],
    )


def _answer(by_cluster: Sheet, by_prefix: Sheet) -> str:
    sums = {**by_cluster.totals, **by_prefix.totals}
    if not by_prefix.rows:
        return "There was no topic."
    text = (
        f"{_from_to('Topics', sums['topics_before'], sums['topics'])}, "
        f"{_from_to('partitions', sums['partitions_before'], sums['partitions'])}; "
        f"{plural(sums['created'], 'topic was', 'topics were')} created and {count(sums['deleted'])} deleted."
    )
    cluster, prefix, grown = by_prefix.rows[0][:3]
    if int(grown or 0) <= 0:
        return f"{text} No prefix has more partitions than before."
    where = f" in {named(cluster)}" if by_cluster.all_rows > 1 else ""
    return f"{text} “{named(prefix)}”{where} grew most, by {plural(int(grown or 0), 'partition')}."


def _from_to(what: str, before: int, after: int) -> str:
    if before == after:
        return f"{what} began and ended at {count(after)}"
    return f"{what} went from {count(before)} to {count(after)}"


def _drawn(by_cluster: Sheet, courses: dict[str, list[Size]], starts: Sequence[int]) -> Plot | None:
    if not courses:
        return None
    largest = [str(name) for name in by_cluster.cut(REST).values("cluster_id")]
    rest = [name for name in courses if name not in largest]
    panels = []
    for title, which in (("Topics", 0), ("Partitions", 1)):
        lines = [
            Series(name, series_colour(index), [size[which] for size in courses[name][1:]])
            for index, name in enumerate(largest)
        ]
        if rest:
            sums = [
                sum(sizes)
                for sizes in zip(*([size[which] for size in courses[name][1:]] for name in rest), strict=True)
            ]
            lines.append(Series(f"{plural(len(rest), 'other')} together", series_colour(REST), sums))
        panels.append(Panel(title, lines, short_count))
    return lines_over_time("growth", starts, panels, at_ends=True)
