"""Opens and closes listeners of a node while it runs, as its configuration changes.

Rule: the node registers no listener that is not open. One that cannot be opened is an error in the
log, and is tried again; the others stay as they are, with their connections.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence

import trio

from ...cluster.errors import ConfigurationError
from ...network.server import ServedConnection, Server
from ...process.settings.listeners import ConfiguredListener
from ...process.settings.node_config import NodeConfig
from ...security.caller import Listener
from ...security.listeners import server_listener
from ...security.mechanisms import LoginSources
from ...store.signal import Signal

log = logging.getLogger("minicontroller.node")

GRACE_SECONDS = 5.0
"""The time in seconds that running requests have to finish at a listener that is closed."""
RETRY_SECONDS = 5.0
"""How long after a listener could not be opened it is tried again."""


class OpenListeners:
    """Keeps those listeners open that the configuration names: `run` does so."""

    def __init__(
        self,
        config: NodeConfig,
        server: Server,
        open_at: Callable[[Sequence[Listener]], Awaitable[None]],
        sources: LoginSources,
        changed: Callable[[NodeConfig], None],
    ) -> None:
        """`server` has the listeners of `config` open, and `open_at` opens others at it, whose
        users `sources` finds. `changed` is called with each configuration when its listeners are
        open. It may raise ConfigurationError.
        """
        self._config = config
        self._server = server
        self._open_at = open_at
        self._sources = sources
        self._changed = changed
        self._open = {listener.name: listener for listener in config.listeners}
        self._tasks: dict[str, trio.CancelScope] = {}
        """The tasks of each open listener, by its name."""
        self._faults: dict[str, str] = {}
        """Why listeners are not open, by name."""
        self._signal = Signal()

    def follow(self, config: NodeConfig) -> None:
        """Have the listeners of this configuration open, soon."""
        self._config = config
        self._signal.send()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow until cancelled; reported as started once the first configuration is carried
        out.
        """
        async with trio.open_nursery() as nursery:
            for listener in self._server.listeners:
                self._start_tasks(listener, LoginSources(), nursery)
            while True:
                await self._carry_out(self._config, nursery)
                task_status.started()
                task_status = trio.TASK_STATUS_IGNORED
                with trio.move_on_after(RETRY_SECONDS if self._faults else math.inf):
                    await self._signal.wait()

    async def _carry_out(self, config: NodeConfig, nursery: trio.Nursery) -> None:
        wanted = {listener.address for listener in config.listeners}
        self._faults = {name: fault for name, fault in self._faults.items() if name in {each[0] for each in wanted}}
        leaving: set[ServedConnection] = set()
        for name in [name for name, listener in self._open.items() if listener.address not in wanted]:
            log.info("listener %s is closed: listeners has it no more, or at another address", name)
            leaving |= self._close(name)
        for listener in config.listeners:
            if listener.name not in self._open:
                await self._try_to_open(config, listener, nursery)
        try:
            self._changed(config)
        except ConfigurationError as error:
            log.warning("%s What is registered stays.", error)
        await self._server.drain(leaving, GRACE_SECONDS)

    def _close(self, name: str) -> set[ServedConnection]:
        del self._open[name]
        self._tasks.pop(name).cancel()
        return self._server.stop_listening(name)

    async def _try_to_open(self, config: NodeConfig, listener: ConfiguredListener, nursery: trio.Nursery) -> None:
        sources = self._sources.beside()
        try:
            made = await trio.to_thread.run_sync(server_listener, config, listener, sources)
            await self._open_at([made])
        except (ConfigurationError, OSError) as error:
            if self._faults.get(listener.name) != str(error):
                log.warning(
                    "listener %s is neither open nor registered: %s The node tries again.", listener.name, error
                )
            self._faults[listener.name] = str(error)
            return
        self._faults.pop(listener.name, None)
        self._open[listener.name] = listener
        self._start_tasks(made, sources, nursery)
        log.info("listener %s is open at port %d", made.name, self._server.ports[made.name])

    def _start_tasks(self, listener: Listener, sources: LoginSources, nursery: trio.Nursery) -> None:
        """Follow the stores of a listener, and what its mechanisms look up, while it is open."""
        scope = self._tasks[listener.name] = trio.CancelScope()

        async def run() -> None:
            with scope:
                async with trio.open_nursery() as tasks:
                    tasks.start_soon(sources.run)
                    if listener.tls is not None:
                        tasks.start_soon(listener.tls.follow, lambda: self._config)

        nursery.start_soon(run)
