"""Compiled kernels, ready before Spark's processes ask for them, with a line if that takes long."""

from __future__ import annotations

import time
from threading import Timer

from rich.console import Console

from placewire.model.settings import Settings
from placewire.warm import USUAL, warm_kernels

LOADING = "loading kernels"
COMPILING = "loading kernels (the first run compiles them, which takes minutes)"
LOADED_WITHIN_S = 3.0  # what takes longer is no loading


def ready_kernels(plan: str = "shared", run: Settings = USUAL) -> None:
    """Warm the kernels of a run; says so on standard error if they must be compiled."""
    console = Console(stderr=True)
    started = time.monotonic()
    if console.is_terminal:
        with console.status(LOADING) as status:
            warm_patiently(plan, run, Timer(LOADED_WITHIN_S, status.update, [COMPILING]))
    else:
        warm_patiently(plan, run, Timer(LOADED_WITHIN_S, console.print, [COMPILING]))
    seconds = time.monotonic() - started
    if seconds > LOADED_WITHIN_S:
        console.print(f"{COMPILING}: {seconds:.0f} s", highlight=False)


def warm_patiently(plan: str, run: Settings, notice: Timer) -> None:
    """Warm the kernels, with a notice that goes off unless they are ready before."""
    notice.daemon = True
    notice.start()
    try:
        warm_kernels(plan, run)
    finally:
        notice.cancel()
