"""A tree knows its modules and what each imports."""

import subprocess
from pathlib import Path

from tests.structure.tree import Tree, program_folders

PROJECT = '[tool.setuptools]\npackages = ["minicontroller", "minicontroller.a", "minicontroller.a.b"]\n'


def imported(source: str) -> list[str]:
    """The modules that `a/b/one.py` imports if it has this source."""
    others = ("__init__.py", "a/__init__.py", "a/b/__init__.py", "a/two.py", "a/b/three.py", "c/four.py")
    tree = Tree({**dict.fromkeys(others, ""), "a/b/one.py": source})
    return [path for path, _ in tree.imports(tree.modules["a/b/one.py"])]


def test_an_import_names_a_module_of_the_program() -> None:
    """Relative and absolute imports are found, and a name that is a module is that module."""
    assert imported("from .three import x") == ["a/b/three.py"]
    assert imported("from . import three, x") == ["a/b/three.py", "a/b/__init__.py"]
    assert imported("from ..two import x as y") == ["a/two.py"]
    assert imported("from ...c import four") == ["c/four.py"]
    assert imported("from ... import x") == ["__init__.py"]
    assert imported("from minicontroller.c.four import x") == ["c/four.py"]
    assert imported("import minicontroller.a.two") == ["a/two.py"]


def test_an_import_of_anything_else_is_none() -> None:
    """The standard library and foreign packages are not in the tree."""
    assert imported("import os, c.four\nfrom a.two import x\nfrom ...d import y") == []


def test_an_import_counts_wherever_it_stands() -> None:
    """An import within a function or for the type checker counts as one at the top does."""
    source = "if TYPE_CHECKING:\n    from ..two import x\ndef f():\n    from .three import y\n"
    assert sorted(imported(source)) == ["a/b/three.py", "a/two.py"]


def test_a_definition_is_found_through_imports() -> None:
    """A name leads to its class through modules that pass it on, under another name, too."""
    tree = Tree(
        {
            "a/one.py": "from .two import Y",
            "a/two.py": "from .three import X as Y",
            "a/three.py": "class X: ...\ndef f(): ...",
        }
    )
    found = tree.class_named(tree.modules["a/one.py"], "Y")
    assert found is not None
    assert (found[0].path, found[1].name) == ("a/three.py", "X")
    assert tree.class_named(tree.modules["a/three.py"], "f") is None
    assert tree.definition(tree.modules["a/one.py"], "Z") is None


def test_the_packages_of_the_project_are_read(tmp_path: Path) -> None:
    """A tree has the modules of the folders that are installed, and of the root, as they are now
    and as they were at a commit.
    """
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    for name in ("__init__.py", "__main__.py", "a/one.py", "a/b/two.py", "tests/three.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    names = ["__init__.py", "__main__.py", "a/b/two.py", "a/one.py"]
    assert program_folders(PROJECT) == ["a"]
    assert sorted(Tree.read(tmp_path).modules) == names
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "--no-verify", "-m", "one"]):
        subprocess.run([*git, *command], check=True)
    (tmp_path / "a" / "one.py").write_text("x = 1\ny = 2\n")
    before = Tree.at_commit(tmp_path, "HEAD")
    assert sorted(before.modules) == names
    assert (before.modules["a/one.py"].lines, Tree.read(tmp_path).modules["a/one.py"].lines) == (1, 2)
