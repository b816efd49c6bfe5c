"""Push results to clients: broadcast new ones, and resume from any number without a gap.

A stream first reads the ledger from the client's cursor, then receives new results from the
broadcaster. Each listener has a small buffer. One that falls behind goes back to reading the ledger
and does not slow down the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from placewire.serve import Refused, Unavailable
from placewire.serve.ledger import Account, ResultEntry

if TYPE_CHECKING:
    from placewire.serve.gateway import Gateway

READ_RESULTS = 500  # results per read from the ledger
FIRST_READ = 50  # in the first read, when their size is unknown
READ_BYTES = 1 << 18  # target size of a read
KEEPALIVE_S = 15.0
SEND_TIMEOUT_S = 60.0  # a client that accepts nothing for this long is dropped
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
KEEPALIVE = b": alive\n\n"
WRITE_EXTENSION = "placewire.write"  # ASGI extension of our server: write without a task
MAX_WAITING = 512  # results buffered per listener
MAX_WAITING_BYTES = 1 << 17  # bytes buffered per listener

Encode = Callable[[ResultEntry], bytes]


class ResultStream:
    """The results that one client follows, from a cursor."""

    def __init__(self, gateway: Gateway, listener: Listener, after: int) -> None:
        self.gateway = gateway
        self.listener = listener
        self.after = after
        self.closed = False
        listener.close = self.close
        self._read_size = FIRST_READ

    def position_of(self, entry: ResultEntry) -> int:
        """What the cursor counts: result numbers of one subscription, or positions among all."""
        return entry.position if self.listener.subscription is None else entry.number

    def close(self) -> None:
        """End the stream; call it in the event loop."""
        self.closed = True
        self.listener.wakeup.set()

    def _read(self) -> list[ResultEntry]:
        name, owner = self.listener.subscription, self.listener.owner
        if name is not None:
            account = Account(name, owner or "")
            found = self.gateway.ledger.results_of(account, self.after, self._read_size)
        else:
            found = self.gateway.ledger.results_after(owner, self.after, self._read_size)
        if found:
            size = sum(len(entry.body) for entry in found) // len(found)
            self._read_size = max(1, min(READ_RESULTS, READ_BYTES // size))
        return found

    def take_waiting(self) -> list[ResultEntry]:
        """Take new results from the buffer, and count them as delivered."""
        fresh = [entry for entry in self.listener.waiting if self.position_of(entry) > self.after]
        self.listener.clear()
        if fresh:
            self.after = self.position_of(fresh[-1])
            self.gateway.broadcaster.delivered += len(fresh)
        return fresh

    async def batches(
        self, take_now: Callable[[], bool] | None = None
    ) -> AsyncIterator[Sequence[ResultEntry]]:
        """Yield results in order without repeats; an empty batch is a keepalive.

        With `take_now`, results that arrive while this waits are passed there as long as it accepts
        them.
        """
        listener = self.listener
        self.gateway.broadcaster.join(listener)
        try:
            while not self.closed:
                # Results are in the ledger before they are offered: unread ones are in the buffer.
                listener.clear()
                listener.missed = False
                while entries := await asyncio.to_thread(self._read):
                    self.after = self.position_of(entries[-1])
                    self.gateway.broadcaster.delivered += len(entries)
                    yield entries
                    if self.closed:
                        return
                async for fresh in self._offered(take_now):
                    yield fresh
        finally:
            self.gateway.broadcaster.leave(listener)

    async def _offered(
        self, take_now: Callable[[], bool] | None
    ) -> AsyncIterator[Sequence[ResultEntry]]:
        listener = self.listener
        while not self.closed and not listener.missed:
            if fresh := self.take_waiting():
                yield fresh
                continue
            listener.wakeup.clear()
            listener.take_now = take_now
            quiet = False
            try:
                async with asyncio.timeout(KEEPALIVE_S):
                    await listener.wakeup.wait()
            except TimeoutError:
                quiet = True
            finally:
                listener.take_now = None
            if quiet:
                yield ()


class EventStreamResponse:
    """An ASGI response that sends results as server-sent events."""

    def __init__(self, stream: ResultStream, encode: Encode) -> None:
        self.stream = stream
        self.encode = encode
        self._write: Callable[[bytes], bool] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._write = scope.get("extensions", {}).get(WRITE_EXTENSION, {}).get("write")
        await send_events(self._messages(), receive, send, self.stream.close)

    async def _messages(self) -> AsyncIterator[bytes]:
        # The start position: a client that is cut off before the first result resumes there.
        yield b"id: %d\n" % self.stream.after + KEEPALIVE
        direct = self._write is not None and self.encode is encode_result
        async for entries in self.stream.batches(self._write_waiting if direct else None):
            yield await self._text(entries)

    def _write_waiting(self) -> bool:
        """Write buffered results from the broadcaster's call; false if the client is slow.

        What could not be written stays in the buffer for the stream's task.
        """
        stream = self.stream
        if stream.closed:
            return False
        waiting = [one for one in stream.listener.waiting if stream.position_of(one) > stream.after]
        assert self._write is not None
        if waiting and not self._write(b"".join([self._message(entry) for entry in waiting])):
            return False
        stream.take_waiting()
        return True

    async def _text(self, entries: Sequence[ResultEntry]) -> bytes:
        if self.encode is encode_result or not entries:
            return b"".join([self._message(entry) for entry in entries]) or KEEPALIVE
        return b"".join(await asyncio.to_thread(lambda: [self._message(e) for e in entries]))

    def _message(self, entry: ResultEntry) -> bytes:
        position_of = b"%d" % self.stream.position_of(entry)
        kind = entry.type.encode()
        return (
            b"id: " + position_of + b"\nevent: " + kind + b"\ndata: " + self.encode(entry) + b"\n\n"
        )


async def send_events(
    messages: AsyncIterator[bytes], receive: Receive, send: Send, close: Callable[[], None]
) -> None:
    """Send server-sent events until they end; call `close` when the client disconnects."""
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    watcher = asyncio.create_task(wait_for_disconnect(receive, close))
    try:
        async for text in messages:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send({"type": "http.response.body", "body": text, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except (TimeoutError, OSError, Unavailable):
        pass  # the client is gone, or reconnects when the ledger is back
    finally:
        watcher.cancel()


def head_response() -> Response:
    """The response to a HEAD request for a stream."""
    return Response(headers={name.decode(): value.decode() for name, value in HEADERS})


def require_http11(request: Request) -> None:
    """Reject HTTP/1.0, which has no chunked encoding; raises Refused."""
    if request.scope.get("http_version") == "1.0":
        raise Refused(505, "a stream needs HTTP/1.1")


async def wait_for_disconnect(receive: Receive, close: Callable[[], None]) -> None:
    """Call `close` when the client disconnects."""
    while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
        pass
    close()


def encode_result(entry: ResultEntry) -> bytes:
    """A result as JSON with its number and stable id; encoded once for all listeners."""
    if not entry.encoded:
        msgspec.structs.force_setattr(entry, "encoded", encode_entry(entry))
    return entry.encoded


def encode_entry(entry: ResultEntry) -> bytes:
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


def make_encoder(gateway: Gateway, with_objects: bool) -> Encode:
    """The encoder of a stream: plain, or with the objects that results name."""
    if not with_objects:
        return encode_result

    def encode(entry: ResultEntry) -> bytes:
        objects = msgspec.json.encode(gateway.queries.objects_of(entry))
        return encode_result(entry)[:-1] + b',"objects":' + objects + b"}"

    return encode


class Listener:
    """The buffer of one stream in the broadcaster."""

    def __init__(self, subscription: str | None, owner: str | None, caller: str = "") -> None:
        self.subscription = subscription  # None: all subscriptions of the owner
        self.owner = owner  # None: all owners
        self.caller = caller  # name of the key
        self.close: Callable[[], None] | None = None  # ends the stream
        self.waiting: deque[ResultEntry] = deque()
        self.waiting_bytes = 0
        self.missed = False
        self.wakeup = asyncio.Event()
        self.take_now: Callable[[], bool] | None = None  # writes the buffer, if possible

    def offer(self, entry: ResultEntry) -> None:
        """Buffer a result, or mark the listener as behind."""
        if self.missed:
            return
        self.waiting.append(entry)
        self.waiting_bytes += len(entry.body)
        if len(self.waiting) > MAX_WAITING or self.waiting_bytes > MAX_WAITING_BYTES:
            self.mark_missed()

    def flush(self) -> None:
        """Have buffered results taken now, or wake the listener's task."""
        if self.missed or self.take_now is None or not self.take_now():
            self.wakeup.set()

    def mark_missed(self) -> None:
        """Mark the listener as behind: it continues from the ledger."""
        self.clear()
        self.missed = True
        self.wakeup.set()

    def clear(self) -> None:
        self.waiting.clear()
        self.waiting_bytes = 0


