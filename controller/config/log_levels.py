"""Converts the levels of this process's loggers to and from Kafka's names for BROKER_LOGGER.

Rule: the level of a logger is the effective one, its own or inherited, since Kafka has no name for
"inherited".
"""

import logging
from collections.abc import Mapping

ROOT = "root"
"""Kafka's name of the logger from which all others inherit."""

NAMES = ((logging.CRITICAL, "FATAL"), (logging.ERROR, "ERROR"), (logging.WARNING, "WARN"), (logging.INFO, "INFO"))
"""Python's levels and Kafka's names. A lower level than these is DEBUG or TRACE."""


def levels() -> dict[str, str]:
    """Return the level of every existing logger by name, with the root first."""
    known = logging.root.manager.loggerDict
    loggers = {name: logger for name, logger in sorted(known.items()) if isinstance(logger, logging.Logger)}
    return {ROOT: level_name(logging.root.level)} | {
        name: level_name(logger.getEffectiveLevel()) for name, logger in loggers.items()
    }


def levels_after(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the level that each of these loggers will have. A logger whose level is changed to
    None inherits its level.
    """
    known = logging.root.manager.loggerDict
    own = {name: logger.level for name, logger in known.items() if isinstance(logger, logging.Logger)}
    own[ROOT] = logging.root.level
    own |= {name: logging.NOTSET if level is None else LEVELS[level] for name, level in changes.items()}
    return {name: level_name(_inherited(own, name)) for name in changes}


def _inherited(own: Mapping[str, int], name: str) -> int:
    while name != ROOT:
        if level := own.get(name, logging.NOTSET):
            return level
        name = name.rpartition(".")[0] or ROOT
    return own[ROOT]


def level_name(level: int) -> str:
    for least, name in NAMES:
        if level >= least:
            return name
    return "DEBUG" if level >= logging.DEBUG else "TRACE"


LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG // 2,
}
"""The levels that a client may set, by Kafka's name."""
