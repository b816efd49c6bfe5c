"""`placewire generate`: an hour of city life as an event log, to try things on."""

from __future__ import annotations

import time
from pathlib import Path

from placewire.cli.outcome import Outcome
from placewire.cli.progress import ProgressLine
from placewire.demo import CityLife, blocks, count_events, write_log
from placewire.model.errors import Unusable


def run_generate(life: CityLife, log: Path) -> Outcome:
    """Write the log and say what came of it; raises Unusable."""
    next(blocks(life, 1), None)  # refuses a bad description while an old file is still whole
    started = time.monotonic()
    with ProgressLine("generate", count_events(life)) as progress:

        def show(done: int, total: int) -> None:
            progress.update(done, f"{done} of {total} events")

        try:
            events = write_log(life, log, show)
            size = log.stat().st_size
        except OSError as error:
            raise Unusable(f"{log}: cannot be written: {error.strerror}") from None
    seconds = time.monotonic() - started
    facts = {"events": events, "bytes": size, "seconds": round(seconds, 3)}
    return Outcome(f"events {events}, bytes {size}, {seconds:.1f} s", facts)
