"""Streams of results: what is in the ledger from a number on, then what comes, without a gap."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from placewire.serve.errors import Refused, Unavailable
from placewire.serve.ledger import Account, Entry

if TYPE_CHECKING:
    from placewire.serve.gateway import Gateway

AT_ONCE = 500  # results read from the ledger in one go
FIRST = 50  # and in the first, when nobody knows how long they are
READ_BYTES = 1 << 18  # what is read for a client, who may not take it
ALIVE_S = 15.0
STALLED_S = 60.0  # a client that takes nothing for so long is given up
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
ALIVE = b": alive\n\n"
WRITE_NOW = "placewire.write"  # an extension of the server: to write with no task to wait

Encode = Callable[[Entry], bytes]


class Stream:
    """The results that one client follows, from a cursor on."""

    def __init__(self, gateway: Gateway, listener: Listener, after: int) -> None:
        self.gateway = gateway
        self.listener = listener
        self.after = after
        self.closed = False
        listener.close = self.close
        self._at_once = FIRST

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
            account = Account(name, owner or "")
            found = self.gateway.ledger.results_of(account, self.after, self._at_once)
        else:
            found = self.gateway.ledger.results_after(owner, self.after, self._at_once)
        if found:
            size = sum(len(entry.body) for entry in found) // len(found)
            self._at_once = max(1, min(AT_ONCE, READ_BYTES // size))
        return found

    def take_waiting(self) -> list[Entry]:
        """What was offered and is new; it counts as delivered."""
        fresh = [entry for entry in self.listener.waiting if self.place(entry) > self.after]
        self.listener.clear()
        if fresh:
            self.after = self.place(fresh[-1])
            self.gateway.hub.delivered += len(fresh)
        return fresh

    async def batches(
        self, take: Callable[[], bool] | None = None
    ) -> AsyncIterator[Sequence[Entry]]:
        """Results in order, none twice; an empty batch when nothing came for a while.

        With `take` those that are offered while this waits go there, as long as it takes them.
        """
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
                async for fresh in self._offered(take):
                    yield fresh
        finally:
            self.gateway.hub.leave(listener)

    async def _offered(self, take: Callable[[], bool] | None) -> AsyncIterator[Sequence[Entry]]:
        listener = self.listener
        while not self.closed and not listener.missed:
            if fresh := self.take_waiting():
                yield fresh
                continue
            listener.woken.clear()
            listener.take = take
            quiet = False
            try:
                async with asyncio.timeout(ALIVE_S):
                    await listener.woken.wait()
            except TimeoutError:
                quiet = True
            finally:
                listener.take = None
            if quiet:
                yield ()


class EventStream:
    """Server-sent events, as an ASGI response."""

    def __init__(self, stream: Stream, encode: Encode) -> None:
        self.stream = stream
        self.encode = encode
        self._write: Callable[[bytes], bool] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        watcher = asyncio.create_task(watch(receive, self.stream.close))
        self._write = scope.get("extensions", {}).get(WRITE_NOW, {}).get("write")
        direct = self._write is not None and self.encode is encode_plain
        try:
            # Where it begins: a client that is cut off before the first result resumes there.
            begun = b"id: %d\n" % self.stream.after + ALIVE
            await send({"type": "http.response.body", "body": begun, "more_body": True})
            async for entries in self.stream.batches(self._take if direct else None):
                text = await self._text(entries)
                async with asyncio.timeout(STALLED_S):
                    await send({"type": "http.response.body", "body": text, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError, Unavailable):
            pass  # the client is gone, or comes again when the ledger is back
        finally:
            watcher.cancel()

    def _take(self) -> bool:
        """Write what is offered, from the hub's own call; false if the client has to be waited for.

        What could not be written stays where it is, for the task.
        """
        stream = self.stream
        if stream.closed:
            return False
        waiting = [one for one in stream.listener.waiting if stream.place(one) > stream.after]
        assert self._write is not None
        if waiting and not self._write(b"".join([self._message(entry) for entry in waiting])):
            return False
        stream.take_waiting()
        return True

    async def _text(self, entries: Sequence[Entry]) -> bytes:
        if self.encode is encode_plain or not entries:
            return b"".join([self._message(entry) for entry in entries]) or ALIVE
        return b"".join(await asyncio.to_thread(lambda: [self._message(e) for e in entries]))

    def _message(self, entry: Entry) -> bytes:
        place = b"%d" % self.stream.place(entry)
        kind = entry.type.encode()
        return b"id: " + place + b"\nevent: " + kind + b"\ndata: " + self.encode(entry) + b"\n\n"


def only_head() -> Response:
    """What a stream says of itself, to those who ask for that alone."""
    return Response(headers={name.decode(): value.decode() for name, value in HEADERS})


def refuse_old(request: Request) -> None:
    """A stream has no length, and HTTP/1.0 no chunks; raises Refused."""
    if request.scope.get("http_version") == "1.0":
        raise Refused(505, "a stream needs HTTP/1.1")


async def watch(receive: Receive, close: Callable[[], None]) -> None:
    """Wait for the client to go."""
    while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
        pass
    close()


def encode_plain(entry: Entry) -> bytes:
    """A result with its number and its stable id; the result itself as it was written.

    It is put together once, for however many listen.
    """
    if not entry.told:
        msgspec.structs.force_setattr(entry, "told", put_together(entry))
    return entry.told


def put_together(entry: Entry) -> bytes:
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
        objects = msgspec.json.encode(gateway.queries.objects_of(gateway.manifest, entry))
        return encode_plain(entry)[:-1] + b',"objects":' + objects + b"}"

    return encode


MAX_WAITING = 512  # results kept for one listener; more are read from the ledger
MAX_WAITING_BYTES = 1 << 17  # of these


class Listener:
    """One stream's place in the hub."""

    def __init__(self, subscription: str | None, owner: str | None, caller: str = "") -> None:
        self.subscription = subscription  # None: all of the owner's
        self.owner = owner  # None: everybody's
        self.caller = caller  # whose key it came with
        self.close: Callable[[], None] | None = None  # ends the stream
        self.waiting: deque[Entry] = deque()
        self.waiting_bytes = 0
        self.missed = False
        self.woken = asyncio.Event()
        self.take: Callable[[], bool] | None = None  # what waits, at once, if that is possible

    def offer(self, entry: Entry) -> None:
        """Take a result, or note that there are some that are not here."""
        if self.missed:
            return
        self.waiting.append(entry)
        self.waiting_bytes += len(entry.body)
        if len(self.waiting) > MAX_WAITING or self.waiting_bytes > MAX_WAITING_BYTES:
            self.miss()

    def tell(self) -> None:
        """After some were offered: have them taken, now or by the listener's own task."""
        if self.missed or self.take is None or not self.take():
            self.woken.set()

    def miss(self) -> None:
        """Note that what comes next is in the ledger only."""
        self.clear()
        self.missed = True
        self.woken.set()

    def clear(self) -> None:
        self.waiting.clear()
        self.waiting_bytes = 0


