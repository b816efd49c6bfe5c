"""Following results: server-sent events, taken up again where they were when a stream is lost."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from placewire.serve.client.calls import AWAY, CONNECTS_S, Calls, Declined, Tries

try:
    import httpx
except ImportError:  # an extra, which Calls asks for
    httpx = None  # type: ignore[assignment]

QUIET_S = 45.0  # a stream says every 15 s that it lives
MOST_WAITING = 1_000
LOOKS_S = 0.5
SOON_S = 0.02
SETTLES_S = 0.5  # without a result, after which all that was there has come
LASTED_S = 1.0  # a stream that was there so long is waited for anew


class Following:
    """The results of a path, in order and none twice; a thread of its own reads them."""

    def __init__(self, calls: Calls, path: str, after: int | str = 0, objects: bool = False):
        self.calls = calls
        self.path = path
        self.parameters = {"after": str(after)} | ({"objects": "1"} if objects else {})
        self.cursor = ""  # the last id that the server has sent
        self._got: queue.Queue[dict[str, Any] | Declined] = queue.Queue(MOST_WAITING)
        self._closed = threading.Event()
        self._heard_s: float | None = None  # when the stream began, or when a result came last
        self._thread = threading.Thread(target=self._work, name="following", daemon=True)
        self._thread.start()

    def results(self, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """Results as they come, for so many seconds or for ever; raises Declined."""
        ends = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                left = LOOKS_S if ends is None else ends - time.monotonic()
                try:
                    got = self._got.get(timeout=min(max(left, SOON_S), LOOKS_S))
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
        """Whether what was there when the stream began has come, by all that can be seen."""
        return self._heard_s is not None and time.monotonic() - self._heard_s >= SETTLES_S

    def _work(self) -> None:
        tries = Tries(self.calls.patience_s)
        while not self._closed.is_set():
            before, began_s = self.cursor, time.monotonic()
            try:
                self._read()
                error: Exception = httpx.ReadError("the stream has ended")
            except httpx.TransportError as lost:
                error = lost
            except Declined as refused:
                if refused.status not in AWAY:
                    self._put(refused)
                    return
                error = refused
            if self.cursor != before or time.monotonic() - began_s > LASTED_S:
                tries = Tries(self.calls.patience_s)
            if not self.calls.reached or not tries.rest():
                self._put(error if isinstance(error, Declined) else self.calls.away(error))
                return

    def _read(self) -> None:
        """One connection, as long as it lasts; raises TransportError or Declined."""
        headers = {"accept": "text/event-stream"}
        if self.cursor:
            headers["last-event-id"] = self.cursor
        with self.calls.http.stream(
            "GET",
            self.path,
            params=self.parameters,
            headers=headers,
            timeout=httpx.Timeout(QUIET_S, connect=CONNECTS_S),
        ) as response:
            self.calls.reached = True
            kind = response.headers.get("content-type", "")
            if response.status_code != 200 or not kind.startswith("text/event-stream"):
                response.read()
                self.calls.read(response)
                raise Declined(f"server {self.calls.url}: has no results at {self.path}", 404)
            data, following = b"", ""
            self._heard_s = time.monotonic()
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
                        self._heard_s = time.monotonic()
                        self._put(msgspec.json.decode(data))
                        data = b""
                    self.cursor = following or self.cursor
                    following = ""

    def _put(self, got: dict[str, Any] | Declined) -> None:
        while not self._closed.is_set():
            try:
                self._got.put(got, timeout=LOOKS_S)
                return
            except queue.Full:
                pass


def lines_of(response: httpx.Response) -> Iterator[bytes]:
    """A stream's lines; only newlines end them, whatever else is in a text."""
    rest = b""
    for piece in response.iter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
