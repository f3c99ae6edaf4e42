"""Results on their way to the disk.

Rule: whether a result can be written is found out before the work, and when it cannot be written
after all it goes to a folder for temporary files instead: no work is lost. A file is there whole or
not at all.
"""

import csv
import io
import os
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..failures import PipelineError
from ..location import reason
from .sheet import Column, Kind, Sheet, Value, as_datetime

FORMULA_STARTS = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a spreadsheet begins a formula at, also in the wide forms of East Asian typing."""


class UnwritableError(PipelineError):
    """Nothing can be written to a place."""


class Files:
    """The page at `out`, and beside it, for `a.html`, `a.json` and the folder `a-csv`."""

    def __init__(self, out: Path) -> None:
        """Check that the page can be written at `out`. Raises UnwritableError."""
        self.out = out.absolute()
        self.written: list[Path] = []
        self.misplaced: list[str] = []
        """A sentence for each file that had to go elsewhere."""
        self._refuge: Path | None = None
        self._check()

    @property
    def json(self) -> Path:
        return self.out.with_suffix(".json")

    @property
    def csv_folder(self) -> Path:
        return self.out.with_name(f"{self.out.stem}-csv")

    def save(self, path: Path, content: bytes) -> Path:
        """Write a file, elsewhere if need be, and return where it is. Raises UnwritableError."""
        try:
            path.parent.mkdir(exist_ok=True)
            _write_whole(path, content)
        except OSError as error:
            path = self._saved_elsewhere(path, content, error)
        self.written.append(path)
        return path

    def _saved_elsewhere(self, path: Path, content: bytes, why: OSError) -> Path:
        try:
            if self._refuge is None:
                self._refuge = Path(tempfile.mkdtemp(prefix="minicontroller-"))
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
            raise UnwritableError(f"The page is HTML: its name has to end in .html, not as {self.out.name}.")
        if not folder.is_dir():
            raise UnwritableError(f"There is no folder {folder} to write {self.out.name} into.")
        for path in (self.out, self.json):
            if path.is_dir():
                raise UnwritableError(f"{path} is a folder: the result needs another name.")
        if self.csv_folder.exists() and not self.csv_folder.is_dir():
            raise UnwritableError(f"{self.csv_folder} is a file, where the folder of the CSV files has to be.")
        for place in (folder, self.csv_folder):
            try:
                if place.exists():
                    tempfile.TemporaryFile(dir=place).close()
            except OSError as error:
                raise UnwritableError(f"Nothing can be written into {place}: {reason(error)}.") from None


def _write_whole(path: Path, content: bytes) -> None:
    part = path.with_name(f".{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def as_json(document: Any) -> bytes:
    """Encode a document as JSON for people, too: indented, and with an end of line."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def plain_sheet(sheet: Sheet) -> dict[str, Any]:
    """Convert a sheet for JSON, with texts as they are."""
    return {
        "name": sheet.name,
        "title": sheet.title,
        "all_rows": sheet.all_rows,
        "totals": dict(sheet.totals),
        "rows": list(_plain_rows(sheet)),
    }


def as_csv(sheet: Sheet) -> bytes:
    """Encode a sheet as CSV (RFC 4180, UTF-8), with an apostrophe before what may be a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([column.name for column in sheet.columns])
    writer.writerows(map(_cell, row.values()) for row in _plain_rows(sheet))
    return text.getvalue().encode()


def _plain_rows(sheet: Sheet) -> Iterator[dict[str, Value]]:
    for row in sheet.rows:
        yield {column.name: _plain(value, column) for column, value in zip(sheet.columns, row, strict=True)}


def _plain(value: Value, column: Column) -> Value:
    if column.kind is Kind.TIME and isinstance(value, int):
        when = as_datetime(value)
        return None if when is None else when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return round(value, 6) if isinstance(value, float) else value


def _cell(value: Value) -> Value:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and _may_be_formula(value) else value


def _may_be_formula(text: str) -> bool:
    told = (each for each in text if each in FORMULA_STARTS or unicodedata.category(each)[0] not in "CZ")
    return next(told, "") in FORMULA_STARTS
