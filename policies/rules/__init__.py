"""Rules in TOML files: conditions in CEL, and the built-in rules that need none. docs/policies.md
teaches them.
"""

from .reading import read, rules_of
from .ruleset import MAX_BYTES, Mistake, RuleFileError, RuleSet, Source, load

__all__ = ["MAX_BYTES", "Mistake", "RuleFileError", "RuleSet", "Source", "load", "read", "rules_of"]
