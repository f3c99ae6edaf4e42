"""The cluster that is driven: three nodes on an ensemble of three ZooKeepers, every way between
them through a proxy.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tests.faults.tree import Tree
from tests.support.nodes import WITH_A_LISTENER_FOR_NODES, NodeProcess, Nodes
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.zookeeper import ZooKeeperEnsemble

NODES = 3
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:node",
}
"""ACLs are kept, and everybody here may do everything."""


class Arena(msgspec.Struct):
    """The nodes, servers and connections that can be broken."""

    nodes: Nodes
    ensemble: ZooKeeperEnsemble
    tree: Tree
    to_zookeeper: list[list[Proxy]]
    """By node: the ways to each server."""
    to_node: list[Proxy]
    """The way of other nodes to this one."""
    completion: str
    logins: dict[int, str]
    """By node: the address where nodes log in."""


@contextmanager
def running_arena(
    folder: Path,
    ensemble: ZooKeeperEnsemble,
    chroot: str,
    *,
    completion: str,
    command: Sequence[str | Path] | None = None,
    spared: int = 0,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Arena]:
    """`completion` as the key `metadata.completion` has it; `command` runs something else than the
    installed program. `spared` more nodes, with the highest ids, are left alone by all troubles.
    """
    numbers = range(1, NODES + spared + 1)
    with ExitStack() as stack:
        ways = [[stack.enter_context(Proxy(server.port)) for server in ensemble.servers] for _ in numbers]
        ports = [free_port() for _ in numbers]
        inner = [stack.enter_context(Proxy(port)) for port in ports]
        nodes = Nodes.of(
            NodeProcess(
                folder,
                number,
                ",".join(proxy.connect for proxy in ways[number - 1]) + chroot,
                {
                    **WITH_A_LISTENER_FOR_NODES,
                    **AUTHORIZER,
                    "listeners": f"CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:{ports[number - 1]}",
                    "advertised.listeners": f"CLIENT://127.0.0.1:0,INTERNAL://{inner[number - 1].connect}",
                    "metadata.completion": completion,
                    **(settings or {}),
                },
                command=command,
            )
            for number in numbers
        )
        stack.callback(nodes.kill)
        nodes.start()
        tree = stack.enter_context(Tree(ensemble.connect, chroot, timeout=6))
        logins = {number: f"127.0.0.1:{port}" for number, port in zip(numbers, ports, strict=True)}
        yield Arena(nodes, ensemble, tree, ways, inner, completion, logins)
