"""Matching on one core: speed beside DuckDB, growth with subscriptions, hard cases."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.columns import BLOCK_OBJECTS, KEY, probe_of, rows_of
from bench.figures import Figures, LinePlot, Table
from bench.harness import STOP_WORDS, Setup
from bench.peers import duckdb_sql
from bench.workload import Workload
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import match_segment
from placewire.model.expression import COVER_ANY, COVER_ONE
from placewire.model.regions import EVERYWHERE
from placewire.model.subscriptions import COLUMNS, SubscriptionRows
from placewire.segments.segment import Segment
from placewire.text.analyzer import Analyzer


class KernelRun(NamedTuple):
    """One core: objects a second by the matching alone, and with analysing the text."""

    matches: int
    build_s: float
    match_per_s: float
    whole_per_s: float
    candidates: int
    bytes_a_subscription: float


def measure_kernel(
    setup: Setup, objects: int = 262_144, sizes: tuple[int, ...] = (100_000, 1_000_000)
) -> Figures:
    """100 k and 1 M subscriptions, with and without the most frequent words as keywords."""
    rows = []
    for skip in (STOP_WORDS, 0):
        for subscriptions in sizes:
            workload = setup.workload(objects, subscriptions, skip)
            peer = duckdb_sql.run(workload, repeats=2)
            ours = max((run_kernel(workload)[0] for _ in range(2)), key=lambda r: r.whole_per_s)
            assert ours.matches == peer.matches, (ours.matches, peer.matches)
            rows.append(
                (
                    f"{subscriptions:,}, {'no stop words' if skip else 'any keywords'}",
                    ours.matches / objects,
                    ours.match_per_s,
                    ours.whole_per_s,
                    peer.objects_per_s,
                    ours.match_per_s / peer.objects_per_s,
                    ours.whole_per_s / peer.objects_per_s,
                )
            )
    yield Table(
        "kernel",
        (
            "subscriptions",
            "matches an object",
            "matching, objects/s",
            "analysing and matching, objects/s",
            "DuckDB, objects/s",
            "ratio of matching",
            "ratio of both",
        ),
        rows,
    )


def run_kernel(workload: Workload) -> tuple[KernelRun, Segment]:
    """Match the workload's objects in blocks on one core."""
    analyzer = Analyzer(*KEY)
    rows = rows_of(workload, analyzer)
    started = time.perf_counter()
    segment = make_boolean_segment(rows)
    build_s = time.perf_counter() - started
    blocks = [
        workload.objects.slice(at, BLOCK_OBJECTS).combine_chunks()
        for at in range(0, workload.objects.num_rows, BLOCK_OBJECTS)
    ]
    match_segment(probe_of(blocks[0].slice(0, 100), analyzer), segment)
    started = time.perf_counter()
    probes = [probe_of(block, analyzer) for block in blocks]
    probe_s = time.perf_counter() - started
    started = time.perf_counter()
    matches = candidates = 0
    for probe in probes:
        found = match_segment(probe, segment)
        matches += found.object.size
        candidates += found.candidates
    match_s = time.perf_counter() - started
    n = workload.objects.num_rows
    columns = [getattr(rows, name) for name in COLUMNS]
    size = sum(array.nbytes for array in (*columns, *segment.index))
    size += segment.directory_hash.nbytes + segment.directory_row.nbytes - rows.id_hash.nbytes
    measure_kernel = KernelRun(
        matches, build_s, n / match_s, n / (probe_s + match_s), candidates, size / rows.total
    )
    return measure_kernel, segment


GROWTH_SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 5_000_000)


def measure_growth(
    setup: Setup, sizes: tuple[int, ...] = GROWTH_SIZES, objects: int = 131_072
) -> Figures:
    """Objects/s and matches/s by the number of subscriptions."""
    rows = []
    for subscriptions in sizes:
        workload = setup.workload(objects, subscriptions)
        best = max((run_kernel(workload)[0] for _ in range(2)), key=lambda r: r.match_per_s)
        rows.append(
            (
                subscriptions,
                best.match_per_s,
                best.matches / objects,
                best.match_per_s * best.matches / objects,
                best.candidates / max(best.matches, 1),
                best.build_s,
                best.bytes_a_subscription,
            )
        )
    yield Table(
        "growth",
        (
            "subscriptions",
            "matching, objects/s",
            "matches an object",
            "matches/s",
            "candidates a match",
            "build, s",
            "bytes a subscription",
        ),
        rows,
    )
    yield LinePlot(
        "growth",
        {
            "objects/s, one core": [(r[0], r[1]) for r in rows],
            "matches/s, one core": [(r[0], r[3]) for r in rows],
        },
        x_label="subscriptions",
        y_label="a second",
    )


