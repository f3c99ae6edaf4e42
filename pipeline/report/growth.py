"""What grows: topics and partitions over time, and the prefixes of names that grow most.

Rule: counted are the topics that clients see. What a cluster had when its log began is no growth;
and where events are missing, what was there stays counted until the next snapshot says what is.
"""

from ..page.charts import Panel, Series, lines_over_time, short_count
from ..page.drawing import REST, Plot, series_colour
from ..page.sheet import count, plural
from ..periods import Axis
from ..schemas import Table
from .facts import ANY, LEAST, Fact, Figure, Wanted
from .question import Question, Report, named
from .selection import Selection
from .sheets import Asked

BEFORE = -1
"""The step of all that was before the axis."""
SIZES = "topics_before topics partitions_before partitions"

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


COLUMNS = "cluster_id topic partitions marked_for_deletion from_epoch from_sequence from_time from_cause until_time until_cause"


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
    "cluster_id from_epoch from_sequence from_cause marked_for_deletion",
    "FROM source WHERE NOT marked_for_deletion",
    (FIRST_CHANGES,),
)


def grown(selection: Selection) -> Wanted:
    """Return what is counted of the topics, after BEGUN was."""
    axis, first = selection.axis, selection.facts.sql("FROM first_changes").to_arrow_table()
    return Wanted(Table.TOPIC_HISTORY, COLUMNS, states(axis), (COURSES, prefixes(axis)), {"first_changes": first})


def sum_up_growth(selection: Selection) -> None:
    """Make, of the facts, the table `sizes`: how many topics and partitions each cluster had before
    the axis and at the end of each step.
    """
    began = selection.axis.clamped("epoch_us(began)")
    selection.facts.execute(f"""
        CREATE TABLE sizes AS WITH snapshots AS (
            SELECT cluster_id, {began} AS step FROM controller_epochs WHERE begins_with_snapshot
            UNION SELECT cluster_id, step FROM courses WHERE by_snapshot OR step = {BEFORE}
        ), known AS (
            SELECT cluster_id, step, topics, partitions FROM courses WHERE NOT lost
            UNION ALL SELECT courses.cluster_id, snapshots.step, topics, partitions
            FROM courses ASOF JOIN snapshots ON courses.cluster_id = snapshots.cluster_id AND courses.step <= snapshots.step WHERE lost
        )
        SELECT clusters.cluster_id, ends.step, coalesce(sum(topics), 0) AS topics, coalesce(sum(partitions), 0) AS partitions
        FROM (SELECT cluster_id FROM snapshots UNION SELECT cluster_id FROM courses) AS clusters
        CROSS JOIN (SELECT step FROM steps UNION SELECT {BEFORE}) AS ends
        LEFT JOIN known ON known.cluster_id = clusters.cluster_id AND known.step <= ends.step GROUP BY ALL
    """)


def _answer(report: Report) -> str:
    by_cluster, by_prefix = report.sheet("growth_by_cluster"), report.sheet("growth_by_prefix")
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
    largest = report.sheet("growth_by_cluster").cut(REST)
    over_time = report.sheet("growth_over_time").records
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
            series.append(Series(label, series_colour(index), [sum(held) for held in zip(*sizes, strict=True)]))
        panels.append(Panel(title, series, short_count))
    return lines_over_time("growth", report.axis.starts, panels, at_ends=True)


GROWTH = Question(
    "growth",
    "What grows?",
    _answer,
    _drawn,
    (
        Asked(
            "growth_by_cluster",
            "Growth by cluster",
            f"cluster_id {SIZES}",
            "SELECT cluster_id, arg_min(topics, step) AS topics_before, arg_max(topics, step) AS topics, "
            "arg_min(partitions, step) AS partitions_before, arg_max(partitions, step) AS partitions FROM sizes GROUP BY ALL",
            "partitions DESC, cluster_id",
            compares=True,
        ),
        Asked(
            "growth_by_prefix",
            "Growth by prefix of the name",
            f"cluster_id prefix growth {SIZES} created deleted",
            "SELECT *, partitions - partitions_before AS growth FROM prefixes",
            "growth DESC, created DESC, cluster_id, prefix",
        ),
    ),
    more=(
        Asked(
            "growth_over_time",
            "Topics and partitions, by {step}",
            "cluster_id time topics partitions",
            "FROM sizes JOIN steps USING (step)",
            "cluster_id, time",
            {"time": "At the end of what began"},
            most=None,
        ),
    ),
    note="A prefix is what stands before the first dot, dash or underscore of a topic's name.",
)
