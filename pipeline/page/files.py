"""Results on their way to the disk.

Whether a result can be written is found out before the work, and when it cannot be written after
all it goes to a folder for temporary files instead. A file is there whole or not at all.
"""

import csv
import io
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from ..failures import PipelineError
from ..location import reason
from .tables import ReportTable, Value, ValueKind, as_datetime

FORMULA_STARTS = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""The characters that begin a formula in a spreadsheet, also in the wide forms of East Asian
typing.
"""


class UnwritableError(PipelineError):
    """Nothing can be written to a place."""


class Files:
    """The page at `out`, and beside it, for `a.html`, `a.json` and the folder `a-csv`."""

    def __init__(self, out: Path) -> None:
        """Check that the page can be written at `out`. Raises UnwritableError."""
        self.out = out.absolute()
        self.json = self.out.with_suffix(".json")
        self.csv_folder = self.beside("csv")
        self.written: list[Path] = []
        self.misplaced: list[str] = []
        """A sentence for each file that had to go elsewhere."""
        self._refuge: Path | None = None
        self._check()

    def beside(self, name: str) -> Path:
        return self.out.with_name(f"{self.out.stem}-{name}")

    def save(self, path: Path, content: bytes) -> Path:
        """Write a file, elsewhere if need be, and return where it is. Raises UnwritableError."""
        try:
            path.parent.mkdir(exist_ok=True)
            with whole(path) as file:
                file.write(content)
        except OSError as error:
            path = self._saved_elsewhere(path, content, error)
        self.written.append(path)
        return path

    def _saved_elsewhere(self, path: Path, content: bytes, why: OSError) -> Path:
        try:
            self._refuge = self._refuge or Path(tempfile.mkdtemp(prefix="minicontroller-"))
            refuge = self._refuge / path.name
            refuge.write_bytes(content)
        except OSError as error:
            raise UnwritableError(
                f"{path} could not be written ({reason(why)}), and no temporary file either ({reason(error)})."
            ) from None
        self.misplaced.append(f"{path} could not be written ({reason(why)}): it is in {refuge}.")
        return refuge

    def _check(self) -> None:
        folder = self.out.parent
        if self.out.suffix.lower() not in {".html", ".htm"}:
            raise UnwritableError(f"The page is HTML: its name must end in .html, and {self.out.name} does not.")
        if not folder.is_dir():
            raise UnwritableError(f"There is no folder {folder} to write {self.out.name} into.")
        for path in (self.out, self.json):
            if path.is_dir():
                raise UnwritableError(f"{path} is a folder: the result needs another name.")
        if self.csv_folder.exists() and not self.csv_folder.is_dir():
            raise UnwritableError(f"{self.csv_folder} is a file, but the CSV files need a folder of this name.")
        for place in (folder, self.csv_folder):
            try:
                if place.exists():
                    tempfile.TemporaryFile(dir=place).close()
            except OSError as error:
                raise UnwritableError(f"Nothing can be written into {place}: {reason(error)}.") from None


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its name when it is complete. Raises OSError, which names it."""
    part = path.with_name(f".{path.name}.part")
    try:
        with named(path):
            with part.open("wb") as file:
                yield file
            part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Raise the OSError of the block with the name of a file, unless it names one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), error.filename or str(path)) from None


def as_json(document: Any) -> bytes:
    """Encode a document as JSON for people, too: indented, and with an end of line."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def plain_table(table: ReportTable) -> dict[str, Any]:
    """Convert a table for JSON, with texts as they are."""
    about = {name: getattr(table, name) for name in ("name", "title", "all_rows", "totals")}
    return about | {"rows": [dict(zip(table.names, row, strict=True)) for row in _plain_rows(table)]}


def as_csv(table: ReportTable) -> bytes:
    """Encode a table as CSV (RFC 4180, UTF-8), with an apostrophe before what may be a formula."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([table.names, *(map(_cell, row) for row in _plain_rows(table))])
    return text.getvalue().encode()


def iso(microseconds: int) -> str | None:
    """Write a time in ISO 8601; None for what no calendar has."""
    when = as_datetime(microseconds)
    return None if when is None else when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain_rows(table: ReportTable) -> Iterator[list[Value]]:
    for row in table.rows:
        yield [_plain(value, column.kind) for column, value in zip(table.columns, row, strict=True)]


def _plain(value: Value, kind: ValueKind) -> Value:
    if kind is ValueKind.TIME and isinstance(value, int):
        return iso(value)
    return round(value, 6) if isinstance(value, float) else value


def _cell(value: Value) -> Value:
    return f"'{value}" if isinstance(value, str) and _may_be_formula(value) else value


def _may_be_formula(text: str) -> bool:
    visible = (each for each in text if each in FORMULA_STARTS or unicodedata.category(each)[0] not in "CZ")
    return next(visible, "") in FORMULA_STARTS
