"""Compare what each adjuster decides on the same loads, and measure the cost of counting them."""

from __future__ import annotations

import contextlib
import gc
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from bench.clock import say
from bench.figures import Figures, Table
from bench.harness import Setup
from bench.product.rebalance.drift import NEVER, PLANS, WORKERS, play
from bench.product.rebalance.logs import Size, write_drift
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import run_blocks
from placewire.ingest.log import BlockRef, batch_end, identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.plans.allocation import imbalance, sum_loads
from placewire.plans.cost.model import LoadModel
from placewire.plans.cost.tornado import fit_grid
from placewire.plans.leaves import Leaves
from placewire.plans.messages import BatchContext, Ran
from placewire.plans.planners import Planners
from placewire.plans.rebalance.adjustment import Adjustment, PartLoads, cells_of
from placewire.plans.rebalance.ps2 import GRID, SELECTS, Ps2Rule, adjust_ps2, refine
from placewire.plans.rebalance.rebalancer import ADJUSTERS, Readings, Rebalancer, RebalanceRule
from placewire.plans.rebalance.signals import Signals, Tally
from placewire.plans.rebalance.sstd import SstdRule, adjust_sstd
from placewire.plans.sample.sample import Sample
from placewire.storage.arrays import forget_deleted, open_arrays
from placewire.storage.layout import StateDir

COUNTING = (
    (Tally, "add"), (Tally, "arrays"), (Planners, "record_work"), (Signals, "save"),
    (Rebalancer, "has_drifted"),
)  # fmt: skip
COMBINATIONS = (
    ("PM",), ("FM",), ("FG",), ("PM", "FM"), ("PM", "FG"), ("FM", "FG"), ("PM", "FM", "FG"),
)  # fmt: skip


def compare_decisions(
    setup: Setup,
    batch: int = 4_000,
    intervals: int = 3,
    interval: int = 16,
    subscriptions: int = 60_000,
) -> Figures:
    """What each adjuster would do with the same drifted loads: how long it takes, what it moves."""
    size = Size(batch, intervals, interval, subscriptions)
    for drift in ("ps2", "sstd objects"):
        log = write_drift(setup, drift, setup.folder / "drift.jsonl", size)
        stood = play(log, setup.folder, PLANS[drift], NEVER, size).readings
        assert stood is not None
        before = imbalance(sum_loads(stood.leaves.part_worker, stood.loads.load, WORKERS))
        tried = imbalance(stood.source.simulate(stood.leaves))
        say(f"{drift}, plan {PLANS[drift]}: the largest load {before:.2f} x the mean")
        label = drift.replace(" ", "-")
        yield Table(
            f"drift-choices-{label}",
            ("way", "largest load then, x mean", "when tried", "subscriptions moved",
             "decided in, ms", "by"),
            [("no adjustment", before, tried, 0, 0.0, ""), *compare_ways(stood, before)],
        )  # fmt: skip
        yield Table(f"drift-select-{label}", *select_cells(stood))


def compare_ways(stood: Readings, before: float) -> Iterator[tuple[object, ...]]:
    """Every way on the same readings."""
    ways: dict[str, Callable[[], Adjustment | None]] = {
        f"ps2-local {name}": partial(adjust_ps2, *inputs(stood), Ps2Rule(select=name))
        for name in SELECTS
    }
    ways |= {
        f"sstd {'+'.join(some)}": partial(adjust_sstd, *inputs(stood), SstdRule(ways=some))
        for some in COMBINATIONS
    }
    ways["ps2-global"] = partial(ADJUSTERS["ps2-global"], stood)
    for name, way in ways.items():
        way()
        started = time.perf_counter()
        found = way()
        took_ms = 1e3 * (time.perf_counter() - started)
        if found is None:
            yield (
                name,
                before,
                imbalance(stood.source.simulate(stood.leaves)),
                0,
                took_ms,
                "nothing",
            )
        else:
            promised = "" if name == "ps2-global" else imbalance(found.loads)
            tried = imbalance(stood.source.simulate(found.leaves))
            yield name, promised, tried, found.moved, took_ms, found.way


def inputs(stood: Readings) -> tuple[Leaves, PartLoads, Sample, LoadModel]:
    return stood.leaves, stood.loads, stood.source.sample(), stood.cost


