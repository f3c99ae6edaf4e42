"""The site behind the HTTP port: its paths, and the headers of every answer.

Rule: nothing can be changed here (only GET and HEAD). At a loopback address the Host of a request
has to name one, too, so that a foreign page in the same browser cannot reach the site by a name of
its own. The page is one file, and a browser loads nothing else for it.
"""

import base64
import hashlib
import math
from collections.abc import Awaitable
from functools import partial
from importlib import resources

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...cluster.topic_names import MAX_NAME_LENGTH
from . import views
from .asgi import HttpConnection
from .events import EVENT_STREAM, MAX_LISTENERS, EventFeed, send_events
from .history import MAX_DIGITS, BusyError, HistoryFilter, HistoryReader
from .listener import BoundedStream, HttpListener, is_loopback
from .protection import CHALLENGE, HttpProtection
from .shown import ShownProcess
from .topic_statistics import TopicStatistics
from .views import MAX_ROWS

JSON, TEXT = "application/json", "text/plain"
MAX_SEARCH = MAX_NAME_LENGTH
READS = ("GET", "HEAD")

Headers = list[tuple[bytes, bytes]]


class Site:
    """Serves the page, the metrics and the health of one process."""

    def __init__(self, process: ShownProcess, listener: HttpListener) -> None:
        self._process = process
        self._statistics = TopicStatistics()
        self._feed = EventFeed(process, self._statistics)
        self._history_reader = HistoryReader(process)
        self._metrics = process.metrics(listener, self._statistics)
        self._page = resources.files(__package__).joinpath("page.html").read_bytes()
        process.watch()
        routes = {
            "/": self.page,
            "/metrics": self.metrics,
            "/health/live": self.live,
            "/health/ready": self.ready,
            "/events": self.events,
            "/api/state": self.state,
            "/api/topics": self.topics,
            "/api/topic": self.topic,
            "/api/decisions": self.decisions,
            "/api/history": self.history,
            "/api/deleted": self.deleted,
        }
        self._protection = listener.protection
        self.app = SecurityMiddleware(
            Starlette(routes=[Route(path, handler, methods=["GET"]) for path, handler in routes.items()]),
            host=listener.host,
            protection=listener.protection,
            headers=_headers(self._page.decode()),
        )

    async def serve(self, stream: BoundedStream) -> None:
        """Serve one connection until it ends. Raises Disconnected."""
        await HttpConnection(self.app, stream).serve()

    # ------------------------------------------------------------------ what is there

    async def page(self, _request: Request) -> Response:
        return Response(self._page, media_type="text/html; charset=utf-8")

    async def metrics(self, _request: Request) -> Response:
        text = await self._metrics.text(event_listeners=self._feed.listeners)
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    async def live(self, _request: Request) -> Response:
        """Answer at all, which shows that the process lives."""
        return Response(b'{"live":true}', media_type=JSON)

    async def ready(self, request: Request) -> Response:
        """Answer whether all nodes are ready; which ones are not, and why, to whom it concerns."""
        health = self._process.health()
        said = health if self._protection.knows(request.headers.raw) else {"ready": health.ready}
        return Response(msgspec.json.encode(said), status_code=200 if health.ready else 503, media_type=JSON)

    async def events(self, request: Request) -> ASGIApp:
        if request.method == "HEAD":
            return Response(media_type=EVENT_STREAM)
        if self._feed.listeners >= MAX_LISTENERS:
            return Response(b"Too many listen already.\n", 503, {"retry-after": "10"}, TEXT)
        return partial(send_events, self._feed, request.state.stream)

    async def state(self, _request: Request) -> Response:
        return Response(await self._feed.state(), media_type=JSON)

    async def topics(self, request: Request) -> Response:
        search = request.query_params.get("search", "")[:MAX_SEARCH]
        found = views.topics(
            self._process.image,
            self._statistics,
            search,
            _number(request, "offset"),
            _number(request, "limit", MAX_ROWS),
        )
        return Response(msgspec.json.encode(found), media_type=JSON)

    async def topic(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        image = self._process.image
        configs = await self._process.configs(name) if name in image.topics else None
        found = views.topic(image, name, _number(request, "offset"), configs)
        return Response(msgspec.json.encode(found), media_type=JSON)

    async def decisions(self, _request: Request) -> Response:
        return Response(self._feed.decisions(0), media_type=JSON)

    async def history(self, request: Request) -> Response:
        asked = request.query_params
        wanted = HistoryFilter(asked.get("name", ""), asked.get("refused") == "1", _until(request))
        return await _in_turn(self._history_reader.history(wanted, asked.get("older", "")))

    async def deleted(self, request: Request) -> Response:
        asked = request.query_params
        part = asked.get("search", "")[:MAX_SEARCH]
        return await _in_turn(self._history_reader.deleted(part, asked.get("older", "")))


async def _in_turn(asked: Awaitable[object]) -> Response:
    try:
        return Response(msgspec.json.encode(await asked), media_type=JSON)
    except BusyError:
        busy = b'{"error":"Too many search already. Ask again in a moment."}'
        return Response(busy, status_code=503, media_type=JSON, headers={"retry-after": "5"})


def _number(request: Request, name: str, otherwise: int = 0) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < MAX_DIGITS else otherwise


def _until(request: Request) -> float:
    return _number(request, "until") or math.inf


class SecurityMiddleware:
    """Refuses requests that the page never makes, and adds security headers to every answer."""

    def __init__(self, app: ASGIApp, *, host: str, protection: HttpProtection, headers: Headers) -> None:
        self._app = app
        self._protection = protection
        self._loopback_only = is_loopback(host)
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._refusal(scope) or self._app
        await answer(scope, receive, self._with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        if self._loopback_only and not _names_loopback(scope):
            return Response("This address answers at localhost only.\n", 421, media_type=TEXT)
        if scope["method"] not in READS:
            return Response("Nothing can be changed here.\n", 405, {"allow": "GET, HEAD"}, TEXT)
        if not self._protection.admits(scope["path"], scope["headers"]):
            return Response("This address asks for a token.\n", 401, {"www-authenticate": CHALLENGE}, TEXT)
        return None

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        return sending


def _names_loopback(scope: Scope) -> bool:
    """Whether the request's Host is localhost or a loopback address; the port may be any, because
    of tunnels.
    """
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1:
        return not hosts  # HTTP/1.0 knows no hosts, and no browser speaks it
    text = hosts[0].decode("latin-1")
    host, colon, port = text.rpartition(":")
    host = host if colon and (port.isdigit() or not port) else text
    return is_loopback(host.removeprefix("[").removesuffix("]").lower().removesuffix("."))


def _headers(page: str) -> Headers:
    """Return security headers that let a browser run only the page's own script and style, named by
    their hashes.
    """
    hashes = {
        tag: base64.b64encode(hashlib.sha256(_within(page, tag).encode()).digest()).decode()
        for tag in ("script", "style")
    }
    policy = (
        f"default-src 'none'; script-src 'sha256-{hashes['script']}'; style-src 'sha256-{hashes['style']}'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    return [
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
    ]


def _within(page: str, tag: str) -> str:
    return page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
