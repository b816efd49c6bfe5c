"""Calls to a server: one home for addresses, keys, errors, and trying again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from placewire.model.errors import Unusable
from placewire.serve.auth import is_loopback

try:
    import httpx
except ImportError:  # an extra
    httpx = None  # type: ignore[assignment]

PAUSES_S = (0.1, 0.3, 1.0, 2.0)  # between tries; then always the last
PATIENCE_S = 30.0  # for a server that was there and is away
ANSWERS_S = 60.0
CONNECTS_S = 10.0
NO_ROOM, AWAY = 429, (502, 503, 504)
MOST_SHOWN = 200
SCHEMES = ("http", "https")


class Declined(Unusable):
    """What a server did not do: why, with HTTP's status; that is 0 if it was not reached."""

    def __init__(self, why: str, status: int = 0, body: dict[str, Any] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.body = body or {}


class Calls:
    """Makes requests of one server, on one connection that is made again when it is lost."""

    def __init__(self, url: str, key: str | None = None, patience_s: float = PATIENCE_S) -> None:
        if httpx is None:
            raise Unusable("a server needs httpx: pip install 'placewire[serve]'")
        self.url = read_address(url)
        self.patience_s = patience_s
        self.reached = False
        headers = {} if not key else {"authorization": f"Bearer {checked_key(key)}"}
        local = is_loopback(urlsplit(self.url).hostname or "")
        self.http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(ANSWERS_S, connect=CONNECTS_S),
            trust_env=not local,  # no proxy stands between a machine and itself
        )

    def close(self) -> None:
        self.http.close()

    def ask(self, method: str, path: str, again: bool = True, **more: Any) -> dict[str, Any]:
        """What the server replies; raises Declined. As of `call`."""
        return self.read(self.call(method, path, again, **more))

    def ask_text(self, path: str) -> str:
        """What the server replies if that is no JSON; raises Declined."""
        response = self.call("GET", path)
        if response.status_code != 200:
            self.read(response)
        return response.text

    def call(self, method: str, path: str, again: bool = True, **more: Any) -> httpx.Response:
        """The response to a request, an error or not; raises Declined if there is none.

        What was not answered is asked `again`, while patience lasts: only for requests that the
        server knows again, or that change nothing. One that it had no room for is always.
        """
        tries = Tries(self.patience_s)
        while True:
            try:
                response = self.http.request(method, path, **more)
            except httpx.TransportError as error:
                if not (again and self.reached and tries.rest()):
                    raise self.away(error) from None
                continue
            self.reached = True
            if response.status_code == NO_ROOM:
                time.sleep(pause_of(response))
                continue
            if response.status_code in AWAY and tries.rest():
                continue
            return response

    def read(self, response: httpx.Response) -> dict[str, Any]:
        """A reply's body; raises Declined for one that is an error."""
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

    def away(self, error: Exception) -> Declined:
        """What to say of a server that cannot be reached."""
        why = " ".join(str(error).split()) or type(error).__name__
        why = why.partition("] ")[2].lower() if why.startswith("[Errno") else why
        if self.reached:
            return Declined(f"server {self.url}: was lost: {why[:MOST_SHOWN]}")
        return Declined(
            f"server {self.url}: cannot be reached: {why[:MOST_SHOWN]};"
            " `placewire serve --state DIR` starts one"
        )


class Tries:
    """Rests between tries, longer each time, while patience lasts."""

    def __init__(self, patience_s: float) -> None:
        self._ends = time.monotonic() + patience_s
        self._pauses = pauses()

    def rest(self) -> bool:
        """Rest; or, with no patience left, say so at once."""
        pause = next(self._pauses)
        if time.monotonic() + pause > self._ends:
            return False
        time.sleep(pause)
        return True


def pauses() -> Iterator[float]:
    yield from PAUSES_S
    while True:
        yield PAUSES_S[-1]


def pause_of(response: httpx.Response) -> float:
    """How long the server wants to be left alone."""
    said = response.headers.get("retry-after", "")
    return float(min(int(said), 60)) if said.isdecimal() else 1.0


def read_address(given: str) -> str:
    """A server's address, with a scheme and no slash at its end; raises Unusable."""
    text = given.strip()
    text = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(text)
        fine = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
        fine = fine and text.isascii() and text.isprintable() and " " not in text
    except ValueError:
        fine = False
    if not fine or parts.query or parts.fragment or parts.username is not None:
        raise Unusable(f"server: must be http://HOST:PORT, got {shown(given)}")
    return text.rstrip("/")


def shown(given: str) -> str:
    """An address without a password that may be in it."""
    _, at, host = given.rpartition("@")
    return repr((f"...@{host}" if at else given)[:MOST_SHOWN])


def checked_key(key: str) -> str:
    """A key that can be a header; raises Unusable and does not show it."""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise Unusable("key: must be printable ASCII characters, got others")
    return key
