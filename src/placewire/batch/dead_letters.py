"""Store dead letters: events that a block's validation or the clock rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.clock import BlockClock, LeapEntry
from placewire.ingest.decode import DeadLetter
from placewire.model.subscriptions import lengths_to_offsets


def dead_letter_arrays(letters: Sequence[DeadLetter]) -> dict[str, NDArray[Any]]:
    """Return dead letters as arrays of a file."""
    errors = [letter.error.encode("utf-8", "replace") for letter in letters]
    lines = [letter.line for letter in letters]
    return {
        "dead.event": np.array([letter.event for letter in letters], np.int64),
        "dead.error_offsets": lengths_to_offsets(np.array([len(e) for e in errors], np.int64)),
        "dead.error_bytes": np.frombuffer(b"".join(errors), np.uint8),
        "dead.line_offsets": lengths_to_offsets(np.array([len(x) for x in lines], np.int64)),
        "dead.line_bytes": np.frombuffer(b"".join(lines), np.uint8),
    }


def reject_leaps(
    blocks: Sequence[tuple[int, Sequence[LeapEntry]]],
    clocks: Sequence[BlockClock],
    max_ahead_us: int,
) -> list[DeadLetter]:
    """Return the events that the clock rejected, from the first seq and the leaps of each block."""
    letters = []
    for (first_seq, leaps), clock in zip(blocks, clocks, strict=True):
        ahead = dict(zip(clock.rejected_event.tolist(), clock.rejected_ahead_us, strict=True))
        for leap in leaps:
            if leap.event in ahead:
                error = (
                    f"ts must be at most max_ahead ({max_ahead_us // 1_000_000} s) past the latest"
                    f" ts, got {ahead[leap.event] // 1_000_000} s past it"
                )
                letters.append(DeadLetter(first_seq + leap.event, error, leap.line))
    return letters
