"""How Spark is set up for little to do.

Rule: only the time depends on it, never a result. It is decided before Spark is started, since
Java's own options cannot be changed afterwards.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from .ingest.files import UNPACKED, listing

LITTLE_BYTES = 16 << 20
"""Of tables, as Parquet: some hundred thousand events."""

QUICK_START: Mapping[str, str] = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Where Java only carries what Python works on: what its second compiler and its collector do
beside that takes the workers' time.
"""

FOR_LITTLE: Mapping[str, str] = {
    **QUICK_START,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""Dozens of small queries take longer to be planned anew and compiled, by Spark and then by Java,
than to be carried out.
"""


def suited(tables: Path, logs: Iterable[Path] = ()) -> Mapping[str, str]:
    """Size Spark for work that reads the tables of this folder, or takes these folders' logs into
    them: as Parquet they are about as large as compressed. What cannot be read others report.
    """
    try:
        held = sum(file.stat().st_size for file in tables.rglob("*.parquet"))
        held += sum(file.size if file.is_compressed else file.size // UNPACKED for file in listing(logs).values())
    except OSError:
        return {}
    return FOR_LITTLE if held < LITTLE_BYTES else {}
