"""Reads wait until the node has the change that its clients have seen, unless there is a reason."""

from minicontroller.admin.spec import Sender
from minicontroller.protocol.api_keys import ApiKey
from tests.support.specs import APIS

NOTHING_TO_WAIT_FOR = {
    ApiKey.CONSUMER_GROUP_DESCRIBE: "nodes have no such groups",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "nodes have no such groups",
    ApiKey.DESCRIBE_CLUSTER: "no request changes which brokers live",
    ApiKey.LIST_TRANSACTIONS: "no transaction is kept",
    ApiKey.UPDATE_FEATURES: "every request is refused",
}
"""The APIs that a node answers from no metadata that requests change, and why."""


def test_reads_wait_for_the_update() -> None:
    """A client that changed a topic finds it changed at the node that it asked."""
    at_once = {
        key
        for key, api in APIS.items()
        if api.sender is Sender.CLIENT and not (api.at_controller or api.between_nodes or api.waits_for_update)
    }
    message = "set waits_for_update=True in its API, or say in NOTHING_TO_WAIT_FOR why a read need not wait"
    assert at_once == NOTHING_TO_WAIT_FOR.keys(), message