class Broadcaster:
    """Distributes new results to listeners. Use it in the gateway's event loop."""

    def __init__(self) -> None:
        self._by_subscription: dict[str, set[Listener]] = {}
        self._by_owner: dict[str | None, set[Listener]] = {}
        self.listeners = 0
        self.delivered = 0  # results sent to streams

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

    def publish(self, entries: Iterable[ResultEntry]) -> None:
        """Offer new results to their listeners, then flush each listener once."""
        offered: dict[Listener, None] = {}
        for_all = self._by_owner.get(None, ())
        for entry in entries:
            for listener in self._by_subscription.get(entry.subscription, ()):
                if listener.owner in (None, entry.owner):
                    listener.offer(entry)
                    offered[listener] = None
            for listener in (*self._by_owner.get(entry.owner, ()), *for_all):
                listener.offer(entry)
                offered[listener] = None
        for listener in offered:
            listener.flush()

    def _all(self) -> list[Listener]:
        rooms = (*self._by_subscription.values(), *self._by_owner.values())
        return [listener for room in rooms for listener in room]

    def callers(self) -> set[str]:
        """The keys that have open streams."""
        return {listener.caller for listener in self._all()}

    def end(self, caller: str) -> None:
        """Close the streams of a key."""
        for listener in self._all():
            if listener.caller == caller and listener.close is not None:
                listener.close()

    def mark_all_missed(self) -> None:
        """Send all listeners to the ledger, which has results that were not offered."""
        for listener in self._all():
            listener.mark_missed()
