"""Drift of `nearest` and `relevant` subscriptions: dealt out once, or levelled by what is counted.

A match in one town, then in another: half of the objects fall on a place and have one of a few hot
words, and a fifth as many subscriptions as stand come there with these words. The engine runs in
one process; loads are counted, so that nothing else on the machine changes them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.drift import PRICES, WORKERS, say, suffix_of
from bench.drift_logs import Size, busy_place, stamp
from bench.settings import SEED, Choice
from bench.tables import draw_lines, save_table
from bench.workload import Workload
from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import run_blocks
from placewire.ingest.log import Offset, batch_end, identify_log
from placewire.ingest.sources import LogSource
from placewire.model.settings import Settings
from placewire.model.subscriptions import NEAREST, RELEVANT
from placewire.plans.rebalance.rebalancer import HIGH, RebalanceRule
from placewire.storage.layout import StateDir

SIZE = Size(intervals=2, interval=20, subscriptions=40_000)
LARGE = Size(batch=10_000, intervals=3, interval=20, subscriptions=100_000)
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


class Beat(NamedTuple):
    """One batch: what each worker costs by its counts, processor seconds, what was levelled."""

    objects: int
    loads: np.ndarray
    whole_s: float
    why: str

    @property
    def uneven(self) -> float:
        """The busiest worker, the mean being 1."""
        return float(self.loads.max() / self.loads.mean()) if self.loads.any() else 1.0


def run(choice: Choice) -> None:
    """Every method that deals out, with the plan as it was made and levelled."""
    size = LARGE if choice.full else SIZE
    for kind, methods in METHODS.items():
        log = write_log(choice, kind, choice.folder / "dealing.jsonl", size)
        rows: list[tuple[object, ...]] = []
        for method in methods:
            played = {
                name: play(log, choice.folder, kind, method, RebalanceRule(name), size)
                for name in ("off", "auto")
            }
            for beat in played["auto"]:
                if beat.why:
                    say(f"{kind}, {method}: {beat.why}")
            rows.append((method, *tell_method(played, size)))
            label = f"drift-dealing-{method}{suffix_of(choice)}"
            draw_lines(
                label,
                {
                    name: [(at + 1.0, beat.uneven) for at, beat in enumerate(beats) if at % 2]
                    for name, beats in played.items()
                },
                x_label="batch",
                y_label=f"the busiest worker's load, the mean being 1 ({kind}, {method})",
                x_scale="linear",
            )
        save_table(
            f"drift-dealing-{kind}{suffix_of(choice)}",
            (kind, "busiest / mean, off", "busiest / mean, auto", "busiest of off's",
             f"batches above {HIGH}, off", f"batches above {HIGH}, auto",
             "batches until level, by interval", "levelled", "handed over", "batch, ms",
             "batch that levels, ms"),
            rows,
        )  # fmt: skip


def tell_method(played: dict[str, list[Beat]], size: Size) -> Iterator[object]:
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


def until_level(beats: list[Beat], interval: int) -> Iterator[str]:
    """How many batches of each interval pass before some in a row are level."""
    for first in range(0, len(beats), interval):
        level = [beat.uneven <= HIGH for beat in beats[first : first + interval]]
        starts = [at for at in range(len(level) - LEVEL + 1) if all(level[at : at + LEVEL])]
        yield str(starts[0]) if starts else "never"


def play(
    log: Path, folder: Path, kind: str, method: str, rule: RebalanceRule, size: Size
) -> list[Beat]:
    """Run a log through the engine in this process; batches with objects are told."""
    state = StateDir(folder / f"state-{time.monotonic_ns()}")
    plan = f"{kind}={method}"
    coordinator = Coordinator(
        state, Settings(), identify_log(log), plan, WORKERS, size.sample, rebalance=rule
    )
    source = LogSource(str(log))
    planners = coordinator.planners
    planner = planners.near if kind == "nearest" else planners.relevant
    beats: list[Beat] = []
    seen = 0
    try:
        while refs := source.plan(Offset(**coordinator.latest.offset), size.batch, WORKERS):
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
                beats.append(Beat(objects, loads, whole_s, planner.why if again else ""))
    finally:
        coordinator.close()
    return beats


def write_log(choice: Choice, kind: str, path: Path, size: Size) -> Path:
    """Write the log of one kind."""
    workload = choice.workload(size.batch * size.batches, size.subscriptions)
    with open(path, "w") as file:
        for event in drifting(workload, kind, size):
            file.write(json.dumps(event) + "\n")
    return path


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
            yield stamp(
                {
                    "type": "object",
                    "id": f"o{number}",
                    "lon": round(float(np.clip(lon[number], -180, 180)), 6),
                    "lat": round(float(np.clip(lat[number], -90, 90)), 6),
                    "text": texts[number],
                },
                number,
            )


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
