"""When controllers changed, and what waited then.

Rule: a change of controllers is where an epoch begins and the one before it is in the tables, too.
The clocks of two nodes differ, so the time between their events is what they say, and may be
negative.
"""

from collections import Counter, defaultdict
from statistics import median_low

import pyarrow as pa

from ..page.sheet import Column, Kind, Sheet, duration, plural
from ..periods import SECOND
from ..schemas import Table
from .durations import FIGURES
from .facts import COUNT, MOST, Fact, Facts, Figure, rows
from .latencies import Latencies, bucket
from .question import Question, times
from .reigns import Reign, drawn
from .selection import Selection
from .tops import MOST_ROWS

NEAR = 60
"""So many seconds before and after a change are looked at."""
STEP = 5
"""... in steps of so many."""
Near = dict[int, Latencies]
"""By seconds from a change, at the beginning of a step."""
First = dict[tuple[str, int], tuple[int, int]]
"""By cluster and epoch: how many changes were carried out in the first minute, and the slowest of
them.
"""


def controllers(selection: Selection) -> Question:
    reigns = reigns_of(selection)
    near, first = _near(selection.facts)
    around = Sheet(
        "durations_around_controller_changes",
        "How long changes took, before and after a change of controllers",
        (Column("seconds", "Seconds from the change", Kind.NUMBER), *FIGURES),
        [(seconds, *near[seconds].figures) for seconds in sorted(near)],
    )
    return Question(
        "controllers",
        "When did controllers change, and what waited then?",
        _answer(reigns, near),
        (_changes(reigns, first), around),
        lambda: drawn(reigns, around, selection.axis.starts, STEP),
        note="The time without events is from the last event of one controller to the first of the next, by their clocks; where nobody asks for "
        "anything, it says little. Durations count from a request's arrival at the controller that decided it.",
    )


def reigns_of(selection: Selection) -> list[Reign]:
    """Return the controller epochs that overlap the period, in the order of clusters and epochs."""
    found = rows(
        selection.facts,
        f"SELECT cluster_id, epoch, node, epoch_us(began), epoch_us(ended), events, missing FROM {selection.rows(Table.CONTROLLER_EPOCHS)} "
        "ORDER BY ALL",
    )
    reigns: list[Reign] = []
    for cluster, epoch, node, began, ended, events, missing in found:
        before = reigns[-1] if reigns and reigns[-1].cluster_id == cluster else None
        reigns.append(Reign(cluster, epoch, node, began, ended, events, missing, before))
    since, until = selection.since, selection.until
    return [
        reign for reign in reigns if (since is None or reign.ended >= since) and (until is None or reign.began < until)
    ]


_SINCE, _UNTIL = f"(time - change) / {SECOND}", f"(time - next_change) / {SECOND}"
NEAR_CHANGES = Fact(
    "near_changes",
    (
        "cluster_id",
        "epoch",
        f"(floor(distance / {STEP}) * {STEP})::INTEGER AS seconds",
        f"{bucket('latency_us')} AS bucket",
    ),
    {"changes": COUNT, "slowest": Figure("max(latency_us)", MOST)},
    f"""(
        SELECT *, CASE WHEN {_SINCE} >= 0 AND {_SINCE} < {NEAR} THEN {_SINCE} WHEN {_UNTIL} >= -{NEAR} AND {_UNTIL} < 0 THEN {_UNTIL} END
            AS distance
        FROM rows JOIN places USING (cluster_id, epoch) WHERE outcome = 'applied'
    ) WHERE distance IS NOT NULL""",
)
"""What was carried out near a change of controllers, with the seconds from it."""


