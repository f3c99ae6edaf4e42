"""Opens the HTTP port, and loads the site behind it when somebody looks at it.

Rule: nothing imports `serving`, or a site that is made with it, by an import statement. It needs
h11, starlette and prometheus-client, so a process whose page nobody opens neither starts later nor
grows by them.
"""

import logging
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TypeVar

import trio

from ...process.settings.node_config import NodeConfig
from .listener import HttpListener, Serve, is_loopback
from .protection import HttpProtection

log = logging.getLogger("minicontroller.http")

P = TypeVar("P")


async def open_site(module: str, process: P, config: NodeConfig, nursery: trio.Nursery) -> HttpListener | None:
    """Open the port that `http.listen` names, if it names one, and serve the site that the module
    makes of the process, by tasks of the nursery. Raises ConfigurationError or OSError.
    """
    address = config.optional_string("http.listen")
    if not address:
        return None
    protection = HttpProtection(config)
    http = HttpListener(partial(_load_site, module, process), protection)
    await http.open(address)
    if protection.asks_for_a_token and protection.context is None and not is_loopback(http.host):
        log.warning("http.bearer.token crosses the network unencrypted: set http.ssl.keystore.location")
    if not protection.asks_for_a_token and not is_loopback(http.host):
        log.warning(
            "everybody who reaches %s can read the page and the metrics, with the names of topics and users: "
            "set http.bearer.token.file, or let http.listen be an address of this machine alone", http.address,
        )  # fmt: skip
    nursery.start_soon(http.run)
    nursery.start_soon(protection.follow)
    return http


async def _load_site(module: str, process: P, listener: HttpListener) -> Serve:
    loaded = await trio.to_thread.run_sync(import_module, module)
    make_site: Callable[[P, HttpListener], Serve] = loaded.site
    return make_site(process, listener)
