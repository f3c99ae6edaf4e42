"""Measures of the classes, in tiny trees."""

from tests.structure.changes import ambiguous_names, change_classes, policy_requests, single_protocols
from tests.structure.tree import Tree


def test_classes_of_a_change() -> None:
    """A class of the list counts where it still exists, but not where the name means something
    else.
    """
    tree = Tree({"a.py": "class Change: ...\nclass Spec: ...", "pipeline/b.py": "class Question: ...\n"})
    assert change_classes(tree) == (1, {"a.py (Change)": 1})


def test_modules_that_construct_a_policy_request() -> None:
    """The request that most modules construct is found; annotations, and Kafka's messages of the
    same name do not count.
    """
    policy = "from ..policies.interface import AlterTopicRequest as Asked, CreateTopicRequest\n"
    tree = Tree(
        {
            "policies/interface.py": "class AlterTopicRequest: ...\nclass CreateTopicRequest: ...\n",
            "policies/judging.py": policy + "Asked()",
            "a/one.py": policy + "Asked()\nAsked()",
            "a/two.py": policy + "judge(lambda: Asked(name))\nCreateTopicRequest()",
            "a/three.py": policy + "def f(asked: Asked): ...",
            "a/four.py": "from ..protocol import AlterTopicRequest\nAlterTopicRequest()",
            "protocol.py": "class AlterTopicRequest: ...",
        }
    )
    assert policy_requests(tree) == (3, {"policies/judging.py": 1, "a/one.py": 1, "a/two.py": 1})


def test_names_of_several_classes() -> None:
    """A name counts once, however many classes have it."""
    tree = Tree({"a.py": "class X: ...\nclass Y: ...", "b.py": "class X: ...", "c.py": "def f():\n    class X: ..."})
    assert ambiguous_names(tree) == (1, {"a.py (X)": 1, "b.py (X)": 1, "c.py (X)": 1})


def test_protocols_that_one_class_implements() -> None:
    """A class implements a Protocol if it has all of its members, also by inheritance."""
    protocols = """
class One(Protocol):
    a: int
    def b(self): ...
class Both(Protocol[T]):
    a: int
class Neither(Protocol):
    c: int
class Function(Protocol):
    def __call__(self): ...
"""
    classes = """
class Base:
    def __init__(self): self.a = 1
class Whole(Base):
    def b(self): ...
"""
    tree = Tree({"a.py": protocols, "b.py": classes})
    assert single_protocols(tree) == (1, {"a.py (One)": 1})
