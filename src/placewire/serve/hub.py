"""The hub: new results go to all who listen, and nobody waits for anybody.

A listener has a place for a few results. One that does not keep up is told to read on in the
ledger, where everything is; it costs the others nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from placewire.serve.ledger import Entry

MOST_WAITING = 512  # results kept for one listener; more are read from the ledger
MOST_BYTES = 1 << 17  # of these


class Listener:
    """One stream's place in the hub."""

    def __init__(self, subscription: str | None, owner: str | None, caller: str = "") -> None:
        self.subscription = subscription  # None: all of the owner's
        self.owner = owner  # None: everybody's
        self.caller = caller  # whose key it came with
        self.close: Callable[[], None] | None = None  # ends the stream
        self.waiting: deque[Entry] = deque()
        self.waiting_bytes = 0
        self.missed = False
        self.woken = asyncio.Event()
        self.take: Callable[[], bool] | None = None  # what waits, at once, if that is possible

    def offer(self, entry: Entry) -> None:
        """Take a result, or note that there are some that are not here."""
        if self.missed:
            return
        self.waiting.append(entry)
        self.waiting_bytes += len(entry.body)
        if len(self.waiting) > MOST_WAITING or self.waiting_bytes > MOST_BYTES:
            self.miss()

    def tell(self) -> None:
        """After some were offered: have them taken, now or by the listener's own task."""
        if self.missed or self.take is None or not self.take():
            self.woken.set()

    def miss(self) -> None:
        """Note that what comes next is in the ledger only."""
        self.clear()
        self.missed = True
        self.woken.set()

    def clear(self) -> None:
        self.waiting.clear()
        self.waiting_bytes = 0


class Hub:
    """Who listens to what; used in the gateway's one event loop only."""

    def __init__(self) -> None:
        self._by_subscription: dict[str, set[Listener]] = {}
        self._by_owner: dict[str | None, set[Listener]] = {}
        self.listeners = 0
        self.delivered = 0  # results handed to streams

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

    def publish(self, entries: Iterable[Entry]) -> None:
        """Offer new results to those who listen to them; each is told once."""
        offered: dict[Listener, None] = {}
        everybodys = self._by_owner.get(None, ())
        for entry in entries:
            for listener in self._by_subscription.get(entry.subscription, ()):
                if listener.owner in (None, entry.owner):
                    listener.offer(entry)
                    offered[listener] = None
            for listener in (*self._by_owner.get(entry.owner, ()), *everybodys):
                listener.offer(entry)
                offered[listener] = None
        for listener in offered:
            listener.tell()

    def _all(self) -> list[Listener]:
        rooms = (*self._by_subscription.values(), *self._by_owner.values())
        return [listener for room in rooms for listener in room]

    def callers(self) -> set[str]:
        """Whose keys there are streams of."""
        return {listener.caller for listener in self._all()}

    def end(self, caller: str) -> None:
        """End the streams of a key that is not one any more."""
        for listener in self._all():
            if listener.caller == caller and listener.close is not None:
                listener.close()

    def miss_all(self) -> None:
        """Send everybody to the ledger: it has results that were not offered."""
        for rooms in (self._by_subscription.values(), self._by_owner.values()):
            for room in rooms:
                for listener in room:
                    listener.miss()
