"""Measures of the APIs, in tiny trees."""

import pytest

from tests.structure import apis
from tests.structure.tree import Tree

HANDLER = """
from .node import Node
from .spec import View
def handle(node: Node, context: "View | None", request: CreatePartitionsRequest) -> None: ...
API = Spec(key=ApiKey.CREATE_PARTITIONS, handler=handle, changes=Changes("create_partitions", named))
"""
READ = """
from ..protocol.messages.metadata import MetadataRequest
def handle(node: object, request: MetadataRequest): ...
API: Spec = Spec(key=ApiKey.METADATA, handler=handle)
"""
FILES = {
    "protocol/api_keys.py": "class ApiKey: ...",
    "protocol/messages/__init__.py": "",
    "protocol/messages/create_partitions.py": "class CreatePartitionsRequest: ...",
    "protocol/messages/metadata.py": "class MetadataRequest:\n    a: int\n    b: int\n    c: int\n",
    "handlers/create_partitions.py": HANDLER,
    "handlers/metadata.py": READ,
    "handlers/node.py": "",
    "handlers/spec.py": "",
}


def test_an_api_is_found_by_its_declaration() -> None:
    """A module that ends in `API = Spec(...)` is an API, in whichever folder it lies."""
    tree = Tree(
        {
            "admin/one.py": "API = Spec(key=1, handler=handle, changes=Changes('alter_one', f))",
            "deep/in/two.py": "API: Spec = spec.Spec(key=2)",
            "other.py": "API = Other()\nSPEC = Spec()\nAPI = 3",
            "admin/four.py": "SPEC = Spec(key=4, changes=Changes('alter_four', f))",
            "node/four.py": "API = served(SPEC, handle)",
        }
    )
    assert [(api.name, api.operation) for api in apis.apis(tree)] == [
        ("one", "alter_one"),
        ("two", None),
        ("four", "alter_four"),
    ]


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("class Node:\n    a: int\n    b: str = ''\n    def f(self): ...", 2),
        (
            "class Node:\n    def __init__(self):\n        self.a = self._b = 1\n        if x:\n            self.c = 2",
            2,
        ),
        ("class Node:\n    a: int\n    def __post_init__(self):\n        self.a = 1\n        self.b = 2", 2),
        ("class Base:\n    a: int\nclass Node(Base):\n    b: int", 2),
        ("class Node(Protocol):\n    a: int\n    @property\n    def b(self): ...\n    def c(self): ...", 2),
        ("class Node:\n    @property\n    def b(self): ...", 0),
    ],
    ids=["annotated", "constructor", "post-init", "inherited", "protocol", "computed"],
)
def test_fields_that_a_handler_is_given(source: str, fields: int) -> None:
    """Annotated names, what a constructor assigns for others, and what is inherited are fields;
    what a class computes is none. Messages do not count.
    """
    tree = Tree(FILES | {"handlers/node.py": source, "handlers/spec.py": "class View:\n    a: int\n"})
    figure = apis.fields_given(tree)
    assert figure.causes == {"handlers/node.py (Node)": fields, "handlers/spec.py (View)": 1}
    assert figure.value == max(fields, 1)


def test_a_group_of_parts_counts_as_its_parts() -> None:
    """A field whose class only holds objects with methods counts as many as these; a class of
    values, one with methods, and one that holds itself count as one.
    """
    source = """
class Part:
    def act(self): ...
class Values:
    a: int
    b: int
class Chain:
    last: "Chain | None"
class Parts:
    def __init__(self):
        self.a = Part()
        self.b: Part | None = None
        self.c = Values()
class Node:
    parts: Parts
    more: Parts | None
    part: Part
    values: Values
    chain: Chain
"""
    tree = Tree(FILES | {"handlers/node.py": source, "handlers/spec.py": "class View:\n    a: int\n"})
    assert apis.fields_given(tree).causes["handlers/node.py (Node)"] == 9


def test_a_receiver_is_a_handler_too() -> None:
    """The function that a declaration names is found in the module that it comes from."""
    tree = Tree(
        {
            "a/one.py": "from .shared import carry_out, receive\nAPI = Spec(handler=carry_out, receiver=receive)",
            "a/shared.py": "class A:\n    a: int\nclass B:\n    a: int\n    b: int\n"
            "def carry_out(a: A): ...\ndef receive(b: B): ...",
        }
    )
    assert apis.fields_given(tree) == (2, {"a/shared.py (A)": 1, "a/shared.py (B)": 2})


def test_lines_of_handlers_and_messages() -> None:
    """The folder in which many modules declare an API counts whole, with the messages; of another
    folder, only what declares one.
    """
    files = {f"security/{number}.py": "x = 1\n" for number in range(9)}
    tree = Tree(FILES | files | {"security/sasl.py": "API = Spec(handler=f)\n", "handlers/node.py": "x = 1\n" * 100})
    figure = apis.lines_of_an_api(tree)
    assert {path for path in figure.causes if "messages" not in path} == {
        "handlers/create_partitions.py",
        "handlers/metadata.py",
        "handlers/node.py",
        "handlers/spec.py",
        "security/sasl.py",
    }
    assert sum(figure.causes.values()) == 115
    assert figure.value == round(115 / 3)


def test_handlers_that_slice_time() -> None:
    """A handler that asks whether there is little to do, or how to do much, slices time."""
    tree = Tree(
        {
            "handlers/one.py": "from ..x import AT_ONCE\nAPI = Spec()",
            "handlers/two.py": "async def _in_time_slices(): ...\nAPI = Spec()",
            "handlers/three.py": "'of AT_ONCE and time_slices only the text speaks'\nAPI = Spec()",
            "routing/four.py": "if are_few(names): rows_in_time_slices()",
        }
    )
    assert apis.slicing_handlers(tree) == (2, {"handlers/one.py": 1, "handlers/two.py": 1})


def test_files_that_an_api_touches() -> None:
    """Its three places, and the files that name its key, its messages or its operation."""
    tree = Tree(
        FILES
        | {
            "gateway/apis.py": "NEWEST = {ApiKey.CREATE_PARTITIONS: 3, ApiKey.METADATA: 12}",
            "client/calls.py": "def f():\n    from ..protocol.messages import create_partitions",
            "audit/replay.py": "match event.operation:\n    case 'create_partitions': ...",
            "pipeline/other.py": "METADATA = Other.CREATE_PARTITIONS\n# ApiKey.METADATA\nclient.create_partitions()",
        }
    )
    assert apis.files_of_the_sample(tree).causes.keys() == {
        "protocol/api_keys.py",
        "protocol/messages/create_partitions.py",
        "handlers/create_partitions.py",
        "gateway/apis.py",
        "client/calls.py",
        "audit/replay.py",
    }
    assert apis.files_of_a_changing_api(tree) == (6, {"create_partitions": 6})
    assert apis.files_of_an_api(tree).causes == {"create_partitions": 6, "metadata": 4}
