"""Loads the site when somebody looks at it.

Rule: nothing imports `serving` by an import statement. It needs hypercorn, starlette and
prometheus-client, so a process whose page nobody opens neither starts later nor grows by them.
"""

from collections.abc import Callable
from importlib import import_module

import trio

from .listener import HttpListener, HttpService
from .process import Process


async def load_site(process: Process, listener: HttpListener) -> HttpService:
    """Import the site in a thread, then make it."""
    serving = await trio.to_thread.run_sync(import_module, f"{__package__}.serving")
    make_site: Callable[[Process, HttpListener], HttpService] = serving.Site
    return make_site(process, listener)
