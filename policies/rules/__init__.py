"""Rules in TOML files: conditions in CEL, and the built-in rules that need none. docs/policies.md teaches them."""

from .reading import read
from .ruleset import Mistake, RuleFileError, RuleSet, Source, load

__all__ = ["Mistake", "RuleFileError", "RuleSet", "Source", "load", "read"]
