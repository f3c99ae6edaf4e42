"""The program on its way to workers: whole for what they do, and nothing else."""

import subprocess
from pathlib import Path
from zipfile import ZipFile

from minicontroller.pipeline.session import write_package
from tests.support.spark import bare_python

IMPORT_ALL = """
import importlib, pkgutil
import minicontroller.pipeline

assert minicontroller.__file__.startswith(%r)
for module in pkgutil.walk_packages(minicontroller.pipeline.__path__, "minicontroller.pipeline."):
    importlib.import_module(module.name)
"""


def test_a_worker_can_import_everything(tmp_path: Path) -> None:
    """Python that has the libraries and the zip needs no installed program, and finds none of its
    tests, pages or tools there.
    """
    package = write_package(tmp_path)
    assert package is not None
    with ZipFile(package) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"minicontroller"}
    assert {Path(name).suffix for name in names} == {".py"}
    assert {name.split("/")[1] for name in names} == {
        *("__init__.py", "__main__.py", "audit", "clock.py", "pipeline", "policies", "process", "protocol"),
        *("text.py", "version.py"),
    }
    done = subprocess.run(
        [bare_python(tmp_path), "-c", IMPORT_ALL % str(package)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
