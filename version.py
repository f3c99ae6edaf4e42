"""The version of the program, which is that of pyproject.toml."""

__version__ = "0.1.0"
