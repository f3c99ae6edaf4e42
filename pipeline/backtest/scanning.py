"""Scans a few columns of the table `events`, and summarizes each bucket of the history: where its
events are, and where a slice may begin.

It reads one file at a time, then merges the buckets and requests that several files share.
"""

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from ..database import connected
from ..schemas import Table
from .reading import columns_of
from .replaying import Window
from .slices import Bucket

COLUMNS = (
    *("epoch", "sequence", "time", "kind", "effect", "cluster_size"),
    *("request", "element", "elements", "validate_only"),
)
OF_FILE = """
    WITH told AS (
        SELECT *, coalesce(epoch_us(time) // 1000 >= $since_ms, true) AND coalesce(epoch_us(time) // 1000 < $until_ms, true) AS is_wanted,
            kind IN ('removal', 'observed', 'snapshot_begin') OR (element = 0 AND validate_only IS NOT TRUE) AS may_begin
        FROM events
    )
    SELECT $cluster_id AS cluster_id, epoch, (sequence - 1) // $bucket_events AS number, NULL AS request,
        min(sequence) AS first, max(sequence) AS last, count(*) AS events,
        min(sequence) FILTER (may_begin) AS start,
        min(sequence) FILTER (kind = 'snapshot_begin') AS snapshot_begin,
        max(sequence) FILTER (kind = 'snapshot_end') AS snapshot_end,
        max(sequence) FILTER (kind = 'dropped' OR effect = 'unknown') AS doubt,
        min(sequence) FILTER (is_wanted) AS first_wanted, max(sequence) FILTER (is_wanted) AS last_wanted,
        max({'sequence': sequence, 'nodes': cluster_size}) FILTER (cluster_size IS NOT NULL) AS cluster_size,
        arg_max(epoch_us(time) // 1000, sequence) AS newest_ms, $file AS file
    FROM told GROUP BY ALL
    UNION ALL BY NAME
    SELECT $cluster_id AS cluster_id, epoch, request, min(sequence) AS first, max(sequence) AS last
    FROM told WHERE validate_only AND elements > 1 GROUP BY ALL
"""
"""A query for the buckets of a file, and for its requests of several elements that were only
validated: these have a `request`.
"""
TOGETHER = """
    WITH told AS (
        SELECT cluster_id, epoch, number, request, sum(events)::BIGINT AS events,
            coalesce(min(COLUMNS(['first', 'start', 'snapshot_begin', 'first_wanted'])), 0),
            coalesce(max(COLUMNS(['last', 'snapshot_end', 'doubt', 'last_wanted'])), 0),
            max(cluster_size).nodes AS cluster_size, arg_max(newest_ms, last) AS newest_ms,
            list_sort(list(DISTINCT file)) AS files
        FROM found GROUP BY ALL
    ),
    requests AS (
        SELECT cluster_id, epoch, first, max(last) OVER (PARTITION BY cluster_id, epoch ORDER BY first) AS last
        FROM told WHERE request IS NOT NULL
    )
    SELECT told.* REPLACE (if(requests.last >= told.start, 0, told.start) AS start)
    FROM told ASOF LEFT JOIN requests
        ON told.cluster_id = requests.cluster_id AND told.epoch = requests.epoch AND told.start > requests.first
    WHERE told.request IS NULL ORDER BY told.cluster_id, told.epoch, told.number
"""
"""A query for the buckets of all files. No slice may begin between the elements of a request that
was only validated: others may be decided in between, and a later element sees what the earlier ones
would have made.
"""


class EventFiles(msgspec.Struct, frozen=True):
    """Files that hold a part of one cluster's events."""

    cluster_id: str
    paths: tuple[str, ...]


def buckets_of(files: EventFiles, window: Window, bucket_events: int) -> list[pa.Table]:
    """Return what each of these files holds of each bucket. Raises UnreadableTableError."""
    asked = {**msgspec.structs.asdict(window), "cluster_id": files.cluster_id, "bucket_events": bucket_events}
    found = []
    with connected() as connection:
        for path in files.paths:
            connection.register("events", columns_of([path], Table.EVENTS.in_files, COLUMNS))
            found.append(connection.sql(OF_FILE, params={**asked, "file": path}).to_arrow_table())
    return found


def merged_buckets(found: Iterable[pa.Table]) -> list[Bucket]:
    """Join the buckets of several files, in the order of the log and each once."""
    if not (tables := list(found)):
        return []
    with connected() as connection:
        connection.register("found", pa.concat_tables(tables))
        return msgspec.convert(connection.sql(TOGETHER).to_arrow_table().to_pylist(), list[Bucket])
