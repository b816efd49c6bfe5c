"""Serve HTTP with uvicorn, and time out clients that read or write too slowly.

A request head must arrive within a time and a size, a response must be read within a time, and
pipelining is limited. Violations get a JSON error where possible, and the connection is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import resource
from typing import Any, NamedTuple

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from placewire.serve.http.streams import WRITE_EXTENSION

MAX_SOCKET_BYTES = 1 << 16  # of a WebSocket message from a client; none is expected
GRACE_S = 3  # for requests in progress at shutdown


class ConnectionLimits(NamedTuple):
    """Timeouts and sizes of one connection."""

    head_s: float = 10.0  # to receive the request head
    head_bytes: int = 1 << 16  # size of the request head
    body_s: float = 30.0  # to receive the body
    idle_s: int = 5  # between requests
    stalled_s: float = 60.0  # a client that reads nothing for this long is dropped
    max_pipelined: int = 32  # pipelined requests


DEFAULT_LIMITS = ConnectionLimits()


def configure(
    app: ASGIApp, limits: ConnectionLimits = DEFAULT_LIMITS, **more: Any
) -> uvicorn.Config:
    """The uvicorn configuration of the gateway."""
    return uvicorn.Config(
        app,
        http=type("LimitedConnection", (Connection,), {"limits": limits}),
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=limits.idle_s,
        timeout_graceful_shutdown=GRACE_S,
        ws_max_size=MAX_SOCKET_BYTES,
        **more,
    )


def raise_file_limit() -> None:
    """Raise the limit of open files to the system's maximum."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Connection(HttpToolsProtocol):
    """One client connection."""

    limits = DEFAULT_LIMITS

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._in_head = False
        self._head_bytes = 0
        self._read_timer: asyncio.TimerHandle | None = None  # waits for the client to send
        self._write_timer: asyncio.TimerHandle | None = None  # waits for the client to receive
        self._answering: RequestResponseCycle | None = None

    # Timeouts.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def _start_timer(self) -> None:
        if self._read_timer is None:
            self._read_timer = self.loop.call_later(self.limits.head_s, self._time_out)

    def _stop_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _time_out(self) -> None:
        self._read_timer = None
        if self._in_head:
            self.refuse(408, f"request: its head must come within {self.limits.head_s:g} s")
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {WRITE_EXTENSION: {"write": self.write_now}}
        self._in_head = True
        self._head_bytes = 0
        self._start_timer()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # A response can precede the end of its request: limit the rest too.
        if self.cycle.more_body and not self.transport.is_closing():
            self._start_timer()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        try:
            super().data_received(data)
        except ValueError:  # a URL that is not ASCII
            self.send_400_response("")
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head_bytes:
                most = self.limits.head_bytes
                self.refuse(431, f"request: its head must be at most {most} bytes, got more")
        if len(self.pipeline) > self.limits.max_pipelined:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.limits.stalled_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    # Responses.

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def write_now(self, body: bytes) -> bool:
        """Write a chunk of the current response at once; false if that would block.

        For streams: no task wakes up for a result.
        """
        cycle = self._answering
        if (
            cycle is None
            or self.flow.write_paused
            or cycle.disconnected
            or not cycle.chunked_encoding
            or cycle.response_complete
            or self.transport.is_closing()
        ):
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
        # Not only the last request: an earlier one may be an endless stream.
        for cycle in (self._answering, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()

    def send_400_response(self, msg: str) -> None:
        self.refuse(400, "request: cannot be read as HTTP/1.1")

    def refuse(self, status: int, why: str) -> None:
        """Send an error, unless another response has started, and close."""
        self._stop_timer()
        cycle = self._answering
        begun = cycle is not None and cycle.response_started and not cycle.response_complete
        if cycle is not None:
            cycle.disconnected = True  # its response would go nowhere
            cycle.message_event.set()
        if not begun and not self.transport.is_closing():
            body = msgspec.json.encode({"error": why})
            self.transport.write(
                f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
                "connection: close\r\n\r\n".encode()
                + body
            )
        self.transport.close()
