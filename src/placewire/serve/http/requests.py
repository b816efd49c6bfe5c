"""Read requests: caller, body, parameters and ids, within limits of size and time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response

from placewire.serve import Refused
from placewire.serve.auth import Caller, check_role
from placewire.serve.gateway import Gateway
from placewire.serve.group_commit import NO_KEY, IdempotencyKey, digest_request
from placewire.serve.intake import BulkLines, decode_object, reject_nul
from placewire.serve.ledger import SubscriptionRow

MAX_EVENT_BYTES = 1 << 17  # largest event: text and data, escaped
MAX_BULK_BYTES = 1 << 24
JSON, NDJSON = "application/json", "application/x-ndjson"


def media_type(request: Request) -> str:
    """The content type of a body; raises Refused unless it is JSON or JSON lines."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "content-encoding: must be none")
    given = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if given not in (JSON, NDJSON):
        raise Refused(415, f"content-type: must be {JSON} or {NDJSON}, got {given[:80]!r}")
    return given


async def read_body(request: Request, most: int) -> bytes:
    """The whole body; raises Refused."""
    timeout_s = request.app.state.gateway.options.connection_limits.body_s
    said = request.headers.get("content-length", "0")
    if said.isdecimal() and int(said) > most:
        raise Refused(413, f"body: must be at most {most} bytes, got {said}")
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_s):
            async for piece in request.stream():
                size += len(piece)
                if size > most:
                    raise Refused(413, f"body: must be at most {most} bytes, got more")
                pieces.append(piece)
    except TimeoutError:
        raise Refused(408, f"body: was not received within {timeout_s:g} s") from None
    except ClientDisconnect:
        raise Refused(400, "body: the connection was closed before its end") from None
    return b"".join(pieces)


async def read_object(request: Request, most: int = MAX_EVENT_BYTES) -> dict[str, Any]:
    """A body that is one JSON object; raises Refused."""
    if media_type(request) != JSON:
        raise Refused(415, f"content-type: must be {JSON}")
    return decode_object(await read_body(request, most))


def read_number(request: Request, name: str, otherwise: int, least: int, most: int) -> int:
    """An integer query parameter; raises Refused."""
    given = request.query_params.get(name)
    if given is None:
        return otherwise
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19):
        raise Refused(422, f"{name}: must be a whole number, got {given[:40]!r}")
    if not least <= int(given) <= most:
        raise Refused(422, f"{name}: must be {least}..{most}, got {given}")
    return int(given)


def read_flag(request: Request, name: str) -> bool:
    """A boolean query parameter, 0 or 1; raises Refused."""
    given = request.query_params.get(name, "0")
    if given not in ("0", "1"):
        raise Refused(422, f"{name}: must be 0 or 1, got {given[:40]!r}")
    return given == "1"


MAX_ID = 256
MAX_KEY = 200  # characters of an idempotency key
STREAMS = ("/v1/events", "/v1/socket", "/v1/live")
SUBSCRIPTION_STREAM = re.compile(r"/v1/subscriptions/[^/]+/(events|socket)$")

Handler = Callable[[Request, Gateway, Caller], Awaitable[Any]]


def gateway_of(connection: HTTPConnection) -> Gateway:
    found: Gateway | None = connection.app.state.gateway
    if found is None:
        raise Refused(503, "the service is starting")
    return found


async def with_details(gateway: Gateway, answer: dict[str, Any]) -> dict[str, Any]:
    """Add position and text of the objects that a reply lists."""
    if "objects" not in answer:
        return answer
    names = [named["object"] for named in answer["objects"]]
    return answer | {"details": await asyncio.to_thread(gateway.queries.details, names)}


def requires(role: str) -> Callable[[Handler], Callable[[Request], Awaitable[Any]]]:
    """Decorate a handler: authenticate the caller and require a role."""

    def wrap(handler: Handler) -> Callable[[Request], Awaitable[Any]]:
        @wraps(handler)
        async def handle(request: Request) -> Any:
            gateway = gateway_of(request)
            caller = await gateway.authenticator.identify(request.headers, stream_key(request))
            check_role(caller, role)
            return await handler(request, gateway, caller)

        return handle

    return wrap


def stream_key(connection: HTTPConnection) -> str | None:
    """The key in the URL of a stream: browsers cannot send headers with streams."""
    if connection.scope["path"] in STREAMS or SUBSCRIPTION_STREAM.match(connection.scope["path"]):
        return connection.query_params.get("key")
    return None


def subscription_id(connection: HTTPConnection) -> str:
    """The id in a path, unescaped; raises Refused or InvalidEvent."""
    name = unquote(connection.path_params["id"])
    if not 1 <= len(name) <= MAX_ID:
        raise Refused(422, f"id must have 1 to 256 characters, got {len(name)}")
    reject_nul(name)
    return name


async def find_subscription(
    connection: HTTPConnection, gateway: Gateway, caller: Caller
) -> SubscriptionRow:
    """The caller's subscription that a path names; raises Refused or InvalidEvent."""
    name = subscription_id(connection)
    return await asyncio.to_thread(gateway.find_subscription, caller, name)


def read_idempotency_key(request: Request, body: bytes) -> IdempotencyKey:
    """The idempotency key of a request; raises Refused."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return NO_KEY
    key = keys[0]
    if len(keys) > 1 or not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        got = f"{len(keys)} of them" if len(keys) > 1 else f"{len(key)} characters"
        raise Refused(
            422, f"idempotency-key: must be one of 1 to {MAX_KEY} printable characters, got {got}"
        )
    lines = body.count(b"\n") if media_type(request) != JSON else 0
    return IdempotencyKey(key, digest_request(request.method, request.scope["path"], body), lines)


async def accept_bulk(
    request: Request, gateway: Gateway, caller: Caller, body: bytes, bulk: BulkLines, status: int
) -> Response:
    """Write the valid lines of a bulk body; the reply counts them and lists the errors."""
    bulk = gateway.screen_bulk(caller, bulk)
    if not bulk.lines:
        if not bulk.rejected:
            raise Refused(422, "body: must have lines, got none")
        return reply({"error": "no line was accepted", **bulk.counts()}, 422)
    key = read_idempotency_key(request, body)
    written = await gateway.accept(caller, bulk.lines, bulk.changes, key)
    if not bulk.changes:
        gateway.live_feed.add_objects(written["seq"], bulk.lines)
    return reply({"first_seq": written["seq"], **bulk.counts()}, status)


def reply(body: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")
