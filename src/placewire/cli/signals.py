"""Stop a command from outside: by a signal or after a time."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequested(BaseException):
    """A signal arrived while a run was starting, when no batch has to be finished."""


class Stopper:
    """Stop a run between two batches, or its start at once, on a signal or after a time.

    Sets `asked` on the first of them. Later signals do nothing.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.starting = True
        self._former: dict[int, Any] = {}
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        self._former = self._install()
        return self

    def begin(self, seconds: float | None) -> None:
        """Note that batches run from now on, and stop after so many seconds if given."""
        self.starting = False
        self._install()  # Spark has replaced the handlers
        if seconds is not None:
            self._timer = set_after(self.asked, seconds)

    def _install(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, self._handle) for number in SIGNALS}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = not self.asked.is_set()
        self.asked.set()
        if first and self.starting:
            raise StopRequested

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for number, handler in self._former.items():
            signal.signal(number, handler)


def set_on_signals(event: threading.Event) -> None:
    """Set an event when SIGINT or SIGTERM arrives."""
    for number in SIGNALS:
        signal.signal(number, lambda *_: event.set())


def set_after(event: threading.Event, seconds: float) -> threading.Timer:
    """Set an event after so many seconds."""
    timer = threading.Timer(seconds, event.set)
    timer.daemon = True
    timer.start()
    return timer
