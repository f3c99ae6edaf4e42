"""`minicontroller protocol` shows the APIs of nodes, and the generated code of a message."""

from difflib import get_close_matches

import click
import msgspec

from ..protocol.compiler import sources_of
from ..protocol.header import RequestHeader, ResponseHeader
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct, layout_of
from .output import print_table


class ApiRow(msgspec.Struct, frozen=True):
    """One API, its versions, and the first version with compact forms and tags."""

    key: int
    name: str
    min_version: int
    max_version: int
    flexible_from: int | None

    @property
    def versions(self) -> str:
        return (
            str(self.min_version) if self.min_version == self.max_version else f"{self.min_version}-{self.max_version}"
        )


@click.group()
def protocol() -> None:
    """Show the APIs and messages that nodes support."""


@protocol.command()
def apis() -> None:
    """List the APIs and versions that nodes support."""
    rows = [(row.key, row.name, row.versions, row.flexible_from) for row in supported()]
    print_table(("key", "API", "versions", "flexible from"), rows)


@protocol.command()
@click.argument("message")
@click.argument("version", type=int)
def show(message: str, version: int) -> None:
    """Show the generated code of a MESSAGE. The code encodes and decodes a message such as
    CreateTopicsRequest in a VERSION.
    """
    try:
        click.echo(source(message, version))
    except (LookupError, ValueError) as error:
        text = str(error.args[0] if error.args else error)
        raise click.UsageError(f"{text[:1].upper()}{text[1:]}.") from None


def supported() -> list[ApiRow]:
    return [
        ApiRow(int(row.key), row.name, row.min_version, row.max_version, row.flexible_from)
        for _, row in sorted(KAFKA.items())
    ]


def source(name: str, version: int) -> str:
    """Return the generated source of a message's encoder and decoder.

    Raises:
        LookupError: there is no such message or version. The text names the nearest message, or
        the versions that there are.
    """
    cls = _message(name)
    layout = layout_of(cls)
    if not layout.min_version <= version <= layout.max_version:
        raise LookupError(
            f"{cls.__name__} has the versions {layout.min_version} to {layout.max_version}, not {version}"
        )
    encoder_text, decoder_text = sources_of(cls, version)
    return (
        f"# {cls.__name__}, version {version}: the encoder\n{encoder_text}\n"
        f"# {cls.__name__}, version {version}: the decoder\n{decoder_text}"
    )


def _message(name: str) -> type[WireStruct]:
    known: dict[str, type[WireStruct]] = {cls.__name__: cls for cls in (RequestHeader, ResponseHeader)}
    for row in KAFKA.values():
        known |= {row.request.__name__: row.request, row.response.__name__: row.response}
    by_lower_name = {key.lower(): cls for key, cls in known.items()}
    if cls := by_lower_name.get(name.lower()):
        return cls
    nearest = get_close_matches(name.lower(), by_lower_name, n=1, cutoff=0.0)
    raise LookupError(f"there is no message {name}; the nearest is {by_lower_name[nearest[0]].__name__}")
