"""Measures of the import graph, in tiny trees."""

from tests.structure.imports import (
    circles,
    circles_of_files,
    circles_of_folders,
    import_graph,
    lines_of_node_reached,
    loading_graph,
)
from tests.structure.tree import Tree


def test_what_a_role_reaches_of_the_node() -> None:
    """The lines of all modules of controller/ that imports lead to, also through other folders."""
    tree = Tree(
        {
            "gateway/app.py": "from ..client import calls",
            "client/calls.py": "def f():\n    from ..controller.errors import Refusal",
            "controller/errors.py": "from .deep import x\n\n",
            "controller/deep.py": "x = 1\n",
            "controller/other.py": "from .deep import x\n" * 10,
        }
    )
    figure = lines_of_node_reached(tree, import_graph(tree), "gateway")
    assert figure == (3, {"controller/errors.py": 2, "controller/deep.py": 1})


def test_a_package_that_lists_its_modules_loads_them() -> None:
    """Modules that a package imports by their names in its folder are loaded, though no import
    names them.
    """
    tree = Tree(
        {
            "gateway/app.py": "from ..controller.handlers import SPECS",
            "controller/handlers/__init__.py": "for module in iter_modules(__path__): load(module)",
            "controller/handlers/one.py": "from ..writer import x\n",
            "controller/handlers/deep/two.py": "",
            "controller/writer.py": "x = 1\ny = 2\n",
        }
    )
    assert lines_of_node_reached(tree, import_graph(tree), "gateway").value == 1
    assert lines_of_node_reached(tree, loading_graph(tree), "gateway").value == 4


def test_two_folders_that_import_each_other_are_a_circle() -> None:
    """Each pair counts once, and the files of the thinner direction are the cause."""
    tree = Tree(
        {
            "a/one.py": "from ..b import one\nfrom ..b import two",
            "b/one.py": "",
            "b/two.py": "from ..a import one\nfrom ..c import one",
            "c/one.py": "from ..b import one",
            "d/one.py": "from ..a import one",
        }
    )
    figure = circles_of_folders(tree, import_graph(tree))
    assert figure.value == 2
    assert figure.causes["b/two.py"] == 1 + ("c/one.py" not in figure.causes)


def test_a_longer_circle_of_folders_counts_once() -> None:
    """Three folders in a ring are one circle, although no two import each other."""
    tree = Tree(
        {"a/one.py": "from ..b import one", "b/one.py": "from ..c import one", "c/one.py": "from ..a import one"}
    )
    assert circles_of_folders(tree, import_graph(tree)) == (1, {"a/one.py": 1, "b/one.py": 1, "c/one.py": 1})


def test_no_circle() -> None:
    """Folders that import in one direction are no circle, and neither are files."""
    tree = Tree({"a/one.py": "from ..b import one\nfrom . import two", "a/two.py": "", "b/one.py": "from . import two"})
    assert circles_of_folders(tree, import_graph(tree)) == (0, {})
    assert circles_of_files(import_graph(tree)) == (0, {})


def test_circles_of_files() -> None:
    """A group of files that reach each other is one circle, however many ways lead through it."""
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a", "b"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": set[str]()}
    assert circles(graph) == [{"a", "b", "c"}, {"d", "e"}]
    assert circles_of_files(graph) == (2, {"a": 3, "b": 3, "c": 3, "d": 2, "e": 2})
