"""What grows: topics and partitions over time, and the prefixes of names that grow most.

Rule: counted are the topics that clients see. What a cluster had when its log began is no growth;
and where events are missing, what was there stays counted until the next snapshot says what is.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..page.charts import Panel, Series, lines_over_time, short_count
from ..page.drawing import REST, Plot, series_colour
from ..page.sheet import Column, Kind, Sheet, count, plural
from ..periods import Axis
from ..schemas import Table
from .facts import ANY, LEAST, Fact, Facts, Figure, Wanted, rows
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
    courses = {cluster: list(course.sizes(axis.steps)) for cluster, course in _courses(selection).items()}
    by_prefix = _by_prefix(selection.facts)
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


FIRST_CHANGES = Fact(
    "first_changes",
    ("cluster_id",),
    {"first": Figure("min({'epoch': from_epoch, 'sequence': from_sequence})", LEAST)},
    "rows WHERE from_cause != 'snapshot'",
)
"""Where the topics of each cluster changed first: what snapshots showed until then was there
before.
"""
COURSES = Fact(
    "courses",
    ("cluster_id", "step", "lost"),
    {
        "topics": Figure("sum(sign)"),
        "partitions": Figure("sum(sign * partitions)"),
        "by_snapshot": Figure("bool_or(by_snapshot)", ANY),
    },
    """(
        SELECT cluster_id, partitions, first_step AS step, 1 AS sign, false AS lost, by_snapshot FROM rows
        UNION ALL SELECT cluster_id, partitions, end_step, -1, lost, false FROM rows
    )""",
)


def states(axis: Axis) -> str:
    """Return the query for the states of topics, with the steps in which each began and ended."""
    return f"""
        SELECT cluster_id, partitions, from_cause = 'snapshot' AS by_snapshot, from_cause = 'create_topic' AS created,
            until_cause = 'delete_topic' AS deleted, coalesce(until_cause = 'gap', false) AS lost,
            CASE WHEN from_cause = 'snapshot' AND (first IS NULL OR {{'epoch': from_epoch, 'sequence': from_sequence}} < first) THEN {BEFORE}
                ELSE {axis.clamped("epoch_us(from_time)")} END AS first_step,
            {axis.clamped("epoch_us(until_time)")} AS end_step,
            CASE regexp_extract(topic, '^([^._-]+)[._-]', 1) WHEN '' THEN topic ELSE regexp_extract(topic, '^([^._-]+)[._-]', 1) END AS prefix
        FROM source LEFT JOIN first_changes USING (cluster_id) WHERE NOT marked_for_deletion
    """


def prefixes(axis: Axis) -> Fact:
    """Return the fact about prefixes of names: what there was before the axis and at its end."""
    before = f"first_step = {BEFORE} AND end_step > {BEFORE}"
    after = f"first_step < {axis.steps} AND end_step = {axis.steps}"
    return Fact(
        "prefixes",
        ("cluster_id", "prefix"),
        {
            "topics_before": Figure(f"count_if({before})"),
            "topics": Figure(f"count_if({after})"),
            "partitions_before": Figure(f"coalesce(sum(partitions) FILTER ({before}), 0)"),
            "partitions": Figure(f"coalesce(sum(partitions) FILTER ({after}), 0)"),
            "created": Figure(f"count_if(created AND first_step BETWEEN 0 AND {axis.steps - 1})"),
            "deleted": Figure(f"count_if(deleted AND end_step BETWEEN 0 AND {axis.steps - 1})"),
        },
    )


BEGUN = Wanted(
    Table.TOPIC_HISTORY,
    "SELECT cluster_id, from_epoch, from_sequence, from_cause FROM source WHERE NOT marked_for_deletion",
    (FIRST_CHANGES,),
)


def grown(selection: Selection) -> Wanted:
    """Return what is counted of the topics, after BEGUN was."""
    axis, first = selection.axis, selection.facts.sql("FROM first_changes").to_arrow_table()
    return Wanted(Table.TOPIC_HISTORY, states(axis), (COURSES, prefixes(axis)), {"first_changes": first})


def _courses(selection: Selection) -> dict[str, Course]:
    """Return the courses by cluster."""
    courses = defaultdict[str, Course](Course)
    for cluster, step, lost, topics, partitions, by_snapshot in rows(selection.facts, "FROM courses"):
        course = courses[cluster]
        (course.lost if lost else course.changes)[step] = topics, partitions
        if by_snapshot:
            course.snapshots.add(step)
    epochs = f"{selection.rows(Table.CONTROLLER_EPOCHS)} WHERE begins_with_snapshot"
    step = selection.axis.clamped("epoch_us(began)")
    for cluster, began in rows(selection.facts, f"SELECT cluster_id, {step} FROM {epochs}"):
        courses[cluster].snapshots.add(began)
    return dict(sorted(courses.items()))


def _plus(one: Size, other: Size) -> Size:
    return one[0] + other[0], one[1] + other[1]


def _by_prefix(facts: Facts) -> Sheet:
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
        facts,
        "SELECT *, partitions - partitions_before AS growth FROM prefixes",
        order=f"{descending('growth', 'created')}, {ascending('cluster_id', 'prefix')}",
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
