"""Rules in TOML files: conditions in CEL, and the built-in rules that need none. docs/policies.md
teaches them.
"""
