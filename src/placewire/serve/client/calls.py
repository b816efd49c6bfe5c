"""HTTP calls to a server: URLs, keys, errors, and retries with backoff."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

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
            f"server {self.url}: does not answer as Placewire does,"
            f" got {status} {response.reason_phrase} for {response.request.url.path}",
            status,
        )

    def unreachable(self, error: Exception) -> Declined:
        """The error for a server that cannot be reached."""
        why = one_line(error)
        why = why.partition("] ")[2].lower() if why.startswith("[Errno") else why
        if self.reached:
            return Declined(f"server {self.url}: was lost: {why[:MAX_SHOWN]}")
        return Declined(
            f"server {self.url}: cannot be reached: {why[:MAX_SHOWN]};"
            " `placewire serve --state DIR` starts one"
        )


class Backoff:
    """Waits between attempts, longer each time, until the retry time is over."""

    def __init__(self, retry_s: float) -> None:
        self._ends = time.monotonic() + retry_s
        self._pauses = pauses()

    def wait(self) -> bool:
        """Wait for the next attempt; false if no time is left."""
        pause = next(self._pauses)
        if time.monotonic() + pause > self._ends:
            return False
        time.sleep(pause)
        return True


def pauses() -> Iterator[float]:
    yield from PAUSES_S
    while True:
        yield PAUSES_S[-1]


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
