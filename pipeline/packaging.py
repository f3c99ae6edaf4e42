"""Packages the program for workers that do not have it: one zip with the Python code that workers
import. Installed libraries are not packaged, because they may hold native code; every worker needs
them.
"""

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

NAME = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]
PACKAGES = ("audit", "pipeline", "policies", "protocol")
"""The packages that are sent as a whole."""
MODULES = ("process/__init__.py", "process/settings/__init__.py", "process/settings/properties.py")
"""The modules of other packages that are sent: workers read the properties that name a policy."""


def write_package(folder: Path) -> Path | None:
    """Write the zip into a folder; None if the program runs from one, which Spark was given."""
    if not ROOT.is_dir():
        return None
    target = folder / f"{NAME}.zip"
    packages = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    sources = [*ROOT.glob("*.py"), *(ROOT / module for module in MODULES), *packages]
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for file in sorted(sources):
            archive.write(file, f"{NAME}/{file.relative_to(ROOT).as_posix()}")
    return target
