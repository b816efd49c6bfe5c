"""Access: who calls, and what they may do.

A key is shown once, when it is made; the ledger has its digest. Without keys, which is allowed on
loopback only, everybody who can reach the port may do everything, but no page of another origin.
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

from placewire.serve.errors import Refused
from placewire.serve.ledger import Key, Ledger

ROLES = ("publish", "subscribe", "admin")
LOCAL = "local"  # the name of those who come without a key
KNOWN_S = 2.0  # how long keys are taken as they were read
NEW_S = 0.2  # how long one that was not there is taken to be none
PATIENCE_S = 0.25  # how long one that is known waits for the ledger
MOST_NAME = 64


class Caller(NamedTuple):
    """Who calls, by the name of their key."""

    name: str
    roles: tuple[str, ...]

    @property
    def admin(self) -> bool:
        return "admin" in self.roles

    @property
    def scope(self) -> str | None:
        """Whose subscriptions they see: their own, or, as None, everybody's."""
        return None if self.admin and self.name != LOCAL else self.name


EVERYBODY = Caller(LOCAL, ROLES)


class Access:
    """Finds out who calls; `required` says that nobody may come without a key.

    Used in the gateway's one event loop, which never waits for the ledger: keys are read in a
    thread, once for all who wait, and one that is known counts as known if that takes long.
    """

    def __init__(self, ledger: Ledger, required: bool, hosts: tuple[str, ...] = ()) -> None:
        self.ledger = ledger
        self.required = required
        self.hosts = hosts  # names by which the service may be called, beside loopback's
        self._keys: dict[str, Key] = {}
        self._read_s = -math.inf
        self._thread = ThreadPoolExecutor(1, "keys")
        self._reading: asyncio.Task[None] | None = None

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def identify(self, headers: Mapping[str, str], key: str | None = None) -> Caller:
        """Who calls, by headers, or by the `key` of an address; raises Refused."""
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
            raise Refused(401, "authorization: a key is needed, got none", CHALLENGE)
        self._check_origin(headers)
        return EVERYBODY

    async def _find(self, given: str) -> Key | None:
        digest = digest_key(given)
        known = digest in self._keys
        if time.monotonic() - self._read_s > (KNOWN_S if known else NEW_S):
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
                # Who has a key that is known does not look at what became of it.
                self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
            reading = self._reading
            await asyncio.wait({reading}, timeout=PATIENCE_S if known else None)
            if reading.done() and not known:
                reading.result()
        return self._keys.get(digest)

    async def _read(self) -> None:
        """Read all keys; raises Unavailable, and then those that are known stay known."""
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

    def forget(self) -> None:
        """Read the keys anew at the next call; what is being read may be too old."""
        self._read_s = -math.inf
        self._reading = None

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        """Refuse pages of elsewhere, and names that somebody else has pointed at this machine."""
        host = headers.get("host", "")
        if host and not self._is_ours(name_in(f"//{host}")):
            raise Refused(403, f"host: must be a name of this machine, got {host[:100]!r}")
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise Refused(403, f"origin: must be this service's own, got {origin[:100]!r}")

    def _is_ours(self, name: str) -> bool:
        return name == "localhost" or name in self.hosts or is_loopback(name)


CHALLENGE = {"www-authenticate": "Bearer"}


def name_in(address: str) -> str:
    """The name of a machine in an address; empty if it cannot be read."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def need_role(caller: Caller, role: str) -> None:
    """Raise Refused unless the caller has a role; an admin has all."""
    if role not in caller.roles and not caller.admin:
        raise Refused(403, f"key {caller.name!r}: needs the role {role!r}")


def make_key(name: str, roles: tuple[str, ...]) -> tuple[str, Key]:
    """A new key: itself, to be shown once, and what is kept of it; raises Refused."""
    if not 1 <= len(name) <= MOST_NAME or not name.isprintable() or name == LOCAL:
        raise Refused(422, f"name: must be 1 to 64 printable characters, got {name[:80]!r}")
    wrong = [role for role in roles if role not in ROLES]
    if wrong or not roles:
        got = repr(wrong[0][:40]) if wrong else "none"
        raise Refused(422, f"roles: must be some of {', '.join(ROLES)}, got {got}")
    key = f"pw_{secrets.token_urlsafe(24)}"
    ordered = tuple(role for role in ROLES if role in roles)
    return key, Key(name, digest_key(key), ordered, time.time_ns() // 1_000)


def digest_key(key: str) -> str:
    """What is kept of a key: it is random enough that no slow hash is needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


BURST_S = 2.0


class Rates:
    """A bucket for each caller that fills with time."""

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s  # 0: no limit
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, events: int) -> None:
        """Let so many events pass, or raise Refused saying when to come again.

        More than the bucket holds pass when it is full, and are owed.
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
