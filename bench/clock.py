"""Clocks and progress: processor time of processes and threads, memory, and lines on stderr."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the command: the parent, and the times of the process and of the
# children it has waited for.
PARENT, FIRST_TIME, LAST_TIME = 1, 11, 15


def say(line: str) -> None:
    """Print a line of progress with the time and the peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"[{time.strftime('%H:%M:%S')}, {peak:.1f} GB] {line}", file=sys.stderr, flush=True)


def processor_seconds() -> float:
    """Processor time of this process, its descendants and those that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = read_stat(folder)
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[PARENT])
        ticks[int(folder.name)] = sum(map(int, fields[FIRST_TIME:LAST_TIME]))
    mine = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(ticks[one] for one in mine if one in ticks) / TICKS


def own_seconds(process: int) -> float:
    """Processor time of one process, without its children."""
    fields = read_stat(Path(f"/proc/{process}"))
    return sum(map(int, fields[FIRST_TIME : FIRST_TIME + 2])) / TICKS


def read_stat(folder: Path) -> list[str]:
    """The fields of a process's `stat` after its command; raises OSError if it has ended."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def free_bytes() -> int:
    """Memory that a process may still allocate."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return 1 << 62


def best_of(work: Callable[[], object], repeats: int = 3) -> float:
    """The least seconds of a few runs, by the processor time of this thread."""
    seconds = []
    for _ in range(repeats):
        started = time.thread_time()
        work()
        seconds.append(time.thread_time() - started)
    return min(seconds)


@contextmanager
def processor_time() -> Iterator[None]:
    """Let the engine time its steps by this thread's processor time: the machine is shared."""
    from placewire.batch import dispatch as dispatcher
    from placewire.batch import match as pieces

    thread = SimpleNamespace(perf_counter=time.thread_time)
    with patch.object(dispatcher, "time", thread), patch.object(pieces, "time", thread):
        yield
