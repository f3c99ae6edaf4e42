"""What Python itself would print on stderr becomes events of the log: warnings, and exceptions in
threads and where nobody can catch them.

Rule: in every process alike, the policies' included.
"""

import logging
import sys
import threading

log = logging.getLogger("minicontroller")


def log_accidents() -> None:
    """Log, from now on, warnings and the exceptions that nobody catches."""
    logging.captureWarnings(capture=True)
    threading.excepthook = _thread_failed
    sys.unraisablehook = _unraisable


def _thread_failed(accident: threading.ExceptHookArgs) -> None:
    if accident.exc_value is not None:
        log.error("a thread ended with an exception", exc_info=accident.exc_value)


def _unraisable(accident: "sys.UnraisableHookArgs") -> None:
    if accident.exc_value is not None:
        log.error("an exception was raised where nobody can catch it", exc_info=accident.exc_value)
