"""What ends a run from outside: a signal, or the clock."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopAsked(BaseException):
    """A signal came before the run had begun, when there is nothing to wait for."""


class Stopper:
    """Lets signals, or the clock, end a run between two batches, and its start at once.

    `asked` is set when one of them has said so. Signals that come after the first do nothing.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.starting = True
        self._former: dict[int, Any] = {}
        self._clock: threading.Timer | None = None

    def __enter__(self) -> Self:
        self._former = self._listen()
        return self

    def begin(self, seconds: float | None) -> None:
        """From now on there are batches; the run ends after so many seconds."""
        self.starting = False
        self._listen()  # Spark has put a handler of its own in the place of ours
        if seconds is not None:
            self._clock = threading.Timer(seconds, self.asked.set)
            self._clock.daemon = True
            self._clock.start()

    def _listen(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, self._hear) for number in SIGNALS}

    def _hear(self, number: int, frame: FrameType | None) -> None:
        first = not self.asked.is_set()
        self.asked.set()
        if first and self.starting:
            raise StopAsked

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._clock is not None:
            self._clock.cancel()
        for number, handler in self._former.items():
            signal.signal(number, handler)
