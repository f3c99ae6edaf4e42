"""Measures of docstrings, in tiny trees."""

import pytest

from tests.structure.tree import Tree
from tests.structure.words import docstrings, repeating


def test_docstrings_of_everything_count() -> None:
    """Modules, classes, functions and attributes have docstrings; other texts are none."""
    source = '''"""A module."""
SIZE = 1
"""A constant."""
print("no docstring")
"neither"
class Thing:
    """A class."""
    field: int
    """A field."""
    def __init__(self):
        """A function."""
        self.other = 1
        """An attribute."""
        self.calls()
        "a text"
'''
    assert docstrings(Tree({"a.py": source, "b.py": "x = 1"})) == (6, {"a.py": 6})


@pytest.mark.parametrize(
    ("signature", "docstring", "repeats"),
    [
        ("def read_table(path)", "Read the table at a path.", True),
        ("def tables(self)", "Return the reading tables of the Store.", True),
        ("def encode(value, *rest, **options)", "Encode values, rests and options as bytes.", True),
        ("def encode(value)", "Encode a value as bytes in network order.", False),
        ("def f(x)", "Raises Refusal unless the cluster has room for it.", False),
    ],
)
def test_a_docstring_repeats_its_signature(signature: str, docstring: str, repeats: bool) -> None:
    """With at most two words beyond the names of the function, its class and its parameters, a
    docstring says nothing new.
    """
    source = f'class Store:\n    {signature}:\n        """{docstring}"""\n'
    assert repeating(Tree({"a.py": source})).value == repeats


def test_a_function_without_a_docstring_repeats_nothing() -> None:
    """Only docstrings can repeat."""
    assert repeating(Tree({"a.py": "def f(): ..."})).value == 0


def test_the_help_of_a_command_repeats_nothing() -> None:
    """A person who asks for help reads the docstring of a command without its signature."""
    source = '@topics.command("list")\ndef list_topics(pattern):\n    """List topics."""\n'
    assert repeating(Tree({"a.py": source})).value == 0
