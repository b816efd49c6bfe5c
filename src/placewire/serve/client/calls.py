"""HTTP calls to a server: URLs, keys, errors, retries with backoff, and result streams."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any
from urllib.parse import urlsplit

import msgspec

from placewire.model.errors import Unusable, one_line
from placewire.serve.auth import is_loopback

try:
    import httpx
except ImportError:  # an extra
    httpx = None  # type: ignore[assignment]


PAUSES_S = (0.1, 0.3, 1.0, 2.0)  # between attempts; the last one repeats
RETRY_S = 30.0  # how long to retry a server that was reachable before
RESPONSE_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 10.0
TOO_MANY_REQUESTS, UNAVAILABLE = 429, (502, 503, 504)
MAX_SHOWN = 200
SCHEMES = ("http", "https")

IDLE_TIMEOUT_S = 45.0  # the server sends a keepalive every 15 s
MAX_WAITING = 1_000
POLL_S = 0.5
MIN_POLL_S = 0.02
SETTLE_S = 0.5  # without a result: the backlog is complete
STABLE_STREAM_S = 1.0  # a stream that lasted this long resets the backoff


class Declined(Unusable):
    """The server rejected a request: the reason and the HTTP status, 0 if it was unreachable."""

    def __init__(self, why: str, status: int = 0, body: dict[str, Any] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.body = body or {}


class Calls:
    """Makes requests to one server over a connection that reconnects."""

    def __init__(self, url: str, key: str | None = None, retry_s: float = RETRY_S) -> None:
        if httpx is None:
            raise Unusable("a server needs httpx: pip install 'placewire[serve]'")
        self.url = read_address(url)
        self.retry_s = retry_s
        self.reached = False
        headers = {} if not key else {"authorization": f"Bearer {checked_key(key)}"}
        local = is_loopback(urlsplit(self.url).hostname or "")
        self.http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(RESPONSE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=not local,  # no proxy for loopback
        )

    def close(self) -> None:
        self.http.close()

    def ask(self, method: str, path: str, again: bool = True, **more: Any) -> dict[str, Any]:
        """The JSON reply to a request, retried like `call`; raises Declined."""
        return self.read(self.call(method, path, again, **more))

    def ask_text(self, path: str) -> str:
        """The text reply to a GET request; raises Declined."""
        response = self.call("GET", path)
        if response.status_code != 200:
            self.read(response)
        return response.text

    def call(self, method: str, path: str, again: bool = True, **more: Any) -> httpx.Response:
        """The response to a request, error or not; raises Declined if there is none.

        With `again`, unanswered requests are retried within the retry time: use it for requests
        that are idempotent. A request that exceeds the rate limit is always retried.
        """
        tries = Backoff(self.retry_s)
        while True:
            try:
                response = self.http.request(method, path, **more)
            except httpx.TransportError as error:
                if not (again and self.reached and tries.wait()):
                    raise self.unreachable(error) from None
                continue
            self.reached = True
            if response.status_code == TOO_MANY_REQUESTS:
                time.sleep(retry_after(response))
                continue
            if response.status_code in UNAVAILABLE and tries.wait():
                continue
            return response

    def read(self, response: httpx.Response) -> dict[str, Any]:
        """The JSON body of a response; raises Declined if it is an error."""
        try:
            body = response.json()
        except ValueError:
            body = None
        status = response.status_code
        if status < 400 and isinstance(body, dict):
            return body
        if isinstance(body, dict) and isinstance(body.get("error"), str):
            raise Declined(body["error"], status, body)
        raise Declined(
            f"server {self.url}: is not a Placewire server,"
            f" got {status} {response.reason_phrase} for {response.request.url.path}",
            status,
        )

    def unreachable(self, error: Exception) -> Declined:
        """The error for a server that cannot be reached."""
        why = one_line(error)
        why = why.partition("] ")[2].lower() if why.startswith("[Errno") else why
        if self.reached:
            return Declined(f"server {self.url}: connection lost: {why[:MAX_SHOWN]}")
        return Declined(
            f"server {self.url}: cannot be reached: {why[:MAX_SHOWN]};"
            " start one with `placewire serve --state DIR`"
        )


class Backoff:
    """Waits between attempts, longer each time, until the retry time is over."""

    def __init__(self, retry_s: float) -> None:
        self._ends = time.monotonic() + retry_s
        self._pauses = chain(PAUSES_S, repeat(PAUSES_S[-1]))

    def wait(self) -> bool:
        """Wait for the next attempt; false if no time is left."""
        pause = next(self._pauses)
        if time.monotonic() + pause > self._ends:
            return False
        time.sleep(pause)
        return True


def retry_after(response: httpx.Response) -> float:
    """The pause that the server asks for, in seconds."""
    said = response.headers.get("retry-after", "")
    return float(min(int(said), 60)) if said.isdecimal() else 1.0


def read_address(given: str) -> str:
    """Normalize a server URL, with scheme and without trailing slash; raises Unusable."""
    text = given.strip()
    text = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(text)
        fine = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
        fine = fine and text.isascii() and text.isprintable() and " " not in text
    except ValueError:
        fine = False
    if not fine or parts.query or parts.fragment or parts.username is not None:
        raise Unusable(f"server: must be http://HOST:PORT, got {redact(given)}")
    return text.rstrip("/")


def redact(given: str) -> str:
    """A URL without its password, for messages."""
    _, at, host = given.rpartition("@")
    return repr((f"...@{host}" if at else given)[:MAX_SHOWN])


def checked_key(key: str) -> str:
    """A key that is valid in a header; raises Unusable without showing it."""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise Unusable("key: must be printable ASCII characters, got others")
    return key


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
                    # Once it is quiet, the backlog from before the start has probably arrived.
                    last_s = self._last_event_s
                    quiet = last_s is not None and time.monotonic() - last_s >= SETTLE_S
                    if left <= 0 and quiet:
                        return
                    continue
                if isinstance(got, Declined):
                    raise got
                yield got
        finally:
            self._closed.set()

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