class Hub:
    """Who listens to what; used in the gateway's one event loop only."""

    def __init__(self) -> None:
        self._by_subscription: dict[str, set[Listener]] = {}
        self._by_owner: dict[str | None, set[Listener]] = {}
        self.listeners = 0
        self.delivered = 0  # results handed to streams

    def join(self, listener: Listener) -> None:
        self._room(listener).add(listener)
        self.listeners += 1

    def leave(self, listener: Listener) -> None:
        room = self._room(listener)
        room.discard(listener)
        self.listeners -= 1
        if not room:
            if listener.subscription is not None:
                self._by_subscription.pop(listener.subscription, None)
            else:
                self._by_owner.pop(listener.owner, None)

    def _room(self, listener: Listener) -> set[Listener]:
        if listener.subscription is not None:
            return self._by_subscription.setdefault(listener.subscription, set())
        return self._by_owner.setdefault(listener.owner, set())

    def publish(self, entries: Iterable[Entry]) -> None:
        """Offer new results to those who listen to them; each is told once."""
        offered: dict[Listener, None] = {}
        everybodys = self._by_owner.get(None, ())
        for entry in entries:
            for listener in self._by_subscription.get(entry.subscription, ()):
                if listener.owner in (None, entry.owner):
                    listener.offer(entry)
                    offered[listener] = None
            for listener in (*self._by_owner.get(entry.owner, ()), *everybodys):
                listener.offer(entry)
                offered[listener] = None
        for listener in offered:
            listener.tell()

    def _all(self) -> list[Listener]:
        rooms = (*self._by_subscription.values(), *self._by_owner.values())
        return [listener for room in rooms for listener in room]

    def callers(self) -> set[str]:
        """Whose keys there are streams of."""
        return {listener.caller for listener in self._all()}

    def end(self, caller: str) -> None:
        """End the streams of a key that is not one any more."""
        for listener in self._all():
            if listener.caller == caller and listener.close is not None:
                listener.close()

    def miss_all(self) -> None:
        """Send everybody to the ledger: it has results that were not offered."""
        for rooms in (self._by_subscription.values(), self._by_owner.values()):
            for room in rooms:
                for listener in room:
                    listener.miss()