WORLD = np.array([-180.0, -90.0, 180.0, 90.0])


def world_sized(rows: SubscriptionRows) -> SubscriptionRows:
    """Every region is nearly the whole world."""
    jitter = np.random.default_rng(1).random(rows.box.shape) * np.array([1, 1, -1, -1])
    return rows._replace(box=WORLD + jitter)


def absent(rows: SubscriptionRows) -> SubscriptionRows:
    """No region at all."""
    return rows._replace(
        region_kind=np.full(rows.total, EVERYWHERE, np.uint8), box=np.tile(WORLD, (rows.total, 1))
    )


def negative(rows: SubscriptionRows) -> SubscriptionRows:
    """None of the words: every object in the region is a candidate."""
    following = np.arange(rows.literal_term.size) - np.repeat(
        rows.literal_offsets[:-1], np.diff(rows.literal_offsets)
    )
    last = np.zeros(rows.literal_term.size, np.bool_)
    last[rows.literal_offsets[1:] - 1] = True
    return rows._replace(
        cover_mode=np.full(rows.total, COVER_ANY, np.uint8),
        literal_cover=np.zeros(rows.literal_term.size, np.uint8),
        literal_true=np.full(rows.literal_term.size, -2, np.int16),
        literal_false=np.where(last, -1, following + 1).astype(np.int16),
    )


def one_word(rows: SubscriptionRows) -> SubscriptionRows:
    """All subscriptions ask for the most frequent keyword alone."""
    terms, counts = np.unique(rows.literal_term, return_counts=True)
    n = rows.total
    return rows._replace(
        cover_mode=np.full(n, COVER_ONE, np.uint8),
        literal_offsets=np.arange(n + 1, dtype=np.int64),
        literal_term=np.full(n, terms[counts.argmax()]),
        literal_true=np.full(n, -1, np.int16),
        literal_false=np.full(n, -2, np.int16),
        literal_cover=np.ones(n, np.uint8),
    )


def hot_cell(rows: SubscriptionRows) -> SubscriptionRows:
    """Every region is moved to one city."""
    centre = np.median(rows.box, axis=0)
    width = (rows.box[:, 2:] - rows.box[:, :2]) / 2
    middle = (centre[:2] + centre[2:]) / 2
    return rows._replace(box=np.concatenate([middle - width, middle + width], axis=1))


CASES: tuple[tuple[str, Callable[[SubscriptionRows], SubscriptionRows], int, int], ...] = (
    ("as drawn", lambda rows: rows, 1_000_000, 65_536),
    ("world-sized regions", world_sized, 100_000, 8_192),
    ("absent regions", absent, 100_000, 8_192),
    ("purely negative expressions", negative, 100_000, 8_192),
    ("one keyword shared by a million", one_word, 1_000_000, 65_536),
    ("a hot cell", hot_cell, 1_000_000, 65_536),
)


def measure_hard_cases(setup: Setup, scale: float = 1.0) -> Figures:
    """What an index by place and word helps least with; `scale` multiplies all sizes."""
    analyzer = Analyzer(*KEY)
    rows = []
    for name, change, all_subscriptions, all_objects in CASES:
        subscriptions, objects = int(scale * all_subscriptions), int(scale * all_objects)
        workload = setup.workload(objects, subscriptions)
        segment = make_boolean_segment(change(rows_of(workload, analyzer)))
        probe = probe_of(workload.objects.combine_chunks(), analyzer)
        match_segment(probe, segment)
        started = time.perf_counter()
        found = match_segment(probe, segment)
        seconds = time.perf_counter() - started
        matches = int(found.object.size)
        rows.append(
            (
                name,
                subscriptions,
                objects / seconds,
                matches / objects,
                matches / seconds,
                found.candidates / max(matches, 1),
                segment.index.postings.shape[0] / subscriptions,
            )
        )
    yield Table(
        "hard",
        (
            "case",
            "subscriptions",
            "objects/s",
            "matches an object",
            "matches/s",
            "candidates a match",
            "postings a subscription",
        ),
        rows,
    )
