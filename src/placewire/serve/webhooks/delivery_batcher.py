"""Batch webhook delivery reports into one ledger transaction."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from placewire.serve.errors import Unavailable
from placewire.serve.ledger import Account, Ledger
from placewire.serve.ledger.rows import DeliveryReport, NextStep

MAX_REPORTS = 200  # per transaction
RETRY_S = 1.0  # between attempts while the ledger is unavailable

Pending = tuple[Account, DeliveryReport | None, asyncio.Future[NextStep]]


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
