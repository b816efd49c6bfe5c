"""Streams of results: what is in the ledger from a number on, then what comes, without a gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from placewire.serve.gateway import Gateway
from placewire.serve.hub import Listener
from placewire.serve.ledger import Entry

AT_ONCE = 500  # results read from the ledger in one go
ALIVE_S = 15.0
STALLED_S = 60.0  # a client that takes nothing for so long is given up
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
ALIVE = b": alive\n\n"

Encode = Callable[[Entry], bytes]


class Stream:
    """The results that one client follows, from a cursor on."""

    def __init__(self, gateway: Gateway, listener: Listener, after: int) -> None:
        self.gateway = gateway
        self.listener = listener
        self.after = after
        self.closed = False

    def place(self, entry: Entry) -> int:
        """What the cursor counts: numbers of one subscription, or positions among all."""
        return entry.position if self.listener.subscription is None else entry.number

    def close(self) -> None:
        """End it, from the same loop."""
        self.closed = True
        self.listener.woken.set()

    def _read(self) -> list[Entry]:
        name, owner = self.listener.subscription, self.listener.owner
        if name is not None:
            return self.gateway.ledger.results_of(name, self.after, AT_ONCE)
        return self.gateway.ledger.results_after(owner, self.after, AT_ONCE)

    async def batches(self) -> AsyncIterator[Sequence[Entry]]:
        """Results in order, none twice; an empty batch when nothing came for a while."""
        listener = self.listener
        self.gateway.hub.join(listener)
        try:
            while not self.closed:
                # The ledger has a result before the hub offers it: what is not read here waits.
                listener.clear()
                listener.missed = False
                while entries := await asyncio.to_thread(self._read):
                    self.after = self.place(entries[-1])
                    self.gateway.hub.delivered += len(entries)
                    yield entries
                    if self.closed:
                        return
                async for fresh in self._offered():
                    yield fresh
        finally:
            self.gateway.hub.leave(listener)

    async def _offered(self) -> AsyncIterator[Sequence[Entry]]:
        listener = self.listener
        while not self.closed and not listener.missed:
            fresh = [entry for entry in listener.waiting if self.place(entry) > self.after]
            listener.clear()
            if fresh:
                self.after = self.place(fresh[-1])
                self.gateway.hub.delivered += len(fresh)
                yield fresh
                continue
            listener.woken.clear()
            try:
                async with asyncio.timeout(ALIVE_S):
                    await listener.woken.wait()
            except TimeoutError:
                yield ()


class EventStream:
    """Server-sent events, as an ASGI response."""

    def __init__(self, stream: Stream, encode: Encode) -> None:
        self.stream = stream
        self.encode = encode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        watcher = asyncio.create_task(watch(receive, self.stream.close))
        try:
            # Where it begins: a client that is cut off before the first result resumes there.
            begun = b"id: %d\n" % self.stream.after + ALIVE
            await send({"type": "http.response.body", "body": begun, "more_body": True})
            async for entries in self.stream.batches():
                text = await self._text(entries)
                async with asyncio.timeout(STALLED_S):
                    await send({"type": "http.response.body", "body": text, "more_body": True})
        except (TimeoutError, OSError):
            pass
        finally:
            watcher.cancel()

    async def _text(self, entries: Sequence[Entry]) -> bytes:
        if self.encode is encode_plain or not entries:
            return b"".join([self._message(entry) for entry in entries]) or ALIVE
        return b"".join(await asyncio.to_thread(lambda: [self._message(e) for e in entries]))

    def _message(self, entry: Entry) -> bytes:
        place = b"%d" % self.stream.place(entry)
        kind = entry.type.encode()
        return b"id: " + place + b"\nevent: " + kind + b"\ndata: " + self.encode(entry) + b"\n\n"


async def watch(receive: Receive, close: Callable[[], None]) -> None:
    """Wait for the client to go."""
    while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
        pass
    close()


def encode_plain(entry: Entry) -> bytes:
    """A result with its number and its stable id; the result itself as it was written."""
    return b"".join(
        (
            b'{"number":%d,"position":%d,"subscription":' % (entry.number, entry.position),
            msgspec.json.encode(entry.subscription),
            b',"id":',
            msgspec.json.encode(entry.id),
            b',"result":',
            entry.body,
            b"}",
        )
    )


def encoder(gateway: Gateway, with_objects: bool) -> Encode:
    """How entries are written: plain, or with the objects that they name."""
    if not with_objects:
        return encode_plain

    def encode(entry: Entry) -> bytes:
        objects = msgspec.json.encode(objects_of(gateway, entry))
        return encode_plain(entry)[:-1] + b',"objects":' + objects + b"}"

    return encode


def objects_of(gateway: Gateway, entry: Entry) -> dict[str, Any]:
    """The object that made the result, where it lies and what it says, if it is named in it."""
    event = gateway.object_at(entry.seq)
    if event is None or entry.type == "report":
        return {}
    facts = {name: event[name] for name in ("lon", "lat", "text")}
    return {event["id"]: {"seq": entry.seq, **facts}}
