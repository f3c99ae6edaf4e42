"""An S3 server, a process of its own, and a gate before it that lets requests fail.

The server is that of moto, which keeps what it is given in memory and takes any credentials until
it is told otherwise.
"""

import http.client
import random
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.ports import free_port
from tests.support.waiting import until

ANSWERS = {"busy": (503, "SlowDown"), "broken": (500, "InternalError"), "denied": (403, "AccessDenied")}
FAULTS = ("busy", "broken", "cut", "answer lost", "slow")
SLOW_SECONDS = 0.1
SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
"""Enough to own what one makes, as long as the server does not check it."""
CONDITIONS = {"if-match", "if-none-match"}
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}


@contextmanager
def running_s3(folder: Path) -> Iterator["S3"]:
    """Start a server, and a gate before it."""
    port = free_port()
    with (folder / "s3.log").open("wb") as log:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: process.poll() is not None or _answers(port))
        with _gate(port) as store:
            yield store
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/"):
            return True
    except OSError:
        return False


class S3:
    """A store, asked through its gate.

    The gate is in the process of the tests. Some functions of delta-rs keep Python's lock while
    they wait for an answer, such as those that read a table's history: commands test those.
    """

    def __init__(self, port: int, gate: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{gate}"
        self.asked: Counter[str] = Counter()
        """How many requests came, by their method."""
        self.failed: Counter[str] = Counter()
        self.is_careless = False
        self._fault: Callable[[str], str | None] = _none
        self._lock = threading.Lock()

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "very-secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def put(self, path: str, content: bytes = b"") -> None:
        """Make an object, or a bucket if the path is one name; this way knows no faults."""
        self._ask("PUT", f"/{path}", content)

    def delete(self, path: str) -> None:
        self._ask("DELETE", f"/{path}", b"")

    @contextmanager
    def faults(
        self, share: float, kinds: Sequence[str] = FAULTS, *, seed: int = 1, only: str = "", times: int = 1 << 30
    ) -> Iterator[None]:
        """Let a share of the requests fail within the block: those `only` of a method, and so many
        times.
        """
        chance = random.Random(seed)
        left = iter(range(times))

        def fault(method: str) -> str | None:
            is_hit = only in ("", method) and chance.random() < share and next(left, None) is not None
            return chance.choice(kinds) if is_hit else None

        self._fault = fault
        try:
            yield
        finally:
            self._fault = _none

    @contextmanager
    def careless(self) -> Iterator[None]:
        """Have the store ignore the conditions of requests within the block, and overwrite."""
        self.is_careless = True
        try:
            yield
        finally:
            self.is_careless = False

    @contextmanager
    def credentials_checked(self) -> Iterator[None]:
        """Have the server refuse unknown credentials within the block, and all are unknown."""
        self._check_after("0")
        try:
            yield
        finally:
            self._check_after("inf")

    def _check_after(self, requests: str) -> None:
        self._ask("POST", "/moto-api/reset-auth", requests.encode())

    def _ask(self, method: str, path: str, content: bytes) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, content, {"Content-Type": "application/octet-stream", "Authorization": SIGNED})
        response = connection.getresponse()
        assert response.status in (http.client.OK, http.client.NO_CONTENT), (path, response.status)
        connection.close()

    def next_fault(self, method: str) -> str | None:
        """Note a request, and say how it fails."""
        with self._lock:
            self.asked[method] += 1
            if fault := self._fault(method):
                self.failed[fault] += 1
            return fault


def _none(_method: str) -> str | None:
    return None


@contextmanager
def _gate(port: int) -> Iterator[S3]:
    gate = _Gate(port)
    thread = threading.Thread(target=gate.serve_forever)
    thread.start()
    try:
        yield gate.store
    finally:
        gate.shutdown()
        thread.join()
        gate.server_close()


class _Gate(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = S3(port, self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client may leave before its answer
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Passes requests on, or lets them fail."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _pass_on(self) -> None:
        body = self._body()
        assert isinstance(self.server, _Gate)
        store = self.server.store
        fault = store.next_fault(self.command)
        if fault == "cut":
            self.close_connection = True
            return
        if fault in ANSWERS:
            status, code = ANSWERS[fault]
            self._answer(status, {}, f"<Error><Code>{code}</Code><Message>It is {fault}.</Message></Error>".encode())
            return
        if fault == "slow":
            time.sleep(SLOW_SECONDS)
        status, headers, content = self._asked(store.port, body)
        if fault == "answer lost":
            self.close_connection = True
            return
        self._answer(status, headers, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - http.server's names

    def _asked(self, port: int, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        assert isinstance(self.server, _Gate)
        left_out = HOP_BY_HOP | (CONDITIONS if self.server.store.is_careless else set())
        headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
        connection.request(self.command, self.path, body, {**headers, "Content-Length": str(len(body))})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, dict(response.getheaders()), content

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(chunks)
