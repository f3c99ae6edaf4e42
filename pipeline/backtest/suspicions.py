"""A look at a policy's code for what makes an answer hang on something else than the question:
clocks, chance, networks, files, the environment.

Rule: a look at names, as they were imported, and nothing is run. It finds what is written plainly;
a policy can hide such things, and who hides them is not found.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

CLOCK, CHANCE, NETWORK, FILES, PROCESSES, ENVIRONMENT = (
    "reads the clock", "draws at random", "uses the network", "reads or writes files", "starts processes", "reads the environment",
)  # fmt: skip

CALLS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns", "time.localtime",
            "time.gmtime", "time.ctime", "time.strftime", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today",
            "datetime.date.today",
        ),
        CLOCK,
    ),
    **dict.fromkeys(("uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom", "random", "secrets", "numpy.random"), CHANCE),
    **dict.fromkeys(
        ("socket", "ssl", "urllib.request", "http.client", "requests", "httpx", "aiohttp", "urllib3", "kafka", "confluent_kafka", "kazoo",
         "ldap", "ldap3", "redis", "psycopg", "psycopg2", "sqlalchemy", "boto3", "grpc", "smtplib", "xmlrpc.client"),
        NETWORK,
    ),
    **dict.fromkeys(("open", "io.open", "os.open", "os.listdir", "os.scandir", "os.stat", "os.path.exists", "sqlite3"), FILES),
    **dict.fromkeys(("subprocess", "os.system", "os.popen", "os.fork", "multiprocessing"), PROCESSES),
    **dict.fromkeys(("os.environ", "os.getenv", "socket.gethostname", "os.getpid", "platform.node"), ENVIRONMENT),
}  # fmt: skip
"""What is named, and all within it."""


class Suspicion(msgspec.Struct, frozen=True, order=True):
    file: str
    line: int
    name: str
    """As it is called in full, `time.time`."""
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name} {self.what}"


class _Folder(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def files(self) -> Mapping[str, bytes]: ...


def suspicions(folders: Iterable[_Folder]) -> tuple[Suspicion, ...]:
    """List what in the modules of the folders looks unsteady, in the order of files and lines, each
    name once a line.
    """
    return tuple(
        sorted(
            {
                Suspicion(f"{folder.path}/{name}", line, called, what)
                for folder in folders
                for name, data in folder.files.items()
                if name.endswith(".py")
                for line, called, what in _found(data)
            }
        )
    )


def _found(data: bytes) -> Iterator[tuple[int, str, str]]:
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return
    names = dict(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            known = _known(_full_name(node, names))
            if known is not None:
                yield node.lineno, known, CALLS[known]


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what each name of a module stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _full_name(node: ast.expr, names: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    first = names.get(node.id, node.id if node.id == "open" and not parts else "")
    return ".".join((first, *reversed(parts)))


def _known(called: str) -> str | None:
    """Return the longest beginning of a name that is in the table."""
    parts = called.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in CALLS), None)
