"""Soak test: memory and state of a process that retains ten minutes and runs for hours.

One process replays a log of four hours and more of event time. Subscriptions of three kinds stand
from the start, a tenth of them is replaced in every retention, and queries come all the time. After
each batch its memory and the files of its state are noted. What has been delivered, `sink/`, is the
output itself and grows with it, so it is told apart.
"""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.workload import Workload
from placewire import api
from placewire.model.times import format_timestamp
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest

RETENTION_S = 600
RETENTIONS = 48
STANDING = 300  # subscriptions of each kind
REPLACED = 10  # one of so many in each retention
OBJECTS_A_QUERY = 1_000
BATCHES_A_RETENTION = 4
BEGIN_US = 1_767_225_600_000_000
KINDS = ("boolean", "nearest", "trending")
MB = 1e6
HEADER = (
    "tenth of the run", "retentions", "memory of its own, MB", "at most, MB", "mapped files, MB",
    "files, MB", "at most, MB", "files", "manifests, MB", "delivered, MB", "s a batch",
)  # fmt: skip

Event = dict[str, Any]


class Noted(NamedTuple):
    """What there was after a batch; sizes in bytes."""

    now_us: int
    anonymous: int
    mapped: int
    files: int
    count: int
    manifests: int
    sink: int
    seconds: float


def measure_soak(setup: Setup, objects: int = 1_200_000) -> Figures:
    """A table by tenths of the run, and a plot."""
    log = setup.folder / "endless.jsonl"
    workload = setup.workload(objects, 2 * len(KINDS) * STANDING)
    write_log(workload, log)
    events = objects + objects // OBJECTS_A_QUERY
    batch_rows = events // (RETENTIONS * BATCHES_A_RETENTION)
    noted = replay_apart(log, setup.folder / "endless", batch_rows)
    rows = tell_tenths(noted)
    yield Table("endless", HEADER, rows)
    hours = [(one.now_us - BEGIN_US) / 1e6 / RETENTION_S for one in noted]
    series = {
        "memory of its own": [one.anonymous for one in noted],
        "mapped files": [one.mapped for one in noted],
        "files of the state": [one.files for one in noted],
    }
    yield LinePlot(
        "endless",
        {
            name: [(at, max(size, 1) / MB) for at, size in zip(hours, sizes, strict=True)]
            for name, sizes in series.items()
        },
        x_label="retentions",
        y_label="MB",
        x_scale="linear",
    )
    log.unlink()


def write_log(workload: Workload, path: Path) -> None:
    """Objects evenly over the whole time, subscriptions and queries between them."""
    encoder = msgspec.json.Encoder()
    total = workload.objects.num_rows
    changes = make_changes(workload)
    step_us = RETENTIONS * RETENTION_S * 1_000_000 // total
    asked = make_queries(workload)
    at = 0
    with path.open("wb") as log:
        for batch in workload.objects.to_batches(max_chunksize=10_000):
            lines: list[Event] = []
            for row in batch.to_pylist():
                ts = format_timestamp(BEGIN_US + at * step_us)
                while changes and changes[0][0] * total <= at:
                    lines.append({"ts": ts, **changes.pop(0)[1]})
                lines.append({"type": "object", **row, "ts": ts})
                at += 1
                if at % OBJECTS_A_QUERY == 0:
                    lines.append({"ts": ts, **next(asked)})
            log.write(encoder.encode_lines(lines))


def make_changes(workload: Workload) -> list[tuple[float, Event]]:
    """Subscriptions by the place in the stream, 0 to 1, at which they come.

    Those that come later take the ids of earlier ones, whom they replace.
    """
    drawn = workload.subscriptions.to_pylist()
    changes = [
        (0.0, subscribe(kind, number, drawn[place * STANDING + number]))
        for place, kind in enumerate(KINDS)
        for number in range(STANDING)
    ]
    random = np.random.default_rng(5)
    replaced = STANDING // REPLACED
    for retention in range(1, RETENTIONS):
        for kind in KINDS:
            for number in random.choice(STANDING, replaced, replace=False).tolist():
                row = drawn[int(random.integers(len(drawn)))]
                changes.append((retention / RETENTIONS, subscribe(kind, number, row)))
    return changes


