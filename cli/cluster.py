"""`minicontroller cluster` shows the nodes, the controller and unhealthy partitions."""

import click

from ..client.cluster import ClusterDescription
from ..text import escaped
from .admin_options import AdminOptions, admin_options, ask
from .output import print_json, print_table


@click.command()
@admin_options
def cluster(*, options: AdminOptions) -> None:
    """Show the nodes of a cluster, its controller, and how many partitions lack a leader or
    replicas.
    """
    seen = ask(options, lambda admin: admin.describe_cluster())
    partitions = [partition for topic in seen.topics for partition in topic.partitions]
    counts = {
        "topics": len(seen.topics),
        "partitions": len(partitions),
        "partitions_without_leader": sum(partition.leader is None for partition in partitions),
        "under_replicated_partitions": sum(partition.is_under_replicated for partition in partitions),
    }
    if options.as_json:
        print_json(_json(seen, counts))
    else:
        _print(seen, counts)


def _json(seen: ClusterDescription, counts: dict[str, int]) -> dict[str, object]:
    brokers = [
        {"id": broker.broker_id, "host": broker.host, "port": broker.port, "rack": broker.rack}
        for broker in seen.brokers
    ]
    return {"cluster_id": seen.cluster_id, "controller_id": seen.controller_id, "brokers": brokers, **counts}


def _print(seen: ClusterDescription, counts: dict[str, int]) -> None:
    click.echo(escaped(f"cluster {seen.cluster_id or '(without an id)'}"))
    click.echo(", ".join(f"{name.replace('_', ' ')}: {number}" for name, number in counts.items()))
    rows = [
        (b.broker_id, b.host, b.port, b.rack, "controller" if b.broker_id == seen.controller_id else "")
        for b in seen.brokers
    ]
    print_table(("id", "host", "port", "rack", ""), rows)
    if seen.controller_id is None:
        click.echo("There is no controller.", err=True)
