"""The znodes of configs, as other programs read and write them."""

from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.configs import decode_config, encode_config_change
from minicontroller.store.base import Create, Store

LEFTOVER = b'{"version":1,"config":{"segment.ms":"7"}}'


def notification(entity_path: str) -> Create:
    """Return the notification that the configs of this entity have changed."""
    return Create(layout.CONFIG_CHANGE_PREFIX, encode_config_change(entity_path), sequential=True)


async def configs_in(store: Store, entity_path: str) -> dict[str, str]:
    await store.sync()
    entry = await store.get(f"/config/{entity_path}")
    assert entry is not None
    return dict(decode_config(entry.data))