def places(reigns: list[Reign]) -> pa.Table:
    """Tell when each epoch began, if another one was before it, and when the next one did."""
    changes = [reign for reign in reigns if reign.before]
    began = {(reign.cluster_id, reign.epoch): reign.began for reign in changes}
    following = {(reign.cluster_id, reign.before.epoch): reign.began for reign in changes if reign.before}
    found = [(*place, began.get(place), following.get(place)) for place in sorted({*began, *following})]
    columns = zip(*found, strict=True) if found else [[]] * 4
    types = {"cluster_id": pa.string(), "epoch": pa.int32(), "change": pa.int64(), "next_change": pa.int64()}
    return pa.table(
        [pa.array(column, type_) for column, type_ in zip(columns, types.values(), strict=True)], list(types)
    )


def _near(facts: Facts) -> tuple[Near, First]:
    near, first = defaultdict[int, Latencies](Latencies), First()
    for cluster, epoch, seconds, start, number, slowest in rows(facts, "FROM near_changes"):
        near[seconds].add(start, number, slowest)
        if seconds >= 0:
            before, slowest_before = first.get((cluster, epoch), (0, 0))
            first[cluster, epoch] = before + number, max(slowest_before, slowest)
    return near, first


def _changes(reigns: list[Reign], first: First) -> Sheet:
    changes = sorted((reign for reign in reigns if reign.before), key=lambda reign: (-reign.began, reign.cluster_id))
    found = []
    for reign in changes:
        assert reign.before is not None
        number, slowest = first.get((reign.cluster_id, reign.epoch), (0, None))
        place = (reign.cluster_id, reign.epoch, reign.began, reign.before.node, reign.node, reign.silence)
        found.append((*place, reign.events, reign.missing, number, slowest))
    return Sheet(
        "controller_changes",
        "Changes of controllers, the newest first",
        (
            Column("cluster_id", "Cluster", Kind.NAME),
            Column("epoch", "Epoch", Kind.NUMBER),
            Column("began", "First event", Kind.TIME),
            Column("node_before", "From node", Kind.NUMBER),
            Column("node", "To node", Kind.NUMBER),
            Column("silence_us", "Without events", Kind.MICROSECONDS),
            Column("events", "Events", Kind.COUNT, sums=True),
            Column("missing", "Missing", Kind.COUNT, sums=True),
            Column("first_minute", "In the first minute", Kind.COUNT, sums=True),
            Column("slowest_us", "Slowest of these", Kind.MICROSECONDS),
        ),
        found,
    ).cut(MOST_ROWS)


def _answer(reigns: list[Reign], near: Near) -> str:
    changes = [reign for reign in reigns if reign.before]
    if not reigns:
        return "No controller left an event."
    if not changes:
        return (
            "No controller changed."
            if len(reigns) > 1
            else f"It did not change: node {reigns[0].node} was the controller."
        )
    clusters = {reign.cluster_id for reign in reigns}
    taken = Counter(reign.node for reign in changes)
    node, most = min(taken.items(), key=lambda item: (-item[1], item[0]))
    several = (
        f" in {plural(len(clusters), 'cluster')}" if len(clusters) > 1 else f"; node {node} took over {times(most)}"
    )
    sentences = [f"The controller changed {times(len(changes))}{several}."]
    silences = [reign.silence for reign in changes if reign.silence is not None]
    sentences.append(
        f"From the last event of one to the first of the next, {duration(median_low(silences))} passed in the median and "
        f"{duration(max(silences))} at most."
    )
    if behind := sum(silence < 0 for silence in silences):
        sentences.append(f"{times(behind).capitalize()} the clock of the next was behind.")
    after, before = (_sum(near, which) for which in (range(NEAR), range(-NEAR, 0)))
    if after.count:
        sentences.append(
            f"In the minute after a change, {_told(after)}" + (f"; before, {_told(before)}." if before.count else ".")
        )
    return " ".join(sentences)


def _sum(near: Near, seconds: range) -> Latencies:
    return sum((latencies for start, latencies in sorted(near.items()) if start in seconds), Latencies())


def _told(latencies: Latencies) -> str:
    p50, p99 = (duration(latencies.percentile(percent) or 0) for percent in (50, 99))
    return f"{plural(latencies.count, 'change')} took {p50} at p50 and {p99} at p99"
