"""The clerk of webhooks: what many of them have to note goes to the ledger together."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from placewire.serve.errors import Unavailable
from placewire.serve.ledger import Account, Ledger
from placewire.serve.ledger.rows import Report, Step

AT_ONCE = 200  # in one transaction
AGAIN_S = 1.0  # after which a ledger that is away is tried again

Note = tuple[Account, Report | None, asyncio.Future[Step]]


class Clerk:
    """Writes reports in one thread; while the ledger is away they wait, and are not lost."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: list[Note] = []
        self._thread = ThreadPoolExecutor(1, "clerk")
        self._writing: asyncio.Task[None] | None = None

    async def advance(self, account: Account, report: Report | None) -> Step:
        """Settle what was reported of a webhook; gives what it has to do next."""
        future: asyncio.Future[Step] = asyncio.get_running_loop().create_future()
        self._waiting.append((account, report, future))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await future

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                noted = [(account, report) for account, report, _ in group]
                now_us = time.time_ns() // 1_000
                try:
                    advance = self._ledger.deliveries.advance
                    steps = await loop.run_in_executor(self._thread, advance, noted, now_us)
                except Unavailable:
                    self._waiting = group + self._waiting
                    await asyncio.sleep(AGAIN_S)
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
        """Write what waits, once more; what cannot be written is sent again after a restart."""
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=AGAIN_S)
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        self._thread.shutdown()
