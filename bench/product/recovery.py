"""Kill a worker process or the driver in the middle of a batch on Spark and time the recovery.

Told is the time from the kill to the next commit, beside what a batch takes, and whether the
results are those of an undisturbed run to the byte. A killed run is started again at once, and the
start of Java and of the session is in its time. With `local[2]`, as the command has it, Spark does
not try a failed task again, and the run ends; with `local[2,4]` it does, as on a cluster.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench.clock import say
from bench.figures import Figures, Table
from bench.harness import Setup
from bench.product.soak import describe
from bench.workload import Workload, object_lines, subscribe_events
from placewire import api
from placewire.model.errors import Unusable
from placewire.spark.session import make_session
from placewire.storage.manifest import Manifest

OTHERS = 300  # of each other kind
BATCHES = 10
WORKERS_AFTER, DRIVER_AFTER = (3, 5, 7), (4,)  # commits, after which something is killed
BUSY_S = 0.05  # a worker that uses its core for so long is in the middle of something
TS = "2010-01-01T00:00:00Z"
PATIENCE_S = 120.0
BRIEF, PATIENT = "local[2]", "local[2,4]"
HEADER = (
    "killed", "master", "times", "the run went on", "kill to next commit, s", "at most, s",
    "same results",
)  # fmt: skip


class Ended(NamedTuple):
    """A run with kills: seconds from each to the next commit, and if it went on by itself."""

    recovered_s: list[float]
    went_on: bool
    digest: str


def measure_recovery(setup: Setup, objects: int = 300_000, subscriptions: int = 50_000) -> Figures:
    """A table of what was killed."""
    workload = setup.workload(objects, subscriptions + 2 * OTHERS)
    log = setup.folder / "recovery.jsonl"
    events = write_log(workload, log, subscriptions)
    rows = events // BATCHES + 1
    calm = setup.folder / "recovery-calm"
    began = time.time()
    start(log, calm, rows, BRIEF).join()
    times = read_commits(calm)
    batch_s = float(np.median(np.diff(times[1:])))
    expected = digest_results(calm)
    say(f"undisturbed: first commit after {times[0] - began:.1f} s, a batch {batch_s:.2f} s")
    told: list[tuple[object, ...]] = []
    for what, master, victim, after in (
        ("worker", PATIENT, find_worker, WORKERS_AFTER),
        ("worker", BRIEF, find_worker, DRIVER_AFTER),
        ("driver", BRIEF, lambda process: process, DRIVER_AFTER),
    ):
        folder = setup.folder / f"recovery-{what}-{len(told)}"
        ended = disturb(log, folder, rows, master, victim, after, batch_s / 3)
        median, most = float(np.median(ended.recovered_s)), max(ended.recovered_s)
        same = ended.digest == expected
        told.append((what, master, len(after), ended.went_on, median, most, same))
        say(f"{what} killed on {master}: {median:.2f} s")
        shutil.rmtree(folder)
    yield Table("recovery", HEADER, told)


def write_log(workload: Workload, path: Path, booleans: int) -> int:
    """Subscriptions of three kinds, then the objects; gives how many events there are."""
    encode = msgspec.json.Encoder().encode_lines
    table = workload.subscriptions
    others = table.slice(booleans).to_pylist()
    with path.open("wb") as log:
        log.write(encode(subscribe_events(table.slice(0, booleans).combine_chunks()
                                          .to_batches()[0], TS)))  # fmt: skip
        log.write(encode(other_events(others)))
        for lines in object_lines(workload):
            log.write(lines)
    return table.num_rows + workload.objects.num_rows


def other_events(drawn: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Half of the rows as `nearest` subscriptions, half as `trending` ones."""
    events = []
    for number, row in enumerate(drawn):
        kind = ("nearest", "trending")[number % 2]
        event = {"type": "subscribe", "id": f"{kind}{number}", "ts": TS, **describe(kind, row)}
        events.append(event | ({"window": "P1D", "every": "P1D"} if kind == "trending" else {}))
    return events