def subscribe(kind: str, number: int, row: Event) -> Event:
    """A subscription of a kind, by a drawn row."""
    return {"type": "subscribe", "id": f"{kind}{number}", **describe(kind, row)} | (
        {"window": f"PT{RETENTION_S}S", "every": "PT1M"} if kind == "trending" else {}
    )


def describe(kind: str, row: Event) -> Event:
    """What subscriptions and queries of a kind have in common."""
    box = [row[name] for name in ("west", "south", "east", "north")]
    if kind == "boolean":
        return {"kind": kind, "region": {"box": box}, "where": " OR ".join(row["keywords"])}
    if kind == "trending":
        return {"kind": kind, "region": {"box": box}, "k": 10}
    west, south, east, north = box
    middle = {"lon": round((west + east) / 2, 6), "lat": round((south + north) / 2, 6)}
    return {"kind": kind, **middle, "keywords": row["keywords"], "k": 10}


def make_queries(workload: Workload) -> Iterator[Event]:
    """Queries without end, the kinds in turn."""
    drawn = workload.subscriptions.to_pylist()
    number = 0
    while True:
        described = describe(KINDS[number % len(KINDS)], drawn[number % len(drawn)])
        yield {"type": "query", "id": f"q{number}", "last": f"PT{RETENTION_S}S", **described}
        number += 1


def replay_apart(log: Path, folder: Path, batch_rows: int) -> list[Noted]:
    """Replay in a separate process, so that its memory is measured alone."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(replay_noting, (log, folder, batch_rows))


def replay_noting(log: Path, folder: Path, batch_rows: int) -> list[Noted]:
    """Replay, and note what there is after each batch."""
    folder.mkdir(parents=True)
    noted: list[Noted] = []
    api.replay(
        log,
        folder / "results.jsonl",
        state=folder / "state",
        settings={"retention": f"PT{RETENTION_S}S", "window": {"count": 10_000}},
        batch_rows=batch_rows,
        after=partial(note, noted, StateDir(folder / "state"), time.process_time),
    )
    shutil.rmtree(folder)
    return noted


def note(noted: list[Noted], state: StateDir, clock: Any, manifest: Manifest) -> None:
    """What there is now."""
    files = sizes_in(state.files)
    memory = read_memory(Path("/proc/self/status").read_text())
    noted.append(
        Noted(
            manifest.now_us or 0,
            memory["RssAnon"],
            memory["RssFile"],
            sum(files),
            len(files),
            sum(sizes_in(state.manifests)),
            sum(sizes_in(state.sink)),
            clock(),
        )
    )


def read_memory(status: str) -> dict[str, int]:
    """The sizes in a process's status, in bytes."""
    found = {}
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if value.strip().endswith(" kB"):
            found[name] = 1024 * int(value.split()[0])
    return found


def sizes_in(folder: Path) -> list[int]:
    """The sizes of a folder's files; one may go while we look."""
    sizes = []
    for path in folder.iterdir():
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return sizes


def tell_tenths(noted: Sequence[Noted]) -> list[tuple[object, ...]]:
    """Averages and maxima of each tenth of the batches."""
    edges = np.linspace(0, len(noted), 11).astype(int)
    rows: list[tuple[object, ...]] = []
    for tenth in range(10):
        some = noted[edges[tenth] : edges[tenth + 1]]
        if not some:
            continue
        last = noted[edges[tenth] - 1].seconds if edges[tenth] else 0.0
        rows.append(
            (
                tenth + 1,
                (some[-1].now_us - BEGIN_US) / 1e6 / RETENTION_S,
                mean_mb(one.anonymous for one in some),
                max(one.anonymous for one in some) / MB,
                mean_mb(one.mapped for one in some),
                mean_mb(one.files for one in some),
                max(one.files for one in some) / MB,
                float(np.mean([one.count for one in some])),
                some[-1].manifests / MB,
                some[-1].sink / MB,
                (some[-1].seconds - last) / len(some),
            )
        )
    return rows


def mean_mb(sizes: Iterable[int]) -> float:
    return float(np.mean(list(sizes))) / MB
