"""The tree is as docs/architecture.md draws it, and an API has its one name in each of its four
places.
"""

import ast
import builtins
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from minicontroller.protocol.registry import KAFKA
from tests.support import program
from tests.support.specs import WITH_RECORDS

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "docs" / "architecture.md").read_text()
RULES = (ROOT / "CONTRIBUTING.md").read_text()
DRAWINGS = 2
MAX_LINES = 475
MAX_LINES_OF_THE_LINE = 60  # `answer`, which is the whole way of a request

TESTED_TOGETHER = {"sasl_handshake": "sasl", "sasl_authenticate": "sasl"} | {
    f"{what}_delegation_token": "delegation_tokens" for what in ("create", "renew", "expire", "describe")
}
TESTED_TOGETHER |= dict.fromkeys(("consumer_group_describe", "consumer_group_heartbeat"), "update_features")
TESTED_TOGETHER |= dict.fromkeys(
    ("allocate_producer_ids", "describe_producers", "describe_transactions", "init_producer_id", "list_transactions"),
    "producers",
)
TESTED_TOGETHER |= dict.fromkeys(("delete_groups", "offset_commit", "offset_delete", "offset_fetch"), "groups")
TESTED_TOGETHER |= dict.fromkeys(("join_group", "sync_group", "heartbeat"), "groups")
TESTED_TOGETHER |= dict.fromkeys(
    ("add_partitions_to_txn", "add_offsets_to_txn", "end_txn", "txn_offset_commit"), "transactions"
)
TESTED_TOGETHER |= {"produce": "validation", "fetch": "fetch_sessions", "offset_for_leader_epoch": "log"}
"""APIs whose tests make one story."""


def modules() -> list[Path]:
    return [path for path in program.modules(*program.FOLDERS) if path.name != "__init__.py"]


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {module: ast.parse(module.read_text()) for module in modules()}


def api_names() -> set[str]:
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", KAFKA[key].name).lower() for key in WITH_RECORDS}


def drawn_apis() -> list[str]:
    table = MAP.partition("| for | APIs |")[2].partition("\n\n")[0]
    return re.findall(r"`([a-z_]+)`", table)


def test_each_path_that_a_newcomer_reads_exists() -> None:
    """Every path that the map or the rules for contributors name is in the tree."""
    paths = re.findall(r"`((?:[a-z_.]+/)+[a-z_]*(?:\.[a-z]+)?)`", MAP + RULES)
    assert len(paths) > 40
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_each_module_on_the_drawings_exists() -> None:
    """The drawings name modules by their paths, those of the active controller below its folder."""
    drawings = re.findall(r"```text\n(.*?)```", MAP, re.DOTALL)
    assert len(drawings) == DRAWINGS
    named = set(re.findall(r"[a-z_/]+/[a-z_]+\.py", "".join(drawings)))
    assert len(named) >= 12
    assert {
        name for name in named if not any((ROOT / folder / name).exists() for folder in ("", "controller"))
    } == set()


def declared_words() -> list[tuple[str, str]]:
    """Each name that the page of words says is declared, and the module that declares it."""
    words = MAP.partition("## Words\n")[2].partition("\n## ")[0]
    return re.findall(r"\| `(\w+)` in `([a-z_/]+\.py)` \|", words)


def test_each_word_is_declared_where_the_map_says() -> None:
    """A class or function on the page of words is defined at the top of the module beside it."""
    words = declared_words()
    assert len(words) > 20
    missing = [
        f"{name} in {module}"
        for name, module in words
        if name not in {getattr(node, "name", "") for node in ast.parse((ROOT / module).read_text()).body}
    ]
    assert missing == []


def test_every_package_is_installed_and_drawn() -> None:
    """A folder of modules is a package, and stands in the map."""
    for folder in {module.parent for module in modules()}:
        assert (folder / "__init__.py").exists(), folder
        assert f"`{folder.relative_to(ROOT)}/`" in MAP, folder


def test_the_map_has_the_apis_that_are_handled() -> None:
    """Each API that is answered is on the map, once, by its name."""
    assert sorted(drawn_apis()) == sorted(api_names())


def test_an_api_has_its_messages_its_handler_and_its_vectors() -> None:
    """Three of the four places hold the same names."""
    messages = {path.stem for path in (ROOT / "protocol" / "messages").glob("*.py")} - {"__init__"}
    vectors = {path.name for path in (ROOT / "tests" / "vectors").iterdir() if (path / "request.json").exists()}
    folders = (ROOT / "controller" / "handlers", ROOT / "records" / "handlers")
    modules = [path for folder in folders for path in folder.glob("*.py")]
    handlers = {path.stem for path in modules if "\nAPI = " in path.read_text()}
    assert messages == api_names()
    assert vectors == api_names()
    assert handlers == api_names()


def test_an_api_has_its_tests() -> None:
    """The fourth place: `test_<api>.py`, beside the tests of the other handlers or where its own
    world is built.
    """
    tested = {path.stem.removeprefix("test_") for path in (ROOT / "tests").rglob("test_*.py")}
    assert {TESTED_TOGETHER.get(name, name) for name in api_names()} <= tested


def test_each_module_opens_with_what_it_is_for_and_stays_short() -> None:
    """The first thing in a module is a sentence that says what it is for; no module is longer than
    can be kept in mind.
    """
    assert [module for module, tree in trees().items() if not ast.get_docstring(tree)] == []
    assert [module for module in modules() if len(module.read_text().splitlines()) > MAX_LINES] == []


def test_the_line_is_one_short_function() -> None:
    """The way of a request is read in one function of at most 60 lines."""
    tree = ast.parse((ROOT / "network" / "serving" / "dispatcher.py").read_text())
    [line] = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "answer"]
    assert line.end_lineno is not None
    assert line.end_lineno - line.lineno < MAX_LINES_OF_THE_LINE


def test_only_one_module_imports_kazoo_and_nobody_mocks() -> None:
    """Kazoo is known to one file of the program; the tests have fakes, and no mocks."""
    assert [
        module.name for module in modules() if re.search(r"^\s*(from|import) kazoo", module.read_text(), re.MULTILINE)
    ] == ["kazoo_session.py"]
    mocks = re.compile(r"^\s*(from|import) unittest", re.MULTILINE)
    assert [path for path in (ROOT / "tests").rglob("*.py") if mocks.search(path.read_text())] == []


def exceptions(modules: Iterable[ast.Module]) -> set[str]:
    """The names of all exceptions: those of Python, and those that these modules declare."""
    found = {
        name for name, what in vars(builtins).items() if isinstance(what, type) and issubclass(what, BaseException)
    }
    bases = {
        node.name: {called(base) for base in node.bases}
        for tree in modules
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    while more := {name for name, of_class in bases.items() if of_class & found} - found:
        found |= more
    return found


def called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def made_once(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that run when the module is imported: those outside the bodies of functions."""
    if isinstance(node, ast.Call):
        yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        children: Iterable[ast.AST] = (each for each in (*node.args.defaults, *node.args.kw_defaults) if each)
    else:
        children = ast.iter_child_nodes(node)
    for child in children:
        yield from made_once(child)


def test_no_exception_lives_as_long_as_the_program() -> None:
    """No constant and no default argument is an exception: each raise adds to its traceback, which
    keeps the frames of all times, and what they refer to, in memory.
    """
    names = exceptions(trees().values())
    assert {"Refusal", "StoreUnavailable", "Unreachable"} <= names
    assert [
        f"{module.relative_to(ROOT)}:{call.lineno}"
        for module, tree in trees().items()
        for call in made_once(tree)
        if called(call.func) in names
    ] == []
