"""The installed command with a cluster to ask."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.command import Outcome, call


class Installed(NamedTuple):
    bootstrap: str
    folder: Path

    def __call__(self, *arguments: str) -> Outcome:
        return call(*arguments, folder=self.folder, variables={"MINICONTROLLER_BOOTSTRAP": self.bootstrap})

    def json(self, *arguments: str, code: int = 0) -> Any:
        outcome = self(*arguments, "--json")
        assert outcome.code == code, outcome
        return json.loads(outcome.stdout)
