"""The question about growth: topics and partitions over time, and the prefixes of names that grow
most.

Only topics that clients see are counted. Topics from before the log began are no growth. Where
events are missing, a topic stays counted until an event or a snapshot shows its state.
"""

from ..page.charts import Panel, lines_over_time
from ..page.drawing import REST, Plot, Series, series_colour
from ..page.tables import count, plural
from ..schemas import Table
from .aggregates import Aggregate, AggregateRequest
from .question import Report, ReportQuestion, named
from .selection import Selection
from .table_queries import TableQuery

BEFORE = -1
"""The step of all that was before the axis."""
SIZES = "topics_before topics partitions_before partitions"

PREFIX = "coalesce(nullif(regexp_extract(topic, '^([^._-]+)[._-]', 1), ''), topic)"
COLUMNS = (
    "cluster_id topic partitions marked_for_deletion from_epoch from_sequence from_time from_cause "
    "until_epoch until_sequence until_time until_cause"
)
STATES = """
    SELECT *, {'epoch': from_epoch, 'sequence': from_sequence} AS begun, {'epoch': until_epoch, 'sequence': until_sequence} AS until,
        coalesce(until_cause = 'gap', false) AS lost FROM source
"""
"""The states of topics, with the positions where each began and ended."""

FIRST_CHANGES = Aggregate(
    "first_changes",
    ("cluster_id",),
    {"first": "min(begun)"},
    "rows WHERE from_cause != 'snapshot' AND NOT marked_for_deletion",
)
"""The position at which each cluster's topics changed first; what snapshots showed until then was
there before.
"""
RECORDED = Aggregate(
    "recorded", ("cluster_id", "begun"), {"time": "min(from_time)"}, "rows WHERE from_cause = 'snapshot'"
)
LOST = Aggregate(
    "lost", ("cluster_id", "topic", "partitions", "until"), {}, "rows WHERE lost AND NOT marked_for_deletion"
)
"""The topics that were there where events are missing."""
FOLLOWED = Aggregate(
    "followed",
    LOST.keys,
    {"next": "min({'begun': begun, 'step': first_step})"},
    """(
        SELECT lost.*, begun, first_step FROM lost ASOF JOIN (FROM rows SEMI JOIN lost USING (cluster_id, topic)) AS later
        ON lost.cluster_id = later.cluster_id AND lost.topic = later.topic AND lost.until <= begun
    )""",
)
"""The beginning of the next state that is known of a lost topic; if it is marked for deletion,
clients see it no longer.
"""
COURSES = Aggregate(
    "courses",
    ("cluster_id", "prefix", "step"),
    {
        "topics": "sum(sign)",
        "partitions": "sum(sign * partitions)",
        "created": "count_if(sign = 1 AND from_cause = 'create_topic')",
        "deleted": "count_if(sign = -1 AND until_cause = 'delete_topic')",
    },
    f"""(
        SELECT *, {PREFIX} AS prefix FROM (
            SELECT *, first_step AS step, 1 AS sign FROM rows UNION ALL SELECT *, end_step, -1 FROM rows WHERE NOT lost
        ) WHERE NOT marked_for_deletion
    )""",
)
BEGUN = AggregateRequest(Table.TOPIC_HISTORY, COLUMNS, STATES, (FIRST_CHANGES, RECORDED, LOST))


def grown(selection: Selection) -> AggregateRequest:
    """Return what is counted after BEGUN was: topics by the steps where states began and ended."""
    axis, given = selection.axis, (FIRST_CHANGES.name, LOST.name)
    states = f"""
        SELECT states.*, {axis.clamped("epoch_us(until_time)")} AS end_step,
            CASE WHEN from_cause = 'snapshot' AND (first IS NULL OR begun < first) THEN {BEFORE}
                ELSE {axis.clamped("epoch_us(from_time)")} END AS first_step
        FROM ({STATES}) AS states LEFT JOIN first_changes USING (cluster_id)
    """
    tables = {name: selection.aggregates.table(name).to_arrow_table() for name in given}
    return AggregateRequest(Table.TOPIC_HISTORY, COLUMNS, states, (COURSES, FOLLOWED), tables)


def sum_up_growth(selection: Selection) -> None:
    """Let each lost topic end where it is known next, or at the next snapshot. Make the tables
    `sizes`, of the topics and partitions that each cluster had before the axis and at the end of
    each step, and `prefixes`.
    """
    axis = selection.axis
    selection.aggregates.execute(f"""
        CREATE TABLE snapshots AS SELECT cluster_id, position, {axis.clamped("epoch_us(time)")} AS step FROM (
            SELECT cluster_id, {{'epoch': epoch, 'sequence': 0}} AS position, began AS time FROM controller_epochs WHERE begins_with_snapshot
            UNION ALL FROM recorded
        );
        INSERT INTO courses SELECT cluster_id, {PREFIX}, min(earliest).step, -1, -partitions, 0, 0 FROM (
            SELECT * REPLACE ({{'epoch': next.begun.epoch, 'step': next.step}} AS next) FROM followed
            UNION ALL SELECT lost.*, {{'epoch': position.epoch, 'step': step}} FROM lost
            ASOF JOIN snapshots ON lost.cluster_id = snapshots.cluster_id AND until <= position
        ) AS ends(cluster_id, topic, partitions, until, earliest) GROUP BY cluster_id, topic, partitions, until;
        CREATE TABLE prefixes AS SELECT cluster_id, prefix,
            sum(if(step < 0, topics, 0)) AS topics_before, sum(if(step < {axis.steps}, topics, 0)) AS topics,
            sum(if(step < 0, partitions, 0)) AS partitions_before, sum(if(step < {axis.steps}, partitions, 0)) AS partitions,
            sum(if(step BETWEEN 0 AND {axis.steps - 1}, created, 0)) AS created,
            sum(if(step BETWEEN 0 AND {axis.steps - 1}, deleted, 0)) AS deleted
        FROM courses GROUP BY ALL;
        CREATE TABLE sizes AS
        SELECT clusters.cluster_id, ends.step, coalesce(sum(topics), 0) AS topics, coalesce(sum(partitions), 0) AS partitions
        FROM (SELECT cluster_id FROM snapshots UNION SELECT cluster_id FROM courses) AS clusters
        CROSS JOIN (SELECT step FROM steps UNION SELECT {BEFORE}) AS ends
        LEFT JOIN courses ON courses.cluster_id = clusters.cluster_id AND courses.step <= ends.step GROUP BY ALL
    """)


def _answer(report: Report) -> str:
    by_cluster, by_prefix = report.table("growth_by_cluster"), report.table("growth_by_prefix")
    sums = {**by_cluster.totals, **by_prefix.totals}
    if not by_prefix.rows:
        return "There was no topic."
    text = (
        f"{_from_to('Topics', sums['topics_before'], sums['topics'])}, "
        f"{_from_to('partitions', sums['partitions_before'], sums['partitions'])}; "
        f"{plural(sums['created'], 'topic was', 'topics were')} created and {count(sums['deleted'])} deleted."
    )
    cluster, prefix, grown = by_prefix.rows[0][:3]
    if grown <= 0:
        return f"{text} No prefix has more partitions than before."
    where = f" in {named(cluster)}" if by_cluster.all_rows > 1 else ""
    return f"{text} “{named(prefix)}”{where} grew most, by {plural(grown, 'partition')}."


def _from_to(what: str, before: int, after: int) -> str:
    if before == after:
        return f"{what} began and ended at {count(after)}"
    return f"{what} went from {count(before)} to {count(after)}"


def _drawn(report: Report) -> Plot | None:
    largest = report.table("growth_by_cluster").cut(REST)
    over_time = report.table("growth_over_time").records
    if not largest.rows:
        return None
    names = largest.values("cluster_id")
    lines = {name if len(names) > 1 else "": [name] for name in names}
    if largest.others:
        others = {row["cluster_id"] for row in over_time} - set(lines)
        lines[f"{plural(largest.others, 'other')} together"] = sorted(others)
    panels = []
    for title, which in (("Topics", "topics"), ("Partitions", "partitions")):
        series = []
        for index, (label, together) in enumerate(lines.items()):
            sizes = [[row[which] for row in over_time if row["cluster_id"] == name] for name in together]
            series.append(
                Series(label, series_colour(index), [sum(held) for held in zip(*sizes, strict=True)], "solid")
            )
        panels.append(Panel(title, series))
    return lines_over_time("growth", report.axis.starts, panels, at_ends=True)


GROWTH = ReportQuestion(
    "growth",
    "What grows?",
    _answer,
    _drawn,
    (
        TableQuery(
            "growth_by_cluster",
            "Growth by cluster",
            f"cluster_id {SIZES}",
            "SELECT cluster_id, arg_min(topics, step) AS topics_before, arg_max(topics, step) AS topics, "
            "arg_min(partitions, step) AS partitions_before, arg_max(partitions, step) AS partitions FROM sizes GROUP BY ALL",
            "partitions DESC, cluster_id",
            compares=True,
        ),
        TableQuery(
            "growth_by_prefix",
            "Growth by prefix of the name",
            f"cluster_id prefix growth {SIZES} created deleted",
            "SELECT *, partitions - partitions_before AS growth FROM prefixes",
            "growth DESC, created DESC, cluster_id, prefix",
        ),
        TableQuery(
            "growth_over_time",
            "Topics and partitions, by {step}",
            "cluster_id time topics partitions",
            "FROM sizes JOIN steps USING (step)",
            "cluster_id, time",
            {"time": "At the end of what began"},
            most=None,
            on_page=False,
        ),
    ),
    note="A prefix is the part of a topic's name before the first dot, dash or underscore.",
)
