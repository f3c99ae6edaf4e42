"""How a node stands for election, and which of its parts the controllers of its epochs use.

Rule: the packages of the controller know no `Node`; what they use of one is handed to them here.
"""

from collections.abc import Callable, Sequence
from functools import partial

from ...admin.recording.recorder import AuditRecorder
from ...admin.recording.records import EventOrigin
from ...cluster.znodes import layout
from ..active.active_controller import ActiveController, WonElection
from ..active.channel import LinkFactory
from ..active.election import Election
from ..active.local_nodes import LocalNodes
from .node import Node


def election_of(node: Node, link: LinkFactory) -> Election:
    """Return the election for which a node stands while it is registered."""
    election = Election(
        node.store,
        node.broker_id,
        partial(_controller, node, link),
        registration=layout.broker_path(node.broker_id),
        followed_epoch=lambda: node.cache.image.controller_epoch,
    )

    def notified(paths: Sequence[str]) -> None:
        if election.controller is not None:
            election.controller.notified(paths)

    node.reader.on_notified(notified)
    return election


def _controller(node: Node, link: LinkFactory, won: WonElection, contradicted: Callable[[], None]) -> ActiveController:
    node.metrics.elections_won += 1
    origin = EventOrigin(node.cluster_id, won.epoch, won.broker_id)
    return ActiveController(
        won,
        node.store,
        lambda: node.dynamic_configs.current,
        LocalNodes(node.broker_id, node, node.local_nodes),
        link,
        recorder=None if node.audit is None else AuditRecorder(node.audit, origin),
        metrics=node.metrics,
        counts_topics=node.rule_files is not None,  # the rules may contain a quota, now or later
        serve=node.place.serve,
        contradicted=contradicted,
    )