def start(log: Path, folder: Path, batch_rows: int, master: str) -> BaseProcess:
    """A replay in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(
        target=replay, args=(log, folder, batch_rows, master)
    )
    process.start()
    return process


def replay(log: Path, folder: Path, batch_rows: int, master: str) -> None:
    """Replay on Spark and note the time of each commit."""
    folder.mkdir(exist_ok=True)
    session = make_session(master, chatter=Path(os.devnull))

    def after(_: Manifest) -> None:
        with (folder / "commits").open("a") as file:
            file.write(f"{time.time()}\n")

    try:
        api.replay(
            log,
            folder / "results.jsonl",
            state=folder / "state",
            workers=2,
            batch_rows=batch_rows,
            session=session,
            after=after,
        )
    except Unusable:
        sys.exit(2)
    finally:
        session.stop()


def disturb(
    log: Path,
    folder: Path,
    batch_rows: int,
    master: str,
    victim: Callable[[int], int | None],
    after: Sequence[int],
    delay_s: float,
) -> Ended:
    """Kill in the batches after some commits, start again if the run ended, and let it finish."""
    process = start(log, folder, batch_rows, master)
    went_on, recovered = True, []
    for commits in after:
        wait(lambda commits=commits: len(read_commits(folder)) >= commits, "some commits")
        time.sleep(delay_s)
        found: list[int] = []

        def find(process: BaseProcess = process, found: list[int] = found) -> bool:
            one = victim(process.pid or 0)
            found.extend([one] if one is not None else [])
            return bool(found)

        wait(find, "a worker")
        before = len(read_commits(folder))
        os.kill(found[0], signal.SIGKILL)
        killed = time.time()
        while len(read_commits(folder)) == before:
            if not process.is_alive():
                went_on = False
                process = start(log, folder, batch_rows, master)
            if time.time() - killed > PATIENCE_S:
                raise TimeoutError(f"no commit {PATIENCE_S} s after the kill")
            time.sleep(0.01)
        recovered.append(read_commits(folder)[before] - killed)
    process.join()
    assert process.exitcode == 0
    return Ended(recovered, went_on, digest_results(folder))


def wait(until: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not until():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not there after {PATIENCE_S} s")
        time.sleep(0.005)


def read_commits(folder: Path) -> list[float]:
    """When batches were committed, by a run and those that went on with it."""
    path = folder / "commits"
    if not path.exists():
        return []
    return [float(line) for line in path.read_text().splitlines() if line]


def digest_results(folder: Path) -> str:
    with (folder / "results.jsonl").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_worker(driver: int) -> int | None:
    """A Python worker of Spark under this driver that is at work, the one that works most."""
    before = count_ticks(driver)
    time.sleep(BUSY_S)
    used = {pid: ticks - before[pid] for pid, ticks in count_ticks(driver).items() if pid in before}
    busiest = max(used, key=lambda pid: used[pid], default=None)
    return busiest if busiest is not None and used[busiest] > 0 else None


def count_ticks(driver: int) -> dict[int, int]:
    """The workers under a driver, and the time that each has used."""
    stats = [stat for path in Path("/proc").glob("[0-9]*/stat") if (stat := read_stat(path))]
    parents = {pid: parent for pid, parent, _ in stats}
    return {
        pid: ticks
        for pid, parent, ticks in stats
        if is_daemon(pid) and is_daemon(parent) and is_under(pid, driver, parents)
    }


def read_stat(path: Path) -> tuple[int, int, int] | None:
    """A process, its parent, and the ticks it has used; None if it is gone."""
    try:
        text = path.read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return int(path.parent.name), int(fields[1]), int(fields[11]) + int(fields[12])


def is_daemon(pid: int) -> bool:
    """Whether it is Spark's daemon for Python, or a worker that this forked."""
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def is_under(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    """Whether a process descends from another."""
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor
