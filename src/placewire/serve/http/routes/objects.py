"""Handlers of objects: publish one or many, and read one back by seq."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from placewire.serve.auth import Caller
from placewire.serve.errors import Refused
from placewire.serve.gateway import Gateway
from placewire.serve.http.requests import (
    JSON,
    MAX_BULK_BYTES,
    MAX_EVENT_BYTES,
    accept_bulk,
    media_type,
    read_body,
    read_idempotency_key,
    reply,
    requires,
)
from placewire.serve.intake import decode_object, read_bulk, read_object

INLINE_BYTES = 1 << 16  # larger bodies are read in a thread


@requires("publish")
async def publish(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Publish one object, or many from JSON lines."""
    if media_type(request) == JSON:
        body = await read_body(request, MAX_EVENT_BYTES)
        line = read_object(gateway.admission, decode_object(body))
        written = await gateway.accept(
            caller, [line], idempotency_key=read_idempotency_key(request, body)
        )
        gateway.live_feed.add_objects(written["seq"], [line])
        return reply({"seq": written["seq"]}, 202)
    body = await read_body(request, MAX_BULK_BYTES)
    if len(body) > INLINE_BYTES:
        bulk = await asyncio.to_thread(read_bulk, gateway.admission, body, "object")
    else:
        bulk = read_bulk(gateway.admission, body, "object")
    return await accept_bulk(request, gateway, caller, body, bulk, 202)


@requires("subscribe")
async def read_back(request: Request, gateway: Gateway, _: Caller) -> Response:
    """The object at an event."""
    seq = request.path_params["seq"]
    found = await asyncio.to_thread(gateway.object_at, seq) if seq < 1 << 62 else None
    if found is None:
        raise Refused(404, f"event {seq}: is no object, or not kept any more")
    return reply({"seq": seq, "object": found})
