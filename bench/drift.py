"""Drift: throughput over time with and without adjusting the plan, and what adjusting costs.

The engine runs in one process, each worker's part of a batch after another's; throughput is by the
critical path, the objects of a batch over the busiest worker's time (dispatch is the same for all).
Times are of the processor.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import msgspec
import numpy as np

from bench.drift_logs import BATCH, CALM, DRIFTS, SUBSCRIPTIONS, write_drift
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from placewire.engine import pieces
from placewire.engine.coordinator import Coordinator
from placewire.engine.local import run_blocks
from placewire.engine.log import Offset, batch_end, identify_log
from placewire.engine.reading import LogSource
from placewire.engine.rebalancing import ADJUSTERS, Readings, RebalanceRule
from placewire.model.settings import Settings
from placewire.model.subscriptions import BOOLEAN
from placewire.plan.adjusting import Adjustment, PartLoads, cells_of, imbalance, sum_loads
from placewire.plan.cost import LoadModel
from placewire.plan.finegrid import fit_grid
from placewire.plan.leaves import Leaves
from placewire.plan.migration import SELECTS
from placewire.plan.ps2adjust import GRID, Ps2Rule, adjust_ps2, refine
from placewire.plan.sample import Sample
from placewire.plan.sstdadjust import SstdRule, adjust_sstd
from placewire.route.choice import Prices
from placewire.state.arrays import open_arrays
from placewire.state.layout import StateDir

WORKERS = 8
SAMPLE = SUBSCRIPTIONS + BATCH * (CALM // 2)
PLANS = {"ps2": "kdt", "tornado": "agrid", "sstd objects": "qt", "sstd subscriptions": "qt"}
PRICES = Prices()
NEVER = RebalanceRule("sstd", high=1e9)  # counts, and never acts
COMBINATIONS = (("PM",), ("FM",), ("PM", "FM"), ("FG",), ("PM", "FM", "FG"))


class Beat(NamedTuple):
    """One batch: objects, the busiest worker and all of them in seconds, the whole batch.

    `counted_s` is the busiest worker by what it counted, at fixed prices: it has no noise.
    """

    objects: int
    busiest_s: float
    all_s: float
    counted_s: float
    counted_all_s: float
    whole_s: float
    changed: bool


class Played(NamedTuple):
    """A log that was played: its batches, and how the plan changed."""

    beats: list[Beat]
    whys: list[str]
    readings: Readings | None

    def per_s(self, first: int = 0, last: int | None = None) -> float:
        """Objects a second by the busiest worker, over some batches."""
        some = [beat for beat in self.beats[first:last] if beat.objects]
        return sum(b.objects for b in some) / max(sum(b.busiest_s for b in some), 1e-9)

    def counted_per_s(self, first: int = 0, last: int | None = None) -> float:
        """The same by what workers counted."""
        some = [beat for beat in self.beats[first:last] if beat.objects]
        return sum(b.objects for b in some) / max(sum(b.counted_s for b in some), 1e-9)


def say(line: str) -> None:
    print(f"  [{time.strftime('%H:%M:%S')}] {line}", flush=True)


@contextlib.contextmanager
def processor_time() -> Iterator[None]:
    """Let workers take the time of the processor, not of the wall: others share the machine."""
    before, pieces.time = pieces.time, SimpleNamespace(perf_counter=time.thread_time)
    try:
        yield
    finally:
        pieces.time = before


def play(
    log: Path, folder: Path, plan: str, rule: RebalanceRule, batches: int | None = None
) -> Played:
    """Run a log through the engine in this process."""
    state = StateDir(folder / f"state-{time.monotonic_ns()}")
    coordinator = Coordinator(
        state, Settings(), identify_log(log), plan, WORKERS, SAMPLE, rebalance=rule
    )
    source = LogSource(str(log))
    beats: list[Beat] = []
    whys: list[str] = []
    readings = None
    try:
        while refs := source.plan(Offset(**coordinator.latest.offset), BATCH, WORKERS):
            started = time.process_time()
            with processor_time():
                manifest = coordinator.step(
                    coordinator.latest.batch + 1,
                    batch_end(refs),
                    lambda context, refs=refs: run_blocks(context, refs),
                )
            whole_s = time.process_time() - started
            objects = manifest.counters.objects - sum(beat.objects for beat in beats)
            did = [
                entry
                for entry in (manifest.signals.history if manifest.signals else [])
                if entry.kind == BOOLEAN and entry.batch == manifest.batch
            ]
            busy = did[0].busy_s if did else [0.0]
            counted = [0.0]
            if did:
                counts = zip(did[0].objects, did[0].candidates, strict=True)
                counted = [1e-9 * (PRICES.probe * o + PRICES.candidate * c) for o, c in counts]
            changed = manifest.plan.get("changed") == manifest.batch
            beats.append(
                Beat(objects, max(busy), sum(busy), max(counted), sum(counted), whole_s, changed)
            )
            if changed:
                whys.append(manifest.plan["why"])
            coordinator.delivered = manifest.batch
            if batches is not None and len(beats) == batches:
                break
        planner = coordinator.planners.boolean
        if rule is NEVER and planner.leaves is not None and planner.cost is not None:
            own = planner.source(coordinator.live.of_kind(BOOLEAN), planner.cost)
            readings = coordinator.planners.rebalancer.read(planner.leaves, planner.cost, own)
            readings.sample()
            for leaf in range(planner.leaves.total):
                readings.ask(leaf)
    finally:
        coordinator.close()
    return Played(beats, whys, readings)


def run(choice: Choice) -> None:
    """Every drift: without adjusting, with its own paper's way, and with the others."""
    for drift in DRIFTS:
        log = write_drift(choice, drift, choice.folder / "drift.jsonl")
        plan = PLANS[drift]
        say(f"{drift}, plan {plan}")
        names = [name for name in ADJUSTERS if name != "tornado" or plan == "agrid"]
        played = {"off": play(log, choice.folder, plan, RebalanceRule("off"))}
        for name in [*names, "auto"]:
            played[name] = play(log, choice.folder, plan, RebalanceRule(name))
            for why in played[name].whys:
                say(f"{name}: {why}")
        first = next((at for at, beat in enumerate(played["off"].beats) if beat.objects), 0)
        calm = first + CALM
        rows = []
        for name, run_ in played.items():
            beats = run_.beats[calm:]
            rows.append(
                (
                    name,
                    run_.per_s(first + CALM // 2, calm),
                    run_.per_s(calm),
                    run_.per_s(calm) / played["off"].per_s(calm),
                    run_.counted_per_s(calm),
                    run_.counted_per_s(calm) / played["off"].counted_per_s(calm),
                    WORKERS * sum(b.counted_s for b in beats) / sum(b.counted_all_s for b in beats),
                    len(run_.whys),
                    1e3 * float(np.median([b.whole_s for b in beats if not b.changed])),
                    1e3 * max((b.whole_s for b in beats if b.changed), default=0.0),
                )
            )
        label = drift.replace(" ", "-")
        save_table(
            f"drift-{label}",
            ("rebalance", "objects/s before", "objects/s in drift", "of off",
             "objects/s in drift, counted", "of off, counted", "busiest / mean, counted", "changes",
             "batch, ms", "longest batch with a change, ms"),
            rows,
        )  # fmt: skip
        draw_lines(
            f"drift-{label}",
            {
                name: [
                    (at + 1.0, run_.counted_per_s(first + at, first + at + 3))
                    for at in range(CALM // 2, len(run_.beats) - first - 2, 2)
                ]
                for name, run_ in played.items()
            },
            x_label="batch",
            y_label="objects/s by the busiest worker, counted",
            x_scale="linear",
        )


def run_choices(choice: Choice) -> None:
    """What each way would do with the same drifted loads: how long it takes, and what it moves."""
    for drift in ("ps2", "sstd objects"):
        log = write_drift(choice, drift, choice.folder / "drift.jsonl")
        stood = play(log, choice.folder, PLANS[drift], NEVER).readings
        assert stood is not None
        before = imbalance(sum_loads(stood.leaves.part_worker, stood.loads.load, WORKERS))
        say(f"{drift}, plan {PLANS[drift]}: the largest load {before:.2f} x the mean")
        label = drift.replace(" ", "-")
        save_table(
            f"drift-choices-{label}",
            ("way", "largest load then, x mean", "subscriptions moved", "decided in, ms", "by"),
            [("no adjustment", before, 0, 0.0, ""), *compare_ways(stood, before)],
        )
        save_table(f"drift-select-{label}", *select_cells(stood))


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
            yield name, before, 0, took_ms, "nothing"
        else:
            yield name, imbalance(found.loads), found.moved, took_ms, found.way


def inputs(stood: Readings) -> tuple[Leaves, PartLoads, Sample, LoadModel]:
    return stood.leaves, stood.loads, stood.sample(), stood.cost


def select_cells(stood: Readings) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Minimum cost migration alone: the cells of the busiest worker by all four algorithms."""
    loads = sum_loads(stood.leaves.part_worker, stood.loads.load, WORKERS)
    over = int(np.argmax(loads))
    tau = float(loads.max() - loads.min()) / 2.0
    sample = stood.sample()
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


def run_cost(choice: Choice) -> None:
    """What counting costs when there is nothing to do, and how many bytes it makes."""
    log = write_drift(choice, "calm", choice.folder / "drift.jsonl")
    times: dict[str, list[float]] = {"off": [], "counting": [], "counting along lines": []}
    rules = {
        "off": RebalanceRule("off"),
        "counting": NEVER,
        "counting along lines": RebalanceRule("tornado", high=1e9),
    }
    for _ in range(4):
        for name, rule in rules.items():
            played = play(log, choice.folder, "agrid", rule)
            some = [beat for beat in played.beats if beat.objects]
            times[name].append(sum(b.whole_s for b in some) / sum(b.objects for b in some))
            say(f"{name}: {1e9 * times[name][-1]:.0f} ns an object")
    base = min(times["off"])
    save_table(
        "drift-cost",
        ("workers", "ns an object, least of four", "more than off, %"),
        [(name, 1e9 * min(t), 100 * (min(t) / base - 1)) for name, t in times.items()],
    )
    save_table("drift-bytes", *count_bytes(log, choice.folder))


def count_bytes(log: Path, folder: Path) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Statistics of one batch: totals, by leaf, along lines, and by every cell."""
    state = StateDir(folder / "state-bytes")
    coordinator = Coordinator(
        state, Settings(), identify_log(log), "agrid", WORKERS, SAMPLE,
        rebalance=RebalanceRule("tornado", high=1e9),
    )  # fmt: skip
    source = LogSource(str(log))
    sizes: dict[str, float] = {}
    try:
        while refs := source.plan(Offset(**coordinator.latest.offset), BATCH, WORKERS):
            ran = []

            def step(context: object, refs: object = refs, ran: list = ran) -> object:
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
