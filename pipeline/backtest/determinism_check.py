"""Searches a policy's code for names whose results differ between runs: clocks, random numbers,
networks, files, the environment.

It resolves imported names and runs nothing, so it finds no use that the code hides.
"""

import ast
from collections.abc import Iterator, Mapping

CALLS: Mapping[str, str] = {
    name: what
    for what, names in {
        "reads the clock": (
            "time.time time.time_ns time.monotonic time.monotonic_ns time.perf_counter time.perf_counter_ns time.localtime time.gmtime "
            "time.ctime time.strftime datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today"
        ),
        "draws at random": "uuid.uuid1 uuid.uuid4 os.urandom os.getrandom random secrets numpy.random",
        "uses the network": (
            "socket ssl urllib.request http.client requests httpx aiohttp urllib3 kafka confluent_kafka kazoo ldap ldap3 redis psycopg "
            "psycopg2 sqlalchemy boto3 grpc smtplib xmlrpc.client"
        ),
        "reads or writes files": "open io.open os.open os.listdir os.scandir os.stat os.path.exists sqlite3",
        "starts processes": "subprocess os.system os.popen os.fork multiprocessing",
        "reads the environment": "os.environ os.getenv socket.gethostname os.getpid platform.node",
    }.items()
    for name in names.split()
}
"""Names, each with what code does that uses it or a name within it."""


def nondeterministic_calls(folders: Mapping[str, Mapping[str, bytes]]) -> tuple[str, ...]:
    """List the uses of such names in the modules of the folders as `FILE:LINE: NAME REASON`, in the
    order of files and lines, each name once a line.
    """
    found = {
        (f"{folder}/{name}", *suspicion)
        for folder, files in folders.items()
        for name, data in files.items()
        if name.endswith(".py")
        for suspicion in _found(data)
    }
    return tuple(f"{file}:{line}: {called} {CALLS[called]}" for file, line, called in sorted(found))


def _found(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield lines of a module, each with a name of the table that it uses."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return
    names = {"open": "open"} | dict(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            first, dot, rest = ast.unparse(node).partition(".")
            called = f"{names.get(first, '')}{dot}{rest}."
            known = max((name for name in CALLS if called.startswith(f"{name}.")), key=len, default=None)
            if known is not None:
                yield node.lineno, known


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what each name of a module stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
