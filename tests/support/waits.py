"""Wait for a condition, up to a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WAIT_S = 120.0  # long enough for a loaded machine; a test that passes rarely waits a second
POLL_S = 0.01


def until(holds: Callable[[], Any], what: str, wait_s: float = WAIT_S) -> Any:
    """Poll a condition until its result is true and return it; fail after `wait_s` seconds."""
    end = time.monotonic() + wait_s
    while not (found := holds()):
        assert time.monotonic() < end, f"waited {wait_s:.0f} s in vain until {what}"
        time.sleep(POLL_S)
    return found
