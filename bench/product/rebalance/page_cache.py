"""Cost of a moved subscription at its new worker, which has not read its pages yet.

A worker's gains of a change of plan are fetched, and objects that fall there are matched, in three
states of the segment's file: mapped and read before, in memory but not mapped by this process, and
on disk. Times are of the wall, since waiting for a disk is the thing itself; least of some rounds.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.clock import say
from bench.columns import KEY, probe_of, rows_of
from bench.figures import Figures, Table
from bench.harness import Setup
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import make_probe, match_all
from placewire.plans.boolean.methods import METHODS
from placewire.plans.cost.measures import find_holders, post_rows
from placewire.plans.cost.model import calibrate
from placewire.plans.rebalance.change import gained_ranges, touch
from placewire.plans.route.leaf_route import make_tables
from placewire.plans.sample.sample import make_sample
from placewire.segments.segment import Segment, open_segment, write_segment
from placewire.storage.arrays import forget_deleted
from placewire.text.analyzer import Analyzer

WORKERS = 8
BEFORE, AFTER = "kdt", "qt"
ROUNDS = 3
STATES = ("mapped", "in memory", "on disk")
NO_DEAD = np.empty(0, np.uint64)


class Gain(NamedTuple):
    """What one worker gets: ranges of codes, how many subscriptions, and objects there."""

    start: np.ndarray
    end: np.ndarray
    held: int
    probe: Probe


class Took(NamedTuple):
    """Seconds and faults of pages that had to be read from disk."""

    seconds: float
    faults: int


def measure_cold_pages(
    setup: Setup, subscriptions: int = 500_000, objects: int = 200_000, batch: int = 20_000
) -> Figures:
    """A table: nanoseconds a moved subscription, of fetching and of matching without it."""
    workload = setup.workload(objects, subscriptions)
    analyzer = Analyzer(*KEY)
    rows = rows_of(workload, analyzer)
    whole = probe_of(workload.objects.combine_chunks(), analyzer)
    cost = calibrate().load
    sample = make_sample(whole.codes, whole.term_offsets, whole.terms, rows, cost.posting_work)
    plans = [METHODS[name](sample, WORKERS, cost) for name in (BEFORE, AFTER)]
    tables = [make_tables(leaves) for leaves in plans]
    posted = post_rows(rows)
    pairs = []
    for leaves, table in zip(plans, tables, strict=True):
        offsets, held = find_holders(leaves, posted, tables=table)
        pairs.append([held[a:b] for a, b in pairwise(offsets.tolist())])
    gains = []
    for worker in range(WORKERS):
        start, end = gained_ranges(tables[0], tables[1], worker, WORKERS)
        new = int(np.setdiff1d(pairs[1][worker], pairs[0][worker]).size)
        if start.size and new:
            gains.append(Gain(start, end, new, take_there(whole, start, end, batch)))
    file = setup.folder / "standing.plw"
    write_segment(file, make_boolean_segment(rows))
    size = file.stat().st_size / rows.total
    say(f"{rows.total:,} subscriptions, {size:.0f} bytes each")
    yield Table(
        "drift-cold",
        ("pages", "moved", "fetched postings", "fetching, ns each", "read from disk, pages",
         "matching, ms a batch", "matching after fetching, ms", "matching, more ns each",
         "after fetching, more ns each"),
        list(tell_states(file, gains)),
    )  # fmt: skip


def tell_states(file: Path, gains: list[Gain]) -> list[tuple[object, ...]]:
    """A row for each state of the file's pages, over all workers that get something."""
    moved = sum(gain.held for gain in gains)
    rows: list[tuple[object, ...]] = []
    base = 0.0
    for state in STATES:
        fetched, alone, after = ([] for _ in range(3))
        faults = postings = 0
        for gain in gains:
            alone.append(min(match_in(file, gain, state, False)[1] for _ in range(ROUNDS)))
            both = [match_in(file, gain, state, True) for _ in range(ROUNDS)]
            fetched.append(min(took.seconds for took, _, _ in both))
            after.append(min(second for _, second, _ in both))
            faults += max(took.faults for took, _, _ in both)
            postings += both[0][2]
        if state == "mapped":
            base = sum(alone)
        rows.append(
            (state, moved, postings, 1e9 * sum(fetched) / moved, faults,
             1e3 * sum(alone) / len(gains), 1e3 * sum(after) / len(gains),
             1e9 * (sum(alone) - base) / moved, 1e9 * (sum(after) - base) / moved)
        )  # fmt: skip
    return rows


def match_in(file: Path, gain: Gain, state: str, fetches: bool) -> tuple[Took, float, int]:
    """Fetch what a worker gets, if wanted, and match its objects, in one state of the pages."""
    if state == "on disk":
        drop_pages(file)
    segment = open_again(file)
    if state == "mapped":
        touch(gain.start, gain.end, [segment])
        match_all(gain.probe, [(segment, NO_DEAD)])
    took, postings = Took(0.0, 0), 0
    if fetches:
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        started = time.perf_counter()
        postings = touch(gain.start, gain.end, [segment])
        took = Took(
            time.perf_counter() - started,
            resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults,
        )
    started = time.perf_counter()
    match_all(gain.probe, [(segment, NO_DEAD)])
    seconds = time.perf_counter() - started
    del segment
    gc.collect()
    return took, seconds, postings


def open_again(file: Path) -> Segment:
    """Map a segment once more: files are remembered by name."""
    name = file.with_name(f"again-{time.monotonic_ns()}.plw")
    os.link(file, name)
    segment = open_segment(name)
    name.unlink()
    forget_deleted()
    return segment


def drop_pages(file: Path) -> None:
    """Let the system forget the pages of a file that no process maps."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def take_there(whole: Probe, start: np.ndarray, end: np.ndarray, most: int) -> Probe:
    """A batch of the objects that lie in ranges of codes."""
    at = np.searchsorted(start, whole.codes.astype(np.uint64), "right") - 1
    there = np.flatnonzero((at >= 0) & (whole.codes < end[np.maximum(at, 0)]))
    there = there[:: max(1, there.size // most)][:most]
    lengths = np.diff(whole.term_offsets)[there]
    offsets = np.append(0, np.cumsum(lengths))
    first = np.repeat(whole.term_offsets[there] - offsets[:-1], lengths)
    terms = whole.terms[first + np.arange(offsets[-1])]
    return make_probe(
        whole.codes[there], whole.lon[there], whole.lat[there], whole.now_us[there], offsets, terms
    )
