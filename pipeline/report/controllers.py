"""When controllers changed, and what waited then.

Rule: a change of controllers is where an epoch begins and the one before it is in the tables, too.
The clocks of two nodes differ, so the time between their events is what they say, and may be
negative.
"""

from collections import Counter
from statistics import median_low

import pyarrow as pa

from ..page.sheet import duration, plural
from ..periods import SECOND
from .durations import BUCKET, COLUMNS, LATENCIES, percentiles
from .facts import Fact
from .question import Question, Report, times
from .reigns import drawn
from .selection import Selection
from .sheets import Asked

NEAR, STEP = 60, 5
"""How many seconds before and after a change are looked at, and in steps of how many."""

_SINCE, _UNTIL = f"(time - change) / {SECOND}", f"(time - next_change) / {SECOND}"
NEAR_CHANGES = Fact(
    "near_changes",
    ("cluster_id", "epoch", f"(floor(distance / {STEP}) * {STEP})::INTEGER AS seconds", BUCKET),
    LATENCIES,
    f"""(
        SELECT *, CASE WHEN {_SINCE} >= 0 AND {_SINCE} < {NEAR} THEN {_SINCE} WHEN {_UNTIL} >= -{NEAR} AND {_UNTIL} < 0 THEN {_UNTIL} END
            AS distance
        FROM rows JOIN places USING (cluster_id, epoch) WHERE outcome = 'applied'
    ) WHERE distance IS NOT NULL""",
)
"""What was carried out near a change of controllers, with the seconds from it."""
_PLACES = "SELECT cluster_id, epoch, change, next_change FROM reigns WHERE coalesce(change, next_change) IS NOT NULL"


def find_reigns(selection: Selection) -> pa.Table:
    """Make the table `reigns` of the controller epochs that overlap the period, each with the one
    before it in its cluster; and return which places are near a change of controllers: when each
    epoch began, if another one was before it, and when the next one did.
    """
    selection.facts.execute(f"""
        CREATE TABLE reigns AS SELECT * EXCLUDE (is_within), lag(node) OVER clusters AS node_before, began - lag(ended) OVER clusters AS silence_us,
            CASE WHEN node_before IS NOT NULL THEN began END AS change, lead(CASE WHEN is_within THEN began END) OVER clusters AS next_change
        FROM (
            SELECT *, {selection.within("began", "ended")} AS is_within
            FROM (SELECT * REPLACE (epoch_us(began) AS began, epoch_us(ended) AS ended) FROM controller_epochs)
        ) WINDOW clusters AS (PARTITION BY cluster_id ORDER BY epoch) QUALIFY is_within
    """)
    return selection.facts.sql(_PLACES).to_arrow_table()


def _answer(report: Report) -> str:
    reigns = report.facts.execute("SELECT cluster_id, node, silence_us FROM reigns ORDER BY ALL").fetchall()
    changes = [reign for reign in reigns if reign[2] is not None]
    if not reigns:
        return "No controller left an event."
    if not changes and len(reigns) == 1:
        return f"It did not change: node {reigns[0][1]} was the controller."
    if not changes:
        return "No controller changed."
    clusters = {cluster for cluster, _, _ in reigns}
    node, most = min(Counter(node for _, node, _ in changes).items(), key=lambda item: (-item[1], item[0]))
    silences = [silence for _, _, silence in changes]
    text = f"The controller changed {times(len(changes))}"
    text += f" in {len(clusters)} clusters" if len(clusters) > 1 else f"; node {node} took over {times(most)}"
    text += (
        f". From the last event of one to the first of the next, {duration(median_low(silences))} passed in the median and "
        f"{duration(max(silences))} at most."
    )
    if behind := sum(silence < 0 for silence in silences):
        text += f" {times(behind).capitalize()} the clock of the next was behind."
    by_side = percentiles("is_after", "(SELECT *, seconds >= 0 AS is_after FROM near_changes)")
    found = report.facts.execute(f"SELECT is_after, changes, p50_us, p99_us FROM ({by_side})").fetchall()
    told = {
        is_after: f"{plural(number, 'change')} took {duration(p50)} at p50 and {duration(p99)} at p99"
        for is_after, number, p50, p99 in found
    }
    if True in told:
        text += f" In the minute after a change, {told[True]}" + (f"; before, {told[False]}." if False in told else ".")
    return text


CONTROLLERS = Question(
    "controllers",
    "When did controllers change, and what waited then?",
    _answer,
    lambda report: drawn(report, STEP),
    (
        Asked(
            "controller_changes",
            "Changes of controllers, the newest first",
            "cluster_id epoch began node_before node silence_us events missing first_minute slowest_us",
            "SELECT * REPLACE (coalesce(first_minute, 0) AS first_minute) FROM reigns LEFT JOIN (SELECT cluster_id, epoch, "
            "sum(changes) AS first_minute, max(slowest) AS slowest_us FROM near_changes WHERE seconds >= 0 GROUP BY ALL) "
            "USING (cluster_id, epoch) WHERE node_before IS NOT NULL",
            "began DESC, cluster_id, epoch",
            {"slowest_us": "Slowest of these"},
        ),
        Asked(
            "durations_around_controller_changes",
            "How long changes took, before and after a change of controllers",
            f"seconds {COLUMNS}",
            percentiles("seconds", "near_changes"),
            "seconds",
        ),
    ),
    note="The time without events is from the last event of one controller to the first of the next, by their clocks; where nobody asks for "
    "anything, it says little. Durations count from a request's arrival at the controller that decided it.",
)
