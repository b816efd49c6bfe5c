"""Processor time of this process and all that it started: what a busy machine does not change much.

Read from `/proc`, so it is there on Linux only.
"""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# Counted after the name in brackets; times of the process and of children that it waited for.
PARENT, FIRST_TIME, LAST_TIME = 1, 11, 15


def processor_seconds() -> float:
    """Seconds on a processor so far, of this process, its descendants and those that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[PARENT])
        ticks[int(folder.name)] = sum(map(int, fields[FIRST_TIME:LAST_TIME]))
    mine = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(ticks[one] for one in mine if one in ticks) / TICKS


def own_seconds(process: int) -> float:
    """Seconds on a processor so far of one process, without others that it started."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[FIRST_TIME : FIRST_TIME + 2])) / TICKS
