"""Measures of size and of clocks, in tiny trees."""

from tests.structure import sizes
from tests.structure.figures import quantile
from tests.structure.tree import Tree

TREE = Tree(
    {
        "__init__.py": "x = 1\n",
        "a/one.py": "def f():\n    x = 1\n    return x\nasync def g(): ...\n",
        "b/two.py": "class X:\n    def h(self):\n        return 1\n",
    }
)


def test_sizes_of_a_tree() -> None:
    """Modules, lines and folders are counted by file; the root is no folder."""
    assert sizes.modules(TREE).value == 3
    assert sizes.lines(TREE) == (8, {"__init__.py": 1, "a/one.py": 4, "b/two.py": 3})
    assert sizes.folders(TREE) == (2, {"a": 1, "b": 1})


def test_lengths_of_functions_and_modules() -> None:
    """The figure is the length that a share does not exceed, and its causes are the longer ones."""
    assert sizes.length_of_functions(TREE, 0.5) == (2, {"a/one.py:1 (f)": 3, "b/two.py:2 (h)": 2})
    assert sizes.length_of_functions(TREE, 1) == (3, {"a/one.py:1 (f)": 3})
    assert sizes.length_of_modules(TREE, 1) == (4, {"a/one.py": 4})
    assert [quantile(range(1, 11), share) for share in (0.5, 0.9, 1)] == [6, 10, 10]
    assert quantile([], 0.5) == 0


def test_reads_of_clocks() -> None:
    """A call counts, and so does a function that is handed on, each by the clock that it reads and
    by whose time that is; the clock's own module does not count.
    """
    tree = Tree(
        {
            "clock.py": "time.time()",
            "a/one.py": "trio.current_time() + time.time()\nkeys(clock=time.monotonic)",
            "a/two.py": "from time import monotonic as now\nfrom trio import sleep\nnow()\nsleep(1)",
            "a/three.py": "datetime.now(UTC)\ndatetime.datetime.now()\nself.now()\ntime.perf_counter()",
            "a/four.py": "from ..clock import now, now_ms\nnow()\nuse(now_ms)",
            "cli/five.py": "datetime.now(UTC)\ntime.perf_counter()",
        }
    )
    assert sizes.clock_reads(tree) == (5, {"a/one.py": 2, "a/two.py": 1, "a/three.py": 2})
    assert sizes.advanced_clock_reads(tree) == (3, {"a/one.py": 1, "a/four.py": 2})
    assert sizes.stopwatch_reads(tree) == (1, {"a/three.py": 1})
    assert sizes.peoples_clock_reads(tree) == (2, {"cli/five.py": 2})
