"""Objects: published one by one or many at once, and read back by their seq."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from placewire.serve.auth import Caller
from placewire.serve.errors import Refused
from placewire.serve.gateway import Gateway
from placewire.serve.group_commit import NO_REPEAT, Repeat, digest_of
from placewire.serve.http.requests import (
    JSON,
    MOST_BULK_BYTES,
    MOST_BYTES,
    media_type,
    needs,
    read_body,
    reply,
)
from placewire.serve.intake import decode_object, read_bulk, read_object

INLINE_BYTES = 1 << 16  # a larger body is read in a thread
MOST_KEY = 200


def repeat_of(request: Request, body: bytes) -> Repeat:
    """What tells a repeated request from a new one; raises Refused."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return NO_REPEAT
    key = keys[0]
    if len(keys) > 1 or not 1 <= len(key) <= MOST_KEY or not key.isprintable():
        got = f"{len(keys)} of them" if len(keys) > 1 else f"{len(key)} characters"
        raise Refused(
            422, f"idempotency-key: must be one of 1 to {MOST_KEY} printable characters, got {got}"
        )
    lines = body.count(b"\n") if media_type(request) != JSON else 0
    return Repeat(key, digest_of(request.method, request.scope["path"], body), lines)


@needs("publish")
async def publish(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """One object, or with lines many."""
    if media_type(request) == JSON:
        body = await read_body(request, MOST_BYTES)
        line = read_object(gateway.admission, decode_object(body))
        written = await gateway.accept(caller, [line], repeat=repeat_of(request, body))
        gateway.live.show(written["seq"], [line])
        return reply({"seq": written["seq"]}, 202)
    body = await read_body(request, MOST_BULK_BYTES)
    if len(body) > INLINE_BYTES:
        bulk = await asyncio.to_thread(read_bulk, gateway.admission, body, "object")
    else:
        bulk = read_bulk(gateway.admission, body, "object")
    bulk = gateway.sift(caller, bulk)
    told = {"accepted": len(bulk.lines), "rejected": bulk.rejected, "errors": bulk.errors}
    if not bulk.lines:
        if not bulk.rejected:
            raise Refused(422, "body: must have lines, got none")
        return reply({"error": "no line was accepted", **told}, 422)
    written = await gateway.accept(caller, bulk.lines, repeat=repeat_of(request, body))
    gateway.live.show(written["seq"], bulk.lines)
    return reply({"first_seq": written["seq"], **told}, 202)


@needs("subscribe")
async def read_back(request: Request, gateway: Gateway, _: Caller) -> Response:
    """The object of an event."""
    seq = request.path_params["seq"]
    found = await asyncio.to_thread(gateway.object_at, seq) if seq < 1 << 62 else None
    if found is None:
        raise Refused(404, f"event {seq}: is no object, or not kept any more")
    return reply({"seq": seq, "object": found})
