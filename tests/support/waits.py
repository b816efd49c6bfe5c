"""Wait for a condition, up to a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WAIT_S = 120.0


def until(holds: Callable[[], Any], what: str, wait_s: float = WAIT_S) -> Any:
    """Wait until something holds and return it."""
    end = time.monotonic() + wait_s
    while not (found := holds()):
        assert time.monotonic() < end, f"waited {wait_s:.0f} s in vain until {what}"
        time.sleep(0.02)
    return found
