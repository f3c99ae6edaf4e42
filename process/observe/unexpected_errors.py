"""Logs what Python would otherwise print on stderr: warnings, and exceptions that nothing can
catch.

Rule: every process of the program calls `log_unexpected_errors`, including policy processes.
"""

import logging
import sys
import threading

log = logging.getLogger("minicontroller")


def log_unexpected_errors() -> None:
    """Log warnings, and the exceptions of threads and finalizers, from now on."""
    logging.captureWarnings(capture=True)
    threading.excepthook = _thread_failed
    sys.unraisablehook = _unraisable


def _thread_failed(error: threading.ExceptHookArgs) -> None:
    if error.exc_value is not None:
        log.error("a thread ended with an exception", exc_info=error.exc_value)


def _unraisable(error: "sys.UnraisableHookArgs") -> None:
    if error.exc_value is not None:
        log.error("an exception was raised where it cannot be caught", exc_info=error.exc_value)
