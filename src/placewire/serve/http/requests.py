"""Bodies of requests: read within limits of size and time, decoded strictly."""

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

from placewire.serve.auth import Caller, need_role
from placewire.serve.errors import Refused
from placewire.serve.gateway import Gateway
from placewire.serve.intake import decode_object, refuse_nul

MOST_BYTES = 1 << 17  # of one event: a text and data at their largest, escaped
MOST_BULK_BYTES = 1 << 24
JSON, NDJSON = "application/json", "application/x-ndjson"


def media_type(request: Request) -> str:
    """What the body says it is; raises Refused if it is neither JSON nor lines of it."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "content-encoding: must be none")
    given = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if given not in (JSON, NDJSON):
        raise Refused(415, f"content-type: must be {JSON} or {NDJSON}, got {given[:80]!r}")
    return given


async def read_body(request: Request, most: int) -> bytes:
    """The whole body; raises Refused."""
    patience_s = request.app.state.gateway.options.patience.body_s
    said = request.headers.get("content-length", "0")
    if said.isdecimal() and int(said) > most:
        raise Refused(413, f"body: must be at most {most} bytes, got {said}")
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience_s):
            async for piece in request.stream():
                size += len(piece)
                if size > most:
                    raise Refused(413, f"body: must be at most {most} bytes, got more")
                pieces.append(piece)
    except TimeoutError:
        raise Refused(408, f"body: must come within {patience_s:g} s") from None
    except ClientDisconnect:
        raise Refused(400, "body: the connection was closed before its end") from None
    return b"".join(pieces)


async def read_object(request: Request, most: int = MOST_BYTES) -> dict[str, Any]:
    """A body that is one JSON object; raises Refused."""
    if media_type(request) != JSON:
        raise Refused(415, f"content-type: must be {JSON}")
    return decode_object(await read_body(request, most))


def read_number(request: Request, name: str, otherwise: int, least: int, most: int) -> int:
    """A whole number of the address; raises Refused."""
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
    """A switch of the address; raises Refused."""
    given = request.query_params.get(name, "0")
    if given not in ("0", "1"):
        raise Refused(422, f"{name}: must be 0 or 1, got {given[:40]!r}")
    return given == "1"


MOST_ID = 256
STREAMS = ("/v1/events", "/v1/socket", "/v1/live")
STREAM_OF_ONE = re.compile(r"/v1/subscriptions/[^/]+/(events|socket)$")

Handler = Callable[[Request, Gateway, Caller], Awaitable[Any]]


def gateway_of(connection: HTTPConnection) -> Gateway:
    found: Gateway | None = connection.app.state.gateway
    if found is None:
        raise Refused(503, "the service is starting")
    return found


async def with_details(gateway: Gateway, told: dict[str, Any]) -> dict[str, Any]:
    """A reply that lists objects, with what is known of them."""
    if "objects" not in told:
        return told
    names = [named["object"] for named in told["objects"]]
    return told | {"details": await asyncio.to_thread(gateway.details, names)}


def needs(role: str) -> Callable[[Handler], Callable[[Request], Awaitable[Any]]]:
    """A route for those who have a role."""

    def wrap(handler: Handler) -> Callable[[Request], Awaitable[Any]]:
        @wraps(handler)
        async def handle(request: Request) -> Any:
            gateway = gateway_of(request)
            caller = await gateway.access.identify(request.headers, stream_key(request))
            need_role(caller, role)
            return await handler(request, gateway, caller)

        return handle

    return wrap


def stream_key(connection: HTTPConnection) -> str | None:
    """The key of an address: for streams alone, since browsers cannot send headers with them."""
    if connection.scope["path"] in STREAMS or STREAM_OF_ONE.match(connection.scope["path"]):
        return connection.query_params.get("key")
    return None


def name_of(connection: HTTPConnection) -> str:
    """The id in an address, whatever characters it has; raises Refused or InvalidEvent."""
    name = unquote(connection.path_params["id"])
    if not 1 <= len(name) <= MOST_ID:
        raise Refused(422, f"id must have 1 to 256 characters, got {len(name)}")
    refuse_nul(name)
    return name


def reply(body: Any, status: int = 200) -> Response:
    """JSON."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")
