"""Drift of `nearest` and `relevant` subscriptions, with assignments that stay or are rebalanced.

A match in one town, then in another: half of the objects fall on a place and have one of a few hot
words, and a fifth as many subscriptions as stand come there with these words. The engine runs in
one process; loads are counted, so that nothing else on the machine changes them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.clock import say
from bench.figures import Figures, LinePlot, Table
from bench.harness import SEED, Setup
from bench.product.rebalance.drift import PRICES, WORKERS
from bench.product.rebalance.logs import Size, busy_place, object_event, stamp, write_events
from bench.workload import Workload
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import run_blocks
from placewire.ingest.log import batch_end, identify_log
from placewire.ingest.sources import LogSource
from placewire.model.kinds import NEAREST, RELEVANT
from placewire.model.settings import Settings
from placewire.plans.rebalance.rebalancer import HIGH, RebalanceRule
from placewire.storage.layout import StateDir

METHODS = {
    "nearest": ("kop", "sop", "dkm", "ps2"),
    "relevant": ("location", "keyword", "prefix", "location+prefix", "prefix+location"),
}
KINDS = {"nearest": NEAREST, "relevant": RELEVANT}
HOT = 5  # words of an interval
LEVEL = 3  # batches in a row after which an interval counts as level
ASKED: dict[str, dict[str, Any]] = {
    "nearest": {"k": 10},
    "relevant": {"k": 10, "alpha": 0.5, "reach_m": 4.5e6},
}


class AssignmentBatch(NamedTuple):
    """One batch: what each worker costs by its counts, processor seconds, what was levelled."""

    objects: int
    loads: np.ndarray
    whole_s: float
    why: str

    @property
    def uneven(self) -> float:
        """The busiest worker, the mean being 1."""
        return float(self.loads.max() / self.loads.mean()) if self.loads.any() else 1.0


def compare_assignments(
    setup: Setup,
    kinds: tuple[str, ...] = tuple(METHODS),
    batch: int = 4_000,
    intervals: int = 2,
    interval: int = 20,
    subscriptions: int = 40_000,
) -> Figures:
    """Every method that deals out, with the plan as it was made and levelled."""
    size = Size(batch, intervals, interval, subscriptions)
    for kind in kinds:
        log = write_log(setup, kind, setup.folder / "dealing.jsonl", size)
        rows: list[tuple[object, ...]] = []
        for method in METHODS[kind]:
            played = {
                name: play(log, setup.folder, kind, method, RebalanceRule(name), size)
                for name in ("off", "auto")
            }
            for beat in played["auto"]:
                if beat.why:
                    say(f"{kind}, {method}: {beat.why}")
            rows.append((method, *tell_method(played, size)))
            label = f"drift-dealing-{method}"
            yield LinePlot(
                label,
                {
                    name: [(at + 1.0, beat.uneven) for at, beat in enumerate(beats) if at % 2]
                    for name, beats in played.items()
                },
                x_label="batch",
                y_label=f"the busiest worker's load, the mean being 1 ({kind}, {method})",
                x_scale="linear",
            )
        yield Table(
            f"drift-dealing-{kind}",
            (kind, "busiest / mean, off", "busiest / mean, auto", "busiest of off's",
             f"batches above {HIGH}, off", f"batches above {HIGH}, auto",
             "batches until level, by interval", "levelled", "handed over", "batch, ms",
             "batch that levels, ms"),
            rows,
        )  # fmt: skip


def tell_method(played: dict[str, list[AssignmentBatch]], size: Size) -> Iterator[object]:
    """The cells of one method: what drifts, summed up."""
    off, auto = (played[name][size.calm :] for name in ("off", "auto"))
    sums = [(sum(b.loads.max() for b in bs), sum(b.loads.mean() for b in bs)) for bs in (off, auto)]
    yield from (most / mean for most, mean in sums)
    yield sums[1][0] / sums[0][0]
    yield from (sum(beat.uneven > HIGH for beat in beats) for beats in (off, auto))
    yield ", ".join(until_level(auto, size.interval))
    levelled = [beat for beat in played["auto"] if beat.why]
    yield len(levelled)
    found = [re.search(r"levelled, (\d+)", beat.why) for beat in levelled]
    yield sum(int(one[1]) for one in found if one)
    yield 1e3 * float(np.median([beat.whole_s for beat in auto if not beat.why]))
    yield 1e3 * float(np.median([beat.whole_s for beat in levelled])) if levelled else 0.0


def until_level(beats: list[AssignmentBatch], interval: int) -> Iterator[str]:
    """How many batches of each interval pass before some in a row are level."""
    for first in range(0, len(beats), interval):
        level = [beat.uneven <= HIGH for beat in beats[first : first + interval]]
        starts = [at for at in range(len(level) - LEVEL + 1) if all(level[at : at + LEVEL])]
        yield str(starts[0]) if starts else "never"


def play(
    log: Path, folder: Path, kind: str, method: str, rule: RebalanceRule, size: Size
) -> list[AssignmentBatch]:
    """Run a log through the engine in this process; batches with objects are told."""
    state = StateDir(folder / f"state-{time.monotonic_ns()}")
    plan = f"{kind}={method}"
    coordinator = Coordinator(
        state, Settings(), identify_log(log), plan, WORKERS, size.sample, rebalance=rule
    )
    source = LogSource(str(log))
    planners = coordinator.planners
    planner = planners.rows[KINDS[kind]]
    beats: list[AssignmentBatch] = []
    seen = 0
    try:
        while refs := source.plan(coordinator.latest.offset, size.batch, WORKERS):
            version, started = planner.version, time.process_time()
            manifest = coordinator.step(
                coordinator.latest.batch + 1,
                batch_end(refs),
                lambda context, refs=refs: run_blocks(context, refs),
            )
            whole_s = time.process_time() - started
            objects, seen = manifest.counters.objects - seen, manifest.counters.objects
            coordinator.delivered = manifest.batch
            entries = [
                entry
                for entry in (manifest.signals.history if manifest.signals else [])
                if entry.kind == KINDS[kind] and entry.batch == manifest.batch
            ]
            loads = np.zeros(WORKERS)
            for entry in entries:
                loads += PRICES.probe * np.array(entry.objects)
                loads += PRICES.candidate * np.array(entry.candidates)
            again = version > 0 and planner.version > version
            if objects:
                beats.append(AssignmentBatch(objects, loads, whole_s, planner.why if again else ""))
    finally:
        coordinator.close()
    return beats


def write_log(setup: Setup, kind: str, path: Path, size: Size) -> Path:
    """Write the log of one kind."""
    workload = setup.workload(size.batch * size.batches, size.subscriptions)
    return write_events(drifting(workload, kind, size), path)


def drifting(workload: Workload, kind: str, size: Size) -> Iterator[dict[str, Any]]:
    """Standing subscriptions, a calm stream, then one town after another."""
    rng = np.random.default_rng([SEED, 37])
    objects, subscriptions = workload
    lon, lat = objects["lon"].to_numpy().copy(), objects["lat"].to_numpy().copy()
    texts = objects["text"].to_pylist()
    standing = subscriptions.to_pylist()
    counts: dict[str, int] = {}
    for row in standing[:2_000]:
        for word in row["keywords"]:
            counts[word] = counts.get(word, 0) + 1
    frequent = sorted(counts, key=lambda word: -counts[word])
    for row in standing:
        place = (row["west"] + row["east"]) / 2, (row["south"] + row["north"]) / 2
        yield stamp(subscribe(kind, row["id"], place, row["keywords"], row["operator"]), 0)
    for batch in range(size.batches):
        some = slice(batch * size.batch, (batch + 1) * size.batch)
        if batch >= size.calm:
            interval, since = divmod(batch - size.calm, size.interval)
            target = busy_place(interval, lon[: size.calm * size.batch], lat)
            hot = frequent[interval * HOT : (interval + 1) * HOT]
            if since == 0:
                for number in range(size.subscriptions // 5):
                    place = tuple(rng.normal(target, 0.3).tolist())
                    words = [str(word) for word in rng.choice(hot, 2, replace=False)]
                    name = f"c{interval}-{number}"
                    yield stamp(subscribe(kind, name, place, words, "OR"), some.start)
            burst = np.flatnonzero(rng.random(size.batch) < 0.5) + some.start
            lon[burst] = target[0] + rng.normal(0, 0.3, burst.size)
            lat[burst] = target[1] + rng.normal(0, 0.3, burst.size)
            for number in burst.tolist():
                texts[number] += f" {rng.choice(hot)}"
        for number in range(some.start, some.stop):
            yield object_event(number, lon[number], lat[number], texts[number])


def subscribe(
    kind: str, name: str, place: tuple[float, ...], words: list[str], operator: str
) -> dict[str, Any]:
    """A subscription as an event."""
    event = {
        "type": "subscribe",
        "id": name,
        "kind": kind,
        "lon": round(place[0], 6),
        "lat": round(place[1], 6),
        "keywords": words,
        **ASKED[kind],
    }
    return event | {"mode": "all" if operator == "AND" else "any"} if kind == "nearest" else event
