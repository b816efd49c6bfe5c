"""Latency of snapshot queries while another process commits batches to the same state.

The first half of the log is replayed, and queries are asked of the idle state. Then another process
replays the second half, and the same queries are asked again and again, with and without going to
the latest commit before each; then once more when it is done. Latency is by the clock on the wall:
waiting for a core is a part of it. Processor time stands beside it.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.clock import say
from bench.figures import Figures, Table
from bench.harness import Setup
from bench.papers.sstd.data import DAYS, retain
from bench.papers.sstd.queries import (
    BOOLEAN,
    NEAREST,
    TRENDING,
    Query,
    Setting,
    draw_sources,
    make_queries,
)
from placewire import api
from placewire.queries.snapshot import Snapshot

KINDS = (BOOLEAN, NEAREST, TRENDING)
HEADER = (
    "when", "kind", "queries", "p50, ms", "p95, ms", "p50 on its core, ms", "p95 on its core, ms",
    "refresh p50, ms", "refresh p95, ms", "commits seen", "p50 / idle", "p95 / idle",
)  # fmt: skip


class Timed(NamedTuple):
    """Milliseconds of each query by the wall and on its core, and of each refresh."""

    wall: list[float]
    core: list[float]
    refresh: list[float]
    commits: set[int]


def measure_during_replay(
    setup: Setup, objects: int = 1_000_000, queries: int = 100, batch_rows: int = 10_000
) -> Figures:
    """A table of the four situations, kind by kind; so many queries of each."""
    retained = retain(setup, objects)
    sources = draw_sources(retained, queries)
    made = {kind: make_queries(retained, sources, Setting(kind)) for kind in KINDS}
    folder = setup.folder / "snapshot-stream"
    folder.mkdir()
    log, state = folder / "log.jsonl", folder / "state"
    with retained.log.open("rb") as whole:
        log.write_bytes(b"".join(islice(whole, objects // 2)))
        replay(log, state, 20 * batch_rows)
        rest = whole.read()
    with log.open("ab") as grown:
        grown.write(rest)
    with api.open_snapshot(state) as snapshot:
        ask_all(snapshot, made)
        timed = {"idle, half of the objects": ask_all(snapshot, made)}
        timed |= ask_beside(snapshot, made, log, state, batch_rows)
        snapshot.refresh()
        timed["idle, all objects"] = ask_all(snapshot, made)
    idle = timed["idle, half of the objects"]
    yield Table(
        "snapshot-stream",
        HEADER,
        [
            row_of(when, kind, of_kind, idle[kind])
            for kind in KINDS
            for when, of_kind in ((when, of[kind]) for when, of in timed.items())
        ],
    )


def replay(log: Path, state: Path, batch_rows: int) -> None:
    settings = {"retention": f"P{DAYS}D"}
    results = state.parent / "results.jsonl"
    api.replay(log, results, state=state, settings=settings, batch_rows=batch_rows)


def ask_beside(
    snapshot: Snapshot,
    queries: dict[str, list[Query]],
    log: Path,
    state: Path,
    batch_rows: int,
) -> dict[str, dict[str, Timed]]:
    """Ask while another process replays the rest of the log: rounds with and without refresh."""
    process = multiprocessing.get_context("spawn").Process(
        target=replay, args=(log, state, batch_rows)
    )
    assert snapshot.manifest is not None
    begun = snapshot.manifest.batch
    process.start()
    while process.is_alive() and latest(snapshot) <= begun + 1:
        time.sleep(0.05)
    say("the replay has begun")
    names = {"in a replay": False, "in a replay, refreshed": True}
    timed: dict[str, dict[str, Timed]] = {name: {} for name in names}
    rounds = 0
    while process.is_alive():
        for name, fresh in names.items():
            found = ask_all(snapshot, queries, snapshot.refresh if fresh else None)
            if process.is_alive():  # a round that outlasts the replay does not count
                timed[name] = {kind: join(timed[name].get(kind), found[kind]) for kind in KINDS}
        rounds += 1
    process.join()
    assert process.exitcode == 0
    say(f"{rounds} rounds beside the replay")
    return {name: of for name, of in timed.items() if of}


def latest(snapshot: Snapshot) -> int:
    snapshot.refresh()
    assert snapshot.manifest is not None
    return snapshot.manifest.batch


def ask_all(
    snapshot: Snapshot,
    queries: dict[str, list[Query]],
    before: Callable[[], None] | None = None,
) -> dict[str, Timed]:
    """Every query once, the kinds in turn."""
    timed = {kind: Timed([], [], [], set()) for kind in queries}
    for turn in zip(*queries.values(), strict=True):
        for query in turn:
            ask(snapshot, query, before, timed[query["kind"]])
    return timed


def ask(
    snapshot: Snapshot, query: Query, before: Callable[[], None] | None, timed: Timed
) -> dict[str, Any]:
    if before is not None:
        started = time.perf_counter()
        before()
        timed.refresh.append(1e3 * (time.perf_counter() - started))
        timed.commits.add(snapshot.manifest.batch if snapshot.manifest is not None else -1)
    wall, core = time.perf_counter(), time.thread_time()
    answer = snapshot.answer(query)
    timed.core.append(1e3 * (time.thread_time() - core))
    timed.wall.append(1e3 * (time.perf_counter() - wall))
    return answer


def join(known: Timed | None, more: Timed) -> Timed:
    """Timings of two rounds."""
    if known is None:
        return more
    lists = [a + b for a, b in zip(known[:3], more[:3], strict=True)]
    return Timed._make([*lists, known.commits | more.commits])


def row_of(when: str, kind: str, timed: Timed, idle: Timed) -> tuple[object, ...]:
    wall, core, usual = percentiles(timed.wall), percentiles(timed.core), percentiles(idle.wall)
    refresh = percentiles(timed.refresh) if timed.refresh else ("", "")
    commits = len(timed.commits) or ""
    ratios = (wall[0] / usual[0], wall[1] / usual[1])
    return (when, kind, len(timed.wall), *wall, *core, *refresh, commits, *ratios)


def percentiles(ms: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile."""
    p50, p95 = np.percentile(ms, (50, 95)).tolist()
    return p50, p95
