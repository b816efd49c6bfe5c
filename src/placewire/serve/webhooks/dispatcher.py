"""Webhooks: every result to its address, in order, until it is there or given up.

One parcel at a time for each subscription, many subscriptions at once. Those that are new, fail
or take long have a lane of their own, so that they hold up nobody but each other. Everything
that must outlast this process is in the ledger; here is only who is due.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from placewire.serve.errors import Unavailable
from placewire.serve.ledger import Account, Entry, Ledger
from placewire.serve.ledger.rows import FAILED, Parcel, Report, Step
from placewire.serve.webhooks.delivery_batcher import AGAIN_S, Clerk
from placewire.serve.webhooks.sender import Sender, encode_parcel

SLOW_S = 2.0  # one that takes longer is sent by the lane of the slow
READERS = 4  # threads
GRACE_S = 2.0  # for what is under way when the gateway ends
PUZZLED_S = 60.0  # after an error that nobody foresaw

log = logging.getLogger("placewire.serve")


class Retries(NamedTuple):
    """When a parcel is tried again, and how often: by default twelve times in about a day."""

    tries: int = 12
    first_s: float = 5.0
    growth: float = 3.0
    most_s: float = 21_600.0
    jitter: float = 0.2  # of each pause, up or down

    def pause_s(self, attempts: int) -> float | None:
        """How long to wait after so many attempts; None: no longer."""
        if attempts >= self.tries:
            return None
        pause = min(self.most_s, self.first_s * self.growth ** (attempts - 1))
        return pause * random.uniform(1 - self.jitter, 1 + self.jitter)


class Lanes(NamedTuple):
    """How many are sent at once."""

    quick: int = 64
    slow: int = 64


class Due:
    """One webhook's place in the queue."""

    def __init__(self) -> None:
        self.parcel: Parcel | None = None
        self.slow = True  # until it has shown that it is not
        self.queued = False  # in a lane, or being sent
        self.again = False  # something came meanwhile
        self.stale = False  # its webhook was changed meanwhile
        self.timer: asyncio.TimerHandle | None = None

    def disarm(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None


class Webhooks:
    """Sends what the ledger has for webhooks; used in the gateway's one event loop."""

    def __init__(
        self, ledger: Ledger, sender: Sender, retries: Retries, lanes: Lanes | None = None
    ) -> None:
        self.ledger = ledger
        self.sender = sender
        self.retries = retries
        self.lanes = lanes or Lanes()
        self.under_way = 0
        self._due: dict[Account, Due] = {}
        self._quick: asyncio.Queue[Account] = asyncio.Queue()
        self._slow: asyncio.Queue[Account] = asyncio.Queue()
        self._clerk = Clerk(ledger)
        self._readers = ThreadPoolExecutor(READERS, "parcels")
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def start(self) -> None:
        """Begin with what has been waiting since before."""
        for queue, count in ((self._quick, self.lanes.quick), (self._slow, self.lanes.slow)):
            self._tasks += [asyncio.create_task(self._work(queue)) for _ in range(count)]
        self._tasks.append(asyncio.create_task(self._recall()))

    async def stop(self) -> None:
        """Let what is under way come to its end for a moment; the rest is sent after a restart."""
        self._closing = True
        for due in self._due.values():
            due.disarm()
        until = time.monotonic() + GRACE_S
        while self.under_way and time.monotonic() < until:
            await asyncio.sleep(0.01)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._clerk.stop()
        self.sender.close()
        self._readers.shutdown()

    async def _recall(self) -> None:
        while True:
            try:
                active = await asyncio.to_thread(self.ledger.deliveries.active)
                break
            except Unavailable:
                await asyncio.sleep(AGAIN_S)
        for account, waits in active:
            due = self._due.setdefault(account, Due())
            if waits:
                self._queue(account, due)

    def hear(self, entries: Iterable[Entry]) -> None:
        """New results: wake those that have webhooks and wait for nothing else."""
        if not self._due:
            return
        for account in {entry.account for entry in entries}:
            due = self._due.get(account)
            if due is not None and due.timer is None:
                self._queue(account, due)

    def look_again(self) -> None:
        """New results that nobody has listed: wake all that wait for nothing else."""
        for account, due in self._due.items():
            if due.timer is None:
                self._queue(account, due)

    def wake(self, account: Account) -> None:
        """A webhook is new, or has another wish: look at it now."""
        due = self._due.setdefault(account, Due())
        due.disarm()
        due.parcel, due.stale = None, True
        self._queue(account, due)

    def _queue(self, account: Account, due: Due) -> None:
        due.timer = None
        if due.queued:
            due.again = True
        elif not self._closing:
            due.queued = True
            (self._slow if due.slow else self._quick).put_nowait(account)

    async def _work(self, queue: asyncio.Queue[Account]) -> None:
        while True:
            account = await queue.get()
            due = self._due.get(account)
            if due is None or self._closing:
                continue
            self.under_way += 1
            try:
                step = await self._act(account, due)
            except Exception:
                log.exception("webhook of %r", account.subscription)
                step = Step(wait_us=time.time_ns() // 1_000 + int(PUZZLED_S * 1e6))
            finally:
                self.under_way -= 1
            self._go_on(account, due, step)

    async def _act(self, account: Account, due: Due) -> Step:
        """Send one parcel, if there is one; gives what is to be done next."""
        due.again = due.stale = False
        parcel, due.parcel = due.parcel, None
        if parcel is None:
            step = await self._clerk.advance(account, None)
            if step.parcel is None:
                return step
            parcel = step.parcel
        begun = time.monotonic()
        report = await self._send(parcel)
        due.slow = report.outcome == FAILED or time.monotonic() - begun > SLOW_S
        return await self._clerk.advance(account, report)

    async def _send(self, parcel: Parcel) -> Report:
        entries = await self._read(parcel)
        if not entries:
            return Report(parcel, FAILED, "its results are not kept any more")
        outcome, error = await self.sender.send(parcel, encode_parcel(parcel, entries))
        pause_s = self.retries.pause_s(parcel.attempts + 1) if outcome == FAILED else None
        again_us = None
        if pause_s is not None and not parcel.dead:
            again_us = time.time_ns() // 1_000 + int(pause_s * 1e6)
        return Report(parcel, outcome, error, again_us)

    async def _read(self, parcel: Parcel) -> list[Entry]:
        loop = asyncio.get_running_loop()
        wanted = parcel.account, parcel.first - 1, parcel.size
        while True:
            try:
                found = await loop.run_in_executor(self._readers, self.ledger.results_of, *wanted)
            except Unavailable:
                await asyncio.sleep(AGAIN_S)
                continue
            return [entry for entry in found if entry.number <= parcel.last]

    def _go_on(self, account: Account, due: Due, step: Step) -> None:
        due.queued = False
        if not step.known:
            if due.again:
                self._queue(account, due)
            else:
                self._due.pop(account, None)
        elif step.parcel is not None:
            due.parcel = None if due.stale else step.parcel
            self._queue(account, due)
        elif step.wait_us is not None and not self._closing and not due.stale:
            pause_s = max(0.0, step.wait_us / 1e6 - time.time())
            loop = asyncio.get_running_loop()
            due.timer = loop.call_later(pause_s, self._queue, account, due)
        elif due.again:
            self._queue(account, due)
