"""Authenticate callers by API key, check their roles, and limit their rate.

A key is shown once, when it is created; the ledger stores its digest. Without keys, which only
loopback allows, every local client may do everything, except pages from another origin.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import math
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import urlsplit

from placewire.serve import Refused
from placewire.serve.ledger import ApiKey, Ledger

ROLES = ("publish", "subscribe", "admin")
LOCAL = "local"  # the name of callers without a key
KEY_CACHE_S = 2.0  # how long a known key is cached
MISS_CACHE_S = 0.2  # how long an unknown key is cached
LEDGER_WAIT_S = 0.25  # how long a cached key waits for a slow reload
MAX_NAME = 64
CHALLENGE = {"www-authenticate": "Bearer"}
BURST_S = 2.0


class Caller(NamedTuple):
    """An authenticated caller, named after its key."""

    name: str
    roles: tuple[str, ...]

    @property
    def admin(self) -> bool:
        return "admin" in self.roles

    @property
    def scope(self) -> str | None:
        """The owner whose subscriptions the caller sees; None: all owners."""
        return None if self.admin and self.name != LOCAL else self.name


LOCAL_CALLER = Caller(LOCAL, ROLES)


class Authenticator:
    """Identifies callers; with `required` it rejects requests without a key.

    Runs in the gateway's event loop and never blocks on the ledger: one thread reads the keys for
    all waiting requests, and a cached key stays valid if that read is slow.
    """

    def __init__(self, ledger: Ledger, required: bool, hosts: tuple[str, ...] = ()) -> None:
        self.ledger = ledger
        self.required = required
        self.hosts = hosts  # allowed values of the Host header, besides loopback
        self._keys: dict[str, ApiKey] = {}
        self._read_s = -math.inf
        self._thread = ThreadPoolExecutor(1, "keys")
        self._reading: asyncio.Task[None] | None = None

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def identify(self, headers: Mapping[str, str], key: str | None = None) -> Caller:
        """Identify the caller from its headers, or from the `key` of a URL; raises Refused."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme and scheme.lower() != "bearer":
            raise Refused(401, "authorization: must be 'Bearer KEY'", CHALLENGE)
        given = given.strip() or key or ""
        if given:
            found = await self._find(given)
            if found is None:
                raise Refused(401, "authorization: the key is not known", CHALLENGE)
            return Caller(found.name, found.roles)
        if self.required:
            raise Refused(401, "authorization: an API key is required, got none", CHALLENGE)
        self._check_origin(headers)
        return LOCAL_CALLER

    async def _find(self, given: str) -> ApiKey | None:
        digest = digest_key(given)
        known = digest in self._keys
        if time.monotonic() - self._read_s > (KEY_CACHE_S if known else MISS_CACHE_S):
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
                # Callers with a cached key do not await the result.
                self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
            reading = self._reading
            await asyncio.wait({reading}, timeout=LEDGER_WAIT_S if known else None)
            if reading.done() and not known:
                reading.result()
        return self._keys.get(digest)

    async def _read(self) -> None:
        """Reload all keys; raises Unavailable and then keeps the cached keys."""
        mine = asyncio.current_task()
        loop = asyncio.get_running_loop()
        try:
            keys = await loop.run_in_executor(self._thread, self.ledger.all_keys)
            if self._reading is mine:
                self._keys = {key.digest: key for key in keys}
        finally:
            if self._reading is mine:
                self._read_s = time.monotonic()
                self._reading = None

    def invalidate(self) -> None:
        """Reload the keys at the next request; a read in progress may be out of date."""
        self._read_s = -math.inf
        self._reading = None

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        """Reject pages from other origins, and host names that were pointed at this machine."""
        host = headers.get("host", "")
        name = hostname_of(f"//{host}")
        if host and not (name == "localhost" or name in self.hosts or is_loopback(name)):
            raise Refused(403, f"host: must be a name of this machine, got {host[:100]!r}")
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise Refused(403, f"origin: must be this service's own, got {origin[:100]!r}")


def hostname_of(address: str) -> str:
    """The host name in a URL; empty if it is malformed."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_role(caller: Caller, role: str) -> None:
    """Raise Refused unless the caller has the role; admin implies every role."""
    if role not in caller.roles and not caller.admin:
        raise Refused(403, f"key {caller.name!r}: needs the role {role!r}")


def make_key(name: str, roles: tuple[str, ...]) -> tuple[str, ApiKey]:
    """Create a key: the secret, to be shown once, and the row to store; raises Refused."""
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name == LOCAL:
        raise Refused(422, f"name: must be 1 to 64 printable characters, got {name[:80]!r}")
    wrong = [role for role in roles if role not in ROLES]
    if wrong or not roles:
        got = repr(wrong[0][:40]) if wrong else "none"
        raise Refused(422, f"roles: must be some of {', '.join(ROLES)}, got {got}")
    key = f"pw_{secrets.token_urlsafe(24)}"
    ordered = tuple(role for role in ROLES if role in roles)
    return key, ApiKey(name, digest_key(key), ordered, time.time_ns() // 1_000)


def digest_key(key: str) -> str:
    """The stored digest of a key; keys are random enough for a fast hash."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class RateLimiter:
    """A token bucket per caller."""

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s  # 0: no limit
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, events: int) -> None:
        """Take one token per event; raises Refused with the time to wait.

        A request larger than the bucket passes when the bucket is full, and leaves it in debt.
        """
        if not self.per_s:
            return
        room = self.per_s * BURST_S
        now = time.monotonic()
        left, then = self._buckets.get(caller, (room, now))
        left = min(room, left + (now - then) * self.per_s)
        if left < min(events, room):
            wait = math.ceil((min(events, room) - left) / self.per_s)
            raise Refused(
                429, f"rate: at most {self.per_s:g} events a second", {"retry-after": str(wait)}
            )
        self._buckets[caller] = left - events, now
