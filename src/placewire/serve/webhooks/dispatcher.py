"""Dispatch results to webhooks in order, with retries.

Each subscription has one delivery at a time; many subscriptions are served concurrently. New,
failing and slow webhooks have their own queue, so they delay only each other. State that must
survive a restart is in the ledger; this module only schedules.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from placewire.serve import Unavailable
from placewire.serve.ledger import Account, Ledger, ResultEntry
from placewire.serve.ledger.rows import FAILED, DeliveryReport, NextStep, WebhookDelivery
from placewire.serve.webhooks.sender import Sender, encode_delivery

SLOW_S = 2.0  # slower webhooks move to the slow queue
READERS = 4  # threads
GRACE_S = 2.0  # for deliveries in progress at shutdown
ERROR_PAUSE_S = 60.0  # after an unexpected error

log = logging.getLogger("placewire.serve")

MAX_REPORTS = 200  # per transaction
RETRY_S = 1.0  # between attempts while the ledger is unavailable

Pending = tuple[Account, DeliveryReport | None, asyncio.Future[NextStep]]


class RetryPolicy(NamedTuple):
    """When and how often a delivery is retried: by default twelve times in about a day."""

    tries: int = 12
    first_s: float = 5.0
    growth: float = 3.0
    most_s: float = 21_600.0
    jitter: float = 0.2  # fraction of each pause, up or down

    def pause_s(self, attempts: int) -> float | None:
        """The pause after so many attempts; None: give up."""
        if attempts >= self.tries:
            return None
        pause = min(self.most_s, self.first_s * self.growth ** (attempts - 1))
        return pause * random.uniform(1 - self.jitter, 1 + self.jitter)


class Concurrency(NamedTuple):
    """Numbers of concurrent deliveries."""

    quick: int = 64
    slow: int = 64


class QueuedWebhook:
    """The scheduling state of one webhook."""

    def __init__(self) -> None:
        self.delivery: WebhookDelivery | None = None
        self.slow = True  # until it has proved quick
        self.queued = False  # queued or being sent
        self.dirty = False  # something arrived in the meantime
        self.stale = False  # its settings changed in the meantime
        self.timer: asyncio.TimerHandle | None = None

    def disarm(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None


class WebhookDispatcher:
    """Sends what the ledger has for webhooks. Use it in the gateway's event loop."""

    def __init__(
        self,
        ledger: Ledger,
        sender: Sender,
        retries: RetryPolicy,
        concurrency: Concurrency | None = None,
    ) -> None:
        self.ledger = ledger
        self.sender = sender
        self.retries = retries
        self.concurrency = concurrency or Concurrency()
        self.in_progress = 0
        self._entries: dict[Account, QueuedWebhook] = {}
        self._quick: asyncio.Queue[Account] = asyncio.Queue()
        self._slow: asyncio.Queue[Account] = asyncio.Queue()
        self._batcher = DeliveryBatcher(ledger)
        self._readers = ThreadPoolExecutor(READERS, "deliveries")
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def start(self) -> None:
        """Start with deliveries left from the last run."""
        for queue, count in (
            (self._quick, self.concurrency.quick),
            (self._slow, self.concurrency.slow),
        ):
            self._tasks += [asyncio.create_task(self._work(queue)) for _ in range(count)]
        self._tasks.append(asyncio.create_task(self._load_active()))

    async def stop(self) -> None:
        """Give deliveries in progress a moment to finish; the rest is sent after a restart."""
        self._closing = True
        for entry in self._entries.values():
            entry.disarm()
        until = time.monotonic() + GRACE_S
        while self.in_progress and time.monotonic() < until:
            await asyncio.sleep(0.01)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._batcher.stop()
        self.sender.close()
        self._readers.shutdown()

    async def _load_active(self) -> None:
        while True:
            try:
                active = await asyncio.to_thread(self.ledger.deliveries.active)
                break
            except Unavailable:
                await asyncio.sleep(RETRY_S)
        for account, waits in active:
            entry = self._entries.setdefault(account, QueuedWebhook())
            if waits:
                self._queue(account, entry)

    def on_results(self, entries: Iterable[ResultEntry]) -> None:
        """Wake the idle webhooks of new results."""
        if not self._entries:
            return
        for account in {entry.account for entry in entries}:
            entry = self._entries.get(account)
            if entry is not None and entry.timer is None:
                self._queue(account, entry)

    def wake_idle(self) -> None:
        """Wake all idle webhooks, after results that were not listed."""
        for account, entry in self._entries.items():
            if entry.timer is None:
                self._queue(account, entry)

    def refresh(self, account: Account) -> None:
        """Process a webhook that is new or has changed."""
        entry = self._entries.setdefault(account, QueuedWebhook())
        entry.disarm()
        entry.delivery, entry.stale = None, True
        self._queue(account, entry)

    def _queue(self, account: Account, entry: QueuedWebhook) -> None:
        entry.timer = None
        if entry.queued:
            entry.dirty = True
        elif not self._closing:
            entry.queued = True
            (self._slow if entry.slow else self._quick).put_nowait(account)

    async def _work(self, queue: asyncio.Queue[Account]) -> None:
        while True:
            account = await queue.get()
            entry = self._entries.get(account)
            if entry is None or self._closing:
                continue
            self.in_progress += 1
            try:
                step = await self._deliver_one(account, entry)
            except Exception:
                log.exception("webhook of %r", account.subscription)
                step = NextStep(wait_us=time.time_ns() // 1_000 + int(ERROR_PAUSE_S * 1e6))
            finally:
                self.in_progress -= 1
            self._schedule(account, entry, step)

    async def _deliver_one(self, account: Account, entry: QueuedWebhook) -> NextStep:
        """Send one delivery, if there is one; returns the next step."""
        entry.dirty = entry.stale = False
        delivery, entry.delivery = entry.delivery, None
        if delivery is None:
            step = await self._batcher.advance(account, None)
            if step.delivery is None:
                return step
            delivery = step.delivery
        begun = time.monotonic()
        report = await self._send(delivery)
        entry.slow = report.outcome == FAILED or time.monotonic() - begun > SLOW_S
        return await self._batcher.advance(account, report)

    async def _send(self, delivery: WebhookDelivery) -> DeliveryReport:
        entries = await self._read(delivery)
        if not entries:
            return DeliveryReport(delivery, FAILED, "its results are not kept any more")
        outcome, error = await self.sender.send(delivery, encode_delivery(delivery, entries))
        pause_s = self.retries.pause_s(delivery.attempts + 1) if outcome == FAILED else None
        again_us = None
        if pause_s is not None and not delivery.dead:
            again_us = time.time_ns() // 1_000 + int(pause_s * 1e6)
        return DeliveryReport(delivery, outcome, error, again_us)

    async def _read(self, delivery: WebhookDelivery) -> list[ResultEntry]:
        loop = asyncio.get_running_loop()
        wanted = delivery.account, delivery.first - 1, delivery.size
        while True:
            try:
                found = await loop.run_in_executor(self._readers, self.ledger.results_of, *wanted)
            except Unavailable:
                await asyncio.sleep(RETRY_S)
                continue
            return [entry for entry in found if entry.number <= delivery.last]

    def _schedule(self, account: Account, entry: QueuedWebhook, step: NextStep) -> None:
        entry.queued = False
        if not step.known:
            if entry.dirty:
                self._queue(account, entry)
            else:
                self._entries.pop(account, None)
        elif step.delivery is not None:
            entry.delivery = None if entry.stale else step.delivery
            self._queue(account, entry)
        elif step.wait_us is not None and not self._closing and not entry.stale:
            pause_s = max(0.0, step.wait_us / 1e6 - time.time())
            loop = asyncio.get_running_loop()
            entry.timer = loop.call_later(pause_s, self._queue, account, entry)
        elif entry.dirty:
            self._queue(account, entry)


class DeliveryBatcher:
    """Writes reports in one thread; they wait while the ledger is unavailable."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: list[Pending] = []
        self._thread = ThreadPoolExecutor(1, "delivery-batcher")
        self._writing: asyncio.Task[None] | None = None

    async def advance(self, account: Account, report: DeliveryReport | None) -> NextStep:
        """Apply a delivery report, if any; returns the webhook's next step."""
        future: asyncio.Future[NextStep] = asyncio.get_running_loop().create_future()
        self._waiting.append((account, report, future))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await future

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:MAX_REPORTS], self._waiting[MAX_REPORTS:]
                noted = [(account, report) for account, report, _ in group]
                now_us = time.time_ns() // 1_000
                try:
                    advance = self._ledger.deliveries.advance
                    steps = await loop.run_in_executor(self._thread, advance, noted, now_us)
                except Unavailable:
                    self._waiting = group + self._waiting
                    await asyncio.sleep(RETRY_S)
                    continue
                except Exception as error:
                    for _, _, future in group:
                        if not future.done():
                            future.set_exception(error)
                    continue
                for (_, _, future), step in zip(group, steps, strict=True):
                    if not future.done():
                        future.set_result(step)
        finally:
            self._writing = None

    async def stop(self) -> None:
        """Write waiting reports once more; unwritten deliveries are sent again after a restart."""
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=RETRY_S)
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        self._thread.shutdown()
