"""Handlers of results: read them from a number, or follow them as a stream or WebSocket."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from placewire.serve import Refused, Unavailable
from placewire.serve.auth import Caller, check_role
from placewire.serve.gateway import Gateway
from placewire.serve.http.requests import (
    find_subscription,
    gateway_of,
    read_flag,
    read_number,
    requires,
    stream_key,
)
from placewire.serve.http.streams import (
    SEND_TIMEOUT_S,
    EventStreamResponse,
    Listener,
    ResultStream,
    encode_result,
    head_response,
    make_encoder,
    require_http11,
    wait_for_disconnect,
)

MAX_RESULTS = 1_000


@requires("subscribe")
async def read(request: Request, gateway: Gateway, caller: Caller) -> Response:
    """Results of a subscription after a number."""
    subscription = await find_subscription(request, gateway, caller)
    limit = read_number(request, "limit", 100, 1, MAX_RESULTS)
    after = read_number(request, "after", 0, 0, subscription.numbers)
    entries = await asyncio.to_thread(gateway.ledger.results_of, subscription.account, after, limit)
    text = b",".join([encode_result(entry) for entry in entries])
    following = entries[-1].number if entries else after
    body = b'{"results":[' + text + b'],"next":%d}' % following
    return Response(body, media_type="application/json")


async def open_stream(connection: HTTPConnection, gateway: Gateway, caller: Caller) -> ResultStream:
    """The stream that a client asks for, at its start position; raises Refused."""
    one = "id" in connection.path_params
    if one:
        subscription = await find_subscription(connection, gateway, caller)
        last = subscription.numbers
        listener = Listener(subscription.id, subscription.owner, caller.name)
    else:
        last = await asyncio.to_thread(lambda: gateway.ledger.position)
        listener = Listener(None, caller.scope, caller.name)
    what, given = "last-event-id", connection.headers.get("last-event-id", "")
    if not given:
        what, given = "after", connection.query_params.get("after", "")
    if given == "latest":
        return ResultStream(gateway, listener, last)
    number = given or "0"
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise Refused(422, f"{what}: must be a number or 'latest', got {given[:40]!r}")
    if int(number) > last:
        # A later cursor would silently skip the results up to it.
        raise Refused(422, f"{what}: must be 0..{last} or 'latest', got {given}")
    return ResultStream(gateway, listener, int(number))


@requires("subscribe")
async def events(request: Request, gateway: Gateway, caller: Caller) -> Any:
    """Results as server-sent events."""
    with_objects = read_flag(request, "objects")
    require_http11(request)
    stream = await open_stream(request, gateway, caller)
    if request.method == "HEAD":
        return head_response()
    return EventStreamResponse(stream, make_encoder(gateway, with_objects))


async def socket(websocket: WebSocket) -> None:
    """Results over a WebSocket, one text message each."""
    try:
        gateway = gateway_of(websocket)
        caller = await gateway.authenticator.identify(websocket.headers, stream_key(websocket))
        check_role(caller, "subscribe")
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
    watcher = asyncio.create_task(wait_for_disconnect(websocket.receive, stream.close))
    try:
        async for entries in stream.batches():
            for entry in entries:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await websocket.send_text(encode_result(entry).decode())
    except (TimeoutError, OSError, RuntimeError, Unavailable):
        pass  # the client or the ledger is gone; the client can reconnect
    finally:
        watcher.cancel()
