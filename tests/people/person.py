"""Somebody with an empty folder and the installed command."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.command import Outcome, call
from tests.support.cluster import MiniCluster, running_cluster


class Person(NamedTuple):
    command: Path
    folder: Path

    def __call__(self, *arguments: str, cluster: MiniCluster | None = None) -> Outcome:
        """A command that ends by itself, about `cluster` if it is about one."""
        variables = {} if cluster is None else {"MINICONTROLLER_BOOTSTRAP": cluster.bootstrap}
        return call(*arguments, folder=self.folder, variables=variables, command=self.command)

    def json(self, *arguments: str, cluster: MiniCluster, code: int = 0) -> Any:
        outcome = self(*arguments, "--json", cluster=cluster)
        assert outcome.code == code, outcome
        return json.loads(outcome.stdout)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    @contextmanager
    def up(self, settings: Mapping[str, str], store: str = "memory") -> Iterator[MiniCluster]:
        """Three nodes, started from the folder and ended by Ctrl-C."""
        with running_cluster(store=store, settings=settings, command=self.command, folder=self.folder) as cluster:
            yield cluster