def select_cells(stood: Readings) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Minimum cost migration alone: the cells of the busiest worker by all four algorithms."""
    loads = sum_loads(stood.leaves.part_worker, stood.loads.load, WORKERS)
    over = int(np.argmax(loads))
    tau = float(loads.max() - loads.min()) / 2.0
    sample = stood.source.sample()
    grid = fit_grid(sample, GRID, GRID)
    cut = [
        refine(cell, part, grid, sample, stood.cost)
        for cell in cells_of(stood.leaves, stood.loads)
        for part in np.flatnonzero(cell.worker == over).tolist()
    ]
    load = np.concatenate([piece.load.reshape(-1) for piece in cut])
    size = np.concatenate([piece.held.reshape(-1) for piece in cut])
    load, size = load[load > 0.0], np.maximum(size[load > 0.0], 1e-9)
    rows: list[tuple[object, ...]] = []
    for name, select in SELECTS.items():
        started = time.perf_counter()
        chosen = select(load, size, tau)
        took_ms = 1e3 * (time.perf_counter() - started)
        rows.append(
            (name, load.size, chosen.size, float(load[chosen].sum()) / tau,
             float(size[chosen].sum()), took_ms)
        )  # fmt: skip
    return ("algorithm", "cells", "chosen", "load / tau", "subscriptions moved", "ms"), rows


def measure_counting(
    setup: Setup,
    batches: tuple[int, ...] = (4_000, 20_000),
    rounds: tuple[int, ...] = (3, 2),
    intervals: int = 3,
    interval: int = 16,
    subscriptions: int = 60_000,
) -> Figures:
    """What counting costs when there is nothing to do, and how many bytes it makes."""
    rules = {
        "off": RebalanceRule("off"),
        "counting": NEVER,
        "counting along lines": RebalanceRule("tornado", high=0.0, streak=1 << 30),
    }
    rows: list[tuple[str | float, ...]] = []
    for batch, repeats in zip(batches, rounds, strict=True):
        size = Size(batch, intervals, interval, subscriptions)
        log = write_drift(setup, "calm", setup.folder / "drift.jsonl", size)
        times: dict[str, list[float]] = {name: [] for name in rules}
        shares: dict[str, list[float]] = {name: [] for name in rules}
        for _ in range(repeats):
            for name, rule in rules.items():
                each, share = play_counting(log, setup.folder, rule, size)
                times[name].append(each)
                shares[name].append(share)
                say(f"{size.batch:,}, {name}: {1e9 * each:.0f} ns an object, {share:.2f}%")
        rows += [
            (size.batch, name, 1e9 * min(times[name]), float(np.median(shares[name])))
            for name in rules
        ]
        if batch == batches[0]:
            yield Table("drift-bytes", *count_bytes(log, setup.folder, size))
    yield Table(
        "drift-cost",
        ("objects a batch", "workers", "ns an object, the least", "in counting itself, %"),
        rows,
    )


def play_counting(log: Path, folder: Path, rule: RebalanceRule, size: Size) -> tuple[float, float]:
    """Processor seconds an object, and the share of counting in the second half.

    By then all subscriptions have come, and the plan stands. What earlier runs have left in memory
    would be gone through whenever something is made, and count as if it belonged there.
    """
    for state in folder.glob("state-*"):
        shutil.rmtree(state)
    forget_deleted()
    gc.collect()
    gc.freeze()
    started = time.process_time()
    with clocked(COUNTING) as spent:
        played = play(log, folder, "agrid", rule, size)
    ended = time.process_time()
    gc.unfreeze()
    some = [beat for beat in played.beats if beat.objects]
    half = (started + ended) / 2
    late = sum(seconds for at, seconds in spent if at > half)
    each = sum(beat.whole_s for beat in some) / sum(beat.objects for beat in some)
    return each, 100 * late / (ended - half)


@contextlib.contextmanager
def clocked(functions: Sequence[tuple[type, str]]) -> Iterator[list[tuple[float, float]]]:
    """Take the processor time of methods: when each call ended, and how long it took."""
    spent: list[tuple[float, float]] = []
    before = [getattr(owner, name) for owner, name in functions]

    def timed(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            started = time.thread_time()
            found = function(*arguments, **named)
            spent.append((time.process_time(), time.thread_time() - started))
            return found

        return call

    for (owner, name), function in zip(functions, before, strict=True):
        setattr(owner, name, timed(function))
    try:
        yield spent
    finally:
        for (owner, name), function in zip(functions, before, strict=True):
            setattr(owner, name, function)


def count_bytes(
    log: Path, folder: Path, size: Size
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Statistics of one batch: totals, by leaf, along lines, and by every cell."""
    state = StateDir(folder / "state-bytes")
    coordinator = Coordinator(
        state, Settings(), identify_log(log), "agrid", WORKERS, size.sample,
        rebalance=RebalanceRule("tornado", high=0.0, streak=1 << 30),
    )  # fmt: skip
    source = LogSource(str(log))
    sizes: dict[str, float] = {}
    try:
        while refs := source.plan(coordinator.latest.offset, size.batch, WORKERS):
            ran: list[Ran] = []

            def step(
                context: BatchContext, refs: list[BlockRef] = refs, ran: list[Ran] = ran
            ) -> Ran:
                ran.append(run_blocks(context, refs))
                return ran[-1]

            coordinator.step(coordinator.latest.batch + 1, batch_end(refs), step)
            coordinator.delivered = coordinator.latest.batch
        summaries = ran[-1].workers
        files = {summary.file for summary in summaries if summary.file}
        arrays = [open_arrays(state.file(file)).arrays for file in files]
        lines = [
            sum(a.nbytes for name, a in of.items() if name.startswith(("load.col", "load.row")))
            for of in arrays
        ]
        leaf = [
            sum(a.nbytes for name, a in of.items() if name.startswith("load.")) - line
            for of, line in zip(arrays, lines, strict=True)
        ]
        sizes = {
            "totals of all workers": sum(len(msgspec.msgpack.encode(s)) for s in summaries),
            "by leaf, all workers": sum(leaf),
            "along lines, one worker": max(lines),
            "along lines, all workers": sum(lines),
        }
    finally:
        coordinator.close()
    return ("statistics of a batch", "bytes"), list(sizes.items())
