"""Reduces an error of Spark to one sentence: the remedy if it is a known error, and otherwise the
root cause in Spark's words.
"""

from collections.abc import Iterator
from contextlib import contextmanager

CAUSE, TRACE = "Caused by: ", "Traceback (most recent call last)"
SENTENCE = 500
"""How many characters are printed; some of what Spark says holds a whole plan."""
LOST = "its Java process ended; if it was out of memory, give it more by --conf spark.driver.memory=8g."
MEMORY = "Spark's Java has too little memory: give it more by --conf spark.driver.memory=8g --conf spark.driver.maxResultSize=4g."
ENDED = "Spark's master ended the application, or is gone: read the master's log, and run the command again."
REMEDIES = {
    ("No module named '", "'"): (
        "Spark's workers have no Python module {}: install there what minicontroller[pipeline] needs, or send an environment by --conf spark.archives "
        "(docs/pipeline-on-a-cluster.md)."
    ),
    ('Cannot run program "', '"'): "Spark's workers have no {}: set PYSPARK_PYTHON to a Python that every worker has.",
    ("PYTHON_VERSION_MISMATCH", "\n"): (
        "Spark's workers have another version of Python than this one: set PYSPARK_PYTHON to one that every worker has."
    ),
    ("Python worker exited unexpectedly", "\n"): (
        "A worker's Python process ended: a policy ended it, or the machine is out of memory; then run fewer tasks at the same time, by --master local[N] or "
        "--conf spark.executor.cores=N, or give a cluster's workers more by --conf spark.executor.memoryOverhead=4g."
    ),
    ("caused by one of the running tasks) Reason: ", "\n"): (
        "Spark's workers ended repeatedly ({}): their own logs have the reason. If they were out of memory, give them more by "
        "--conf spark.executor.memory=4g and --conf spark.executor.memoryOverhead=4g."
    ),
    ("No space left on device", "\n"): (
        "A disk is full: free some space, or put Spark's own files on another disk by --conf spark.local.dir=FOLDER."
    ),
    ("java.lang.OutOfMemoryError", "\n"): MEMORY,
    ("spark.driver.maxResultSize", "\n"): MEMORY,
    ("Address already in use: Service '", "'"): (
        "A port of Spark's is taken ({}): let Spark choose one, or name another one by --conf spark.driver.port=PORT."
    ),
    ("SparkContext was shut down", "\n"): ENDED,
    ("stopped SparkContext", "\n"): ENDED,
}
"""The sentences for errors that contain the first text; {} is what follows it, up to the second
text.
"""


class PipelineError(Exception):
    """A command cannot do its work; the message is a sentence that says why, and what to do."""


class SparkLostError(Exception):
    """Spark's Java, or the server of Spark Connect, has gone."""


@contextmanager
def lost() -> Iterator[None]:
    """Raise SparkLostError for errors of the connection to Java, which look like those of files."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (OSError, EOFError)) or type(error).__name__ in {"Py4JError", "Py4JNetworkError"}:
            raise SparkLostError(LOST) from error
        raise


def is_sparks(error: BaseException) -> bool:
    return isinstance(error, SparkLostError) or type(error).__module__.startswith(("pyspark", "py4j"))


def first_line(error: BaseException) -> str:
    """Return what went wrong in the first place, out of all that Spark says, and what to do."""
    text = str(error)
    for (begin, end), sentence in REMEDIES.items():
        _, found, rest = text.partition(begin)
        if found:
            return sentence.format(rest.partition(end)[0])
    lines = [line.strip() for line in text.splitlines() if line.strip() and TRACE not in line]
    named = [line for line in lines if "Exception: " in line or "Error: " in line]
    causes = [line for line in named if line.startswith(CAUSE)]
    chosen = (causes[-1:] or named or lines or [type(error).__name__])[0]
    return chosen.removeprefix(CAUSE).rpartition("Exception: ")[2][:SENTENCE]
