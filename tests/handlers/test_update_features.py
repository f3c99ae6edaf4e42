"""UpdateFeatures and the features in ApiVersions: none can be finalized, and those that somebody
has finalized are shown.
"""

import pytest

from minicontroller.cluster.entities import FinalizedFeatures
from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest
from minicontroller.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from minicontroller.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from minicontroller.protocol.messages.update_features import FeatureUpdate, UpdateFeaturesRequest
from tests.handlers.asking import Client, image, node_with
from tests.handlers.test_authorization import ALICE, allowing
from tests.support.specs import APIS

UNSUPPORTED = "Could not apply finalized feature update because the provided feature is not supported."
NOTHING_TO_DELETE = "Can not delete non-existing finalized feature."


def client(**how: object) -> Client:
    node = node_with(image())
    node.cache.read({"/feature": FinalizedFeatures(4, (("known", 3), ("off", 0)))})
    return Client(node, handlers=APIS, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "level", "kind", "text"),
    [
        ("f", 1, 1, UNSUPPORTED),
        ("known", 0, 2, UNSUPPORTED),
        ("f", 0, 2, NOTHING_TO_DELETE),
        ("f", -1, 3, NOTHING_TO_DELETE),
        ("", 1, 1, "Feature name can not be empty."),
        ("f", 1, 9, "Received unknown upgrade type."),
    ],
)
async def test_every_update_is_refused(name: str, level: int, kind: int, text: str) -> None:
    """Each with Kafka's text; the request as a whole is no error."""
    update = FeatureUpdate(feature=name, max_version_level=level, upgrade_type=kind)
    answer = await client().ask(UpdateFeaturesRequest(feature_updates=[update, update]), 1)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert [(row.feature, row.error_code, row.error_message) for row in answer.results] == [(name, 42, text)]


async def test_an_update_needs_alter_on_the_cluster() -> None:
    """Without it the request is refused as a whole."""
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdate(feature="f", max_version_level=1)])
    for granted, code in (((), 31), (((AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALTER),), 0)):
        answer = await client(principal=ALICE, authorization=allowing(*granted)).ask(request, 0)
        assert (answer.error_code, len(answer.results)) == (code, 0 if code else 1)


@pytest.mark.parametrize("version", [3, 4])
async def test_finalized_features_are_shown(version: int) -> None:
    """With the version of `/feature` as their epoch, and without those of level 0."""
    answer = client().ask_at_once(ApiVersionsRequest(client_software_name="a", client_software_version="1"), version)
    assert answer.finalized_features_epoch == 4
    found = [(each.name, each.min_version_level, each.max_version_level) for each in answer.finalized_features]
    assert found == [("known", 3, 3)]


async def test_groups_of_kip_848_are_refused() -> None:
    """UNSUPPORTED_VERSION, after which clients ask by the older requests."""
    assert client().ask_at_once(ConsumerGroupHeartbeatRequest(group_id="g"), 0).error_code == 35
    names = [f"g{number}" for number in range(300)]
    for asked in (["g", "g"], names):
        answer = await client().ask(ConsumerGroupDescribeRequest(group_ids=asked), 0)
        assert [(row.group_id, row.error_code) for row in answer.groups] == [(name, 35) for name in asked]
