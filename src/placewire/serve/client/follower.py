"""Follow results over server-sent events, and resume a lost stream where it left off."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from placewire.serve.client.calls import CONNECT_TIMEOUT_S, UNAVAILABLE, Backoff, Calls, Declined

try:
    import httpx
except ImportError:  # an extra, which Calls asks for
    httpx = None  # type: ignore[assignment]

IDLE_TIMEOUT_S = 45.0  # the server sends a keepalive every 15 s
MAX_WAITING = 1_000
POLL_S = 0.5
MIN_POLL_S = 0.02
SETTLE_S = 0.5  # without a result: the backlog is complete
STABLE_STREAM_S = 1.0  # a stream that lasted this long resets the backoff


class ResultFollower:
    """The results of one stream, in order and without repeats; a thread reads them."""

    def __init__(self, calls: Calls, path: str, after: int | str = 0, objects: bool = False):
        self.calls = calls
        self.path = path
        self.parameters = {"after": str(after)} | ({"objects": "1"} if objects else {})
        self.cursor = ""  # the last event id of the server
        self._got: queue.Queue[dict[str, Any] | Declined] = queue.Queue(MAX_WAITING)
        self._closed = threading.Event()
        self._last_event_s: float | None = None  # stream start or last result
        self._thread = threading.Thread(target=self._work, name="follower", daemon=True)
        self._thread.start()

    def results(self, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """Yield results for `seconds`, or without end; raises Declined."""
        ends = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                left = POLL_S if ends is None else ends - time.monotonic()
                try:
                    got = self._got.get(timeout=min(max(left, MIN_POLL_S), POLL_S))
                except queue.Empty:
                    if left <= 0 and self._is_quiet():
                        return
                    continue
                if isinstance(got, Declined):
                    raise got
                yield got
        finally:
            self._closed.set()

    def _is_quiet(self) -> bool:
        """Whether the backlog from before the stream started has probably arrived."""
        return self._last_event_s is not None and time.monotonic() - self._last_event_s >= SETTLE_S

    def _work(self) -> None:
        tries = Backoff(self.calls.retry_s)
        while not self._closed.is_set():
            before, began_s = self.cursor, time.monotonic()
            try:
                self._read()
                error: Exception = httpx.ReadError("the stream has ended")
            except httpx.TransportError as lost:
                error = lost
            except Declined as refused:
                if refused.status not in UNAVAILABLE:
                    self._put(refused)
                    return
                error = refused
            if self.cursor != before or time.monotonic() - began_s > STABLE_STREAM_S:
                tries = Backoff(self.calls.retry_s)
            if not self.calls.reached or not tries.wait():
                self._put(error if isinstance(error, Declined) else self.calls.unreachable(error))
                return

    def _read(self) -> None:
        """Read one connection until it ends; raises TransportError or Declined."""
        headers = {"accept": "text/event-stream"}
        if self.cursor:
            headers["last-event-id"] = self.cursor
        with self.calls.http.stream(
            "GET",
            self.path,
            params=self.parameters,
            headers=headers,
            timeout=httpx.Timeout(IDLE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
        ) as response:
            self.calls.reached = True
            kind = response.headers.get("content-type", "")
            if response.status_code != 200 or not kind.startswith("text/event-stream"):
                response.read()
                self.calls.read(response)
                raise Declined(f"server {self.calls.url}: has no results at {self.path}", 404)
            data, following = b"", ""
            self._last_event_s = time.monotonic()
            for line in lines_of(response):
                if self._closed.is_set():
                    return
                name, _, value = line.partition(b": ")
                if name == b"id":
                    following = value.decode()
                elif name == b"data":
                    data = value
                elif not line:
                    if data:
                        self._last_event_s = time.monotonic()
                        self._put(msgspec.json.decode(data))
                        data = b""
                    self.cursor = following or self.cursor
                    following = ""

    def _put(self, got: dict[str, Any] | Declined) -> None:
        while not self._closed.is_set():
            try:
                self._got.put(got, timeout=POLL_S)
                return
            except queue.Full:
                pass


def lines_of(response: httpx.Response) -> Iterator[bytes]:
    """The lines of a stream; only newlines separate them."""
    wait = b""
    for piece in response.iter_bytes():
        *lines, wait = (wait + piece).split(b"\n")
        yield from lines
