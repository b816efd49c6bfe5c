"""Connections: HTTP as uvicorn speaks it, with an end to waiting for the other side.

A request's head must come whole within some seconds and some size, an answer must be taken within
some seconds, and only so many requests may be sent ahead. What breaks a rule is told in JSON where
that is still possible, and cut off.
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

from placewire.serve.http.streams import WRITE_NOW

MOST_SOCKET_BYTES = 1 << 16  # of a message that comes by WebSocket: nobody needs to send any
GRACE_S = 3  # for requests under way when the gateway ends


class Patience(NamedTuple):
    """Limits of one connection."""

    head_s: float = 10.0  # a request's head must be whole within it
    head_bytes: int = 1 << 16  # and no longer than this
    body_s: float = 30.0  # then its body
    idle_s: int = 5  # between two requests
    stalled_s: float = 60.0  # a client that takes nothing for so long is given up
    most_piped: int = 32  # requests sent before earlier ones were answered


PATIENT = Patience()


def configure(app: ASGIApp, patience: Patience = PATIENT, **more: Any) -> uvicorn.Config:
    """How the gateway is served."""
    return uvicorn.Config(
        app,
        http=type("PatientConnection", (Connection,), {"patience": patience}),
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=patience.idle_s,
        timeout_graceful_shutdown=GRACE_S,
        ws_max_size=MOST_SOCKET_BYTES,
        **more,
    )


def raise_file_limit() -> None:
    """Let this process have as many connections as the system allows it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Connection(HttpToolsProtocol):
    """One connection of a client."""

    patience = PATIENT

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._in_head = False
        self._head_bytes = 0
        self._waiting: asyncio.TimerHandle | None = None  # for the client to send
        self._stalled: asyncio.TimerHandle | None = None  # for the client to take
        self._answering: RequestResponseCycle | None = None

    # What is waited for.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.patience.head_s, self._tire)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _tire(self) -> None:
        self._waiting = None
        if self._in_head:
            self.refuse(408, f"request: its head must come within {self.patience.head_s:g} s")
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {WRITE_NOW: {"write": self.write_now}}
        self._in_head = True
        self._head_bytes = 0
        self._wait()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # An answer may be there before all of its request is: the rest must not last for ever.
        if self.cycle.more_body and not self.transport.is_closing():
            self._wait()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        try:
            super().data_received(data)
        except ValueError:  # an address that is not ASCII
            self.send_400_response("")
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.patience.head_bytes:
                most = self.patience.head_bytes
                self.refuse(431, f"request: its head must be at most {most} bytes, got more")
        if len(self.pipeline) > self.patience.most_piped:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.patience.stalled_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    # What is answered.

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def write_now(self, body: bytes) -> bool:
        """Write a piece of the answer under way, with nobody to wait; false if one would have to.

        For streams: no task is woken for a result, and nothing is put together in between.
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
        self._stop_waiting()
        if self._stalled is not None:
            self._stalled.cancel()
        # Not the last request only: an earlier one may be an endless stream.
        for cycle in (self._answering, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()

    def send_400_response(self, msg: str) -> None:
        self.refuse(400, "request: cannot be read as HTTP/1.1")

    def refuse(self, status: int, why: str) -> None:
        """Say what is wrong, unless another answer is under way, and close."""
        self._stop_waiting()
        cycle = self._answering
        begun = cycle is not None and cycle.response_started and not cycle.response_complete
        if cycle is not None:
            cycle.disconnected = True  # what it would still say has nobody to hear it
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
