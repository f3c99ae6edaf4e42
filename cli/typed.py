"""Validates arguments before a command connects: durations, addresses, text and files."""

import math
import sys
from pathlib import Path
from typing import Any

import click

MOST_SECONDS = 86_400.0
INT64 = 2**63 - 1
INT32 = 2**31 - 1
INT16 = 2**15 - 1
"""The range of the integers in Kafka's requests."""


class Seconds(click.FloatRange):
    """A duration in seconds, above zero and at most a day, since Kafka's requests carry
    milliseconds.
    """

    def __init__(self) -> None:
        super().__init__(0, MOST_SECONDS, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return seconds


def parse_listener(_context: click.Context, _parameter: click.Parameter, address: str) -> tuple[str, int]:
    """Parse HOST:PORT, where port 0 stands for a free port. Raises click.BadParameter."""
    from ..policies.configs.values import host_and_port

    found = host_and_port(address)
    if found is None:
        raise click.BadParameter(f"{address!r} is not HOST:PORT (an IPv6 address stands in brackets: [::1]:9092).")
    return found


def parse_address(context: click.Context, parameter: click.Parameter, address: str) -> tuple[str, int]:
    """Parse HOST:PORT of a port that a node has. Raises click.BadParameter."""
    host, port = parse_listener(context, parameter, address)
    if not port:
        raise click.BadParameter(f"{address!r} is not HOST:PORT.")
    return host, port


def require_text() -> None:
    """Refuse arguments that are not UTF-8, which would become different names or values. Raises
    click.UsageError.
    """
    for word in sys.argv[1:]:
        try:
            word.encode()
        except UnicodeEncodeError:
            from ..text import escaped

            raise click.UsageError(f"{escaped(word)} is not text in UTF-8.") from None


def read_text(file: Path) -> str:
    """Read a UTF-8 file. Raises click.ClickException."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeError:
        reason = "it is not text in UTF-8"
    except OSError as error:
        reason = error.strerror or str(error)
    from ..text import escaped

    raise click.ClickException(f"Cannot read {escaped(str(file))}: {reason}.")
