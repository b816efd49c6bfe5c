"""The Starlette application: routes, JSON errors and security headers."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from placewire.model.errors import InvalidEvent
from placewire.serve import Refused, Unavailable
from placewire.serve.gateway import Gateway
from placewire.serve.http import events, results, service
from placewire.serve.http.live_map import PAGE, show_page
from placewire.serve.http.requests import gateway_of, reply

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", POLICY.encode()),
]
KEPT_ESCAPES = {b"%2f": b"%2F", b"%25": b"%25"}  # in a path, so that ids can contain them

log = logging.getLogger("placewire.serve")

ROUTES = [
    Route("/health", service.health),
    Route("/openapi.json", service.openapi),
    Route("/metrics", service.metrics),
    Route("/v1/objects", events.publish, methods=["POST"]),
    Route("/v1/objects/{seq:int}", events.read_back),
    Route("/v1/subscriptions", events.create, methods=["POST"]),
    Route("/v1/subscriptions", events.list_all),
    Route("/v1/subscriptions/{id}", events.put, methods=["PUT"]),
    Route("/v1/subscriptions/{id}", events.end, methods=["DELETE"]),
    Route("/v1/subscriptions/{id}", events.get),
    Route("/v1/subscriptions/{id}/standing", events.standing),
    Route("/v1/subscriptions/{id}/delivery", results.put_webhook, methods=["PUT"]),
    Route("/v1/subscriptions/{id}/delivery", results.end_webhook, methods=["DELETE"]),
    Route("/v1/subscriptions/{id}/delivery", results.get_webhook),
    Route("/v1/subscriptions/{id}/delivery/dead", results.dead_deliveries),
    Route("/v1/subscriptions/{id}/delivery/dead/retry", results.retry_dead, methods=["POST"]),
    Route("/v1/subscriptions/{id}/results", results.read),
    Route("/v1/subscriptions/{id}/events", results.events),
    Route("/v1/events", results.events),
    WebSocketRoute("/v1/subscriptions/{id}/socket", results.socket),
    WebSocketRoute("/v1/socket", results.socket),
    Route("/v1/query", service.query, methods=["POST"]),
    Route("/v1/dead-letters", service.dead_letters),
    Route("/v1/keys", service.add_key, methods=["POST"]),
    Route("/v1/keys", service.keys),
    Route("/v1/keys/{name}", service.end_key, methods=["DELETE"]),
    Route("/v1/live", service.live),
    Route("/v1/status", service.status),
    Route("/v1/plan", service.change_plan, methods=["POST"]),
    Route("/v1/plan", service.plan),
    Route("/v1/explain", service.explain, methods=["POST"]),
    Route("/explain", service.explain, methods=["POST"]),
]


def make_app(open_gateway: Callable[[], Gateway]) -> Starlette:
    """Build the application; it opens the gateway at startup and stops it at shutdown."""

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        app.state.gateway = open_gateway()
        try:
            yield
        finally:
            await app.state.gateway.stop()

    app = Starlette(
        routes=[*ROUTES, Route("/", show_page), Mount("/static", StaticFiles(directory=PAGE))],
        lifespan=life,
        exception_handlers={
            Refused: refuse,
            InvalidEvent: refuse_event,
            Unavailable: refuse_for_now,
            HTTPException: refuse_route,
            Exception: fail,
        },
    )
    app.router.redirect_slashes = False
    app.state.gateway = None
    app.add_middleware(RequestGuard)
    return app


async def refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    answer = reply({"error": error.why, **error.facts}, error.status)
    answer.headers.update(error.headers)
    return answer


async def refuse_event(request: Request, error: Exception) -> Response:
    if request.url.path.startswith(("/v1/objects", "/v1/subscriptions")):
        gateway_of(request).rejections.events += 1
    return reply({"error": str(error)}, 422)


async def refuse_for_now(_: Request, error: Exception) -> Response:
    answer = reply({"error": str(error)}, 503)
    answer.headers["retry-after"] = "1"
    return answer


async def refuse_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = reply(
        {"error": f"{request.method} {request.url.path}: {error.detail}"}, error.status_code
    )
    answer.headers.update(error.headers or {})
    if error.status_code == 405:
        answer.headers["allow"] = ", ".join(methods_of(request.scope["path"]))
    return answer


def methods_of(path: str) -> list[str]:
    """The methods allowed at a path, over all its routes."""
    routes = [route for route in ROUTES if isinstance(route, Route)]
    return sorted({m for r in routes if r.path_regex.match(path) for m in r.methods or ()})


async def fail(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return reply({"error": f"{request.method} {request.url.path}: failed, see the log"}, 500)


class RequestGuard:
    """Keeps escaped slashes in paths, and adds security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        raw = scope.get("raw_path") or scope["path"].encode()
        path = decode_path(raw.partition(b"?")[0])
        scope = {**scope, "path": path.decode("utf-8", "replace")}

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                note_status(scope, message["status"])
                message = {**message, "headers": [*message.get("headers", ()), *SECURITY_HEADERS]}
            await send(message)

        why = fault_of(scope, path) if scope["type"] == "http" else ""
        if why:
            await reply({"error": why}, 400)(scope, receive, send_safely)
            return
        await self.app(scope, receive, send_safely)


def fault_of(scope: Scope, path: bytes) -> str:
    """What is wrong with a request before routing."""
    hosts = sum(name == b"host" for name, _ in scope["headers"])
    if hosts > 1 or (hosts == 0 and scope.get("http_version") == "1.1"):
        return f"host: must be given once, got {hosts or 'none'}"
    try:
        path.decode()
    except UnicodeDecodeError as error:
        return f"path: must be UTF-8, got byte 0x{path[error.start]:02x}"
    return ""


def note_status(scope: Scope, status: int) -> None:
    """Count rejected requests by status."""
    gateway = scope["app"].state.gateway if "app" in scope else None
    if gateway is not None and status >= 400:
        gateway.rejections.requests[status] += 1


def decode_path(raw: bytes) -> bytes:
    """Unescape a path, except slashes and percent signs in names."""
    first, *rest = raw.split(b"%")
    text = first
    for part in rest:
        kept = KEPT_ESCAPES.get(b"%" + part[:2].lower())
        text += kept + part[2:] if kept is not None else unquote_to_bytes(b"%" + part)
    return text
