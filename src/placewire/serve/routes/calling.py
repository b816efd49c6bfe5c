"""What every route needs: the gateway, who calls, and names in an address."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from placewire.serve.access import Caller, need_role
from placewire.serve.errors import Refused
from placewire.serve.gateway import Gateway
from placewire.serve.incoming import refuse_nul

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
