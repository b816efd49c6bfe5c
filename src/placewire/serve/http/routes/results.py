"""Results: read from a number on, or followed as they come."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from placewire.serve.auth import Caller, need_role
from placewire.serve.errors import Refused, Unavailable
from placewire.serve.gateway import Gateway
from placewire.serve.http.requests import (
    gateway_of,
    name_of,
    needs,
    read_flag,
    read_number,
    stream_key,
)
from placewire.serve.http.streams import (
    STALLED_S,
    EventStream,
    Listener,
    Stream,
    encode_plain,
    encoder,
    only_head,
    refuse_old,
    watch,
)

MOST_RESULTS = 1_000


@needs("subscribe")
async def read(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Results of one subscription, from a number on."""
    held = await asyncio.to_thread(gateway.find_own, caller, name_of(request))
    limit = read_number(request, "limit", 100, 1, MOST_RESULTS)
    after = read_number(request, "after", 0, 0, held.numbers)
    entries = await asyncio.to_thread(gateway.ledger.results_of, held.account, after, limit)
    text = b",".join([encode_plain(entry) for entry in entries])
    following = entries[-1].number if entries else after
    body = b'{"results":[' + text + b'],"next":%d}' % following
    return Response(body, media_type="application/json")


async def open_stream(connection: HTTPConnection, gateway: Gateway, caller: Caller) -> Stream:
    """What a client wants to follow, from where on; raises Refused."""
    one = "id" in connection.path_params
    if one:
        held = await asyncio.to_thread(gateway.find_own, caller, name_of(connection))
        last = held.numbers
        listener = Listener(held.id, held.owner, caller.name)
    else:
        last = await asyncio.to_thread(lambda: gateway.ledger.position)
        listener = Listener(None, caller.scope, caller.name)
    what, given = "last-event-id", connection.headers.get("last-event-id", "")
    if not given:
        what, given = "after", connection.query_params.get("after", "")
    if given == "latest":
        return Stream(gateway, listener, last)
    number = given or "0"
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise Refused(422, f"{what}: must be a number or 'latest', got {given[:40]!r}")
    if int(number) > last:
        # What is beyond would be silent until so many have come, and leave those out.
        raise Refused(422, f"{what}: must be 0..{last} or 'latest', got {given}")
    return Stream(gateway, listener, int(number))


@needs("subscribe")
async def events(request: Request, gateway: Gateway, caller: Caller) -> Any:
    """Server-sent events."""
    with_objects = read_flag(request, "objects")
    refuse_old(request)
    stream = await open_stream(request, gateway, caller)
    if request.method == "HEAD":
        return only_head()
    return EventStream(stream, encoder(gateway, with_objects))


async def socket(websocket: WebSocket) -> None:
    """The same by WebSocket: a text message a result."""
    try:
        gateway = gateway_of(websocket)
        caller = await gateway.access.identify(websocket.headers, stream_key(websocket))
        need_role(caller, "subscribe")
        stream = await open_stream(websocket, gateway, caller)
    except (Refused, Unavailable) as error:
        if isinstance(error, Unavailable):
            error = Refused(503, str(error))
        body = msgspec.json.encode({"error": error.why})
        await websocket.send_denial_response(
            Response(body, error.status, error.headers, media_type="application/json")
        )
        return
    await websocket.accept()
    watcher = asyncio.create_task(watch(websocket.receive, stream.close))
    try:
        async for entries in stream.batches():
            for entry in entries:
                async with asyncio.timeout(STALLED_S):
                    await websocket.send_text(encode_plain(entry).decode())
    except (TimeoutError, OSError, RuntimeError, Unavailable):
        pass  # the client is gone, or as good as gone; or the ledger, until it comes again
    finally:
        watcher.cancel()
