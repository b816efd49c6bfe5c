"""`placewire status`: how a state stands, as tables, as JSON, as metrics or as a map."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from placewire.cli.drawing import can_draw
from placewire.cli.lag import lag_line
from placewire.cli.tables import Heading, figure, print_rows
from placewire.engine.standing import KINDS, LeafLoads, Standing, read_standing
from placewire.engine.standingfacts import COUNTS, plans_of, to_facts, to_metrics
from placewire.model.errors import Unusable
from placewire.plan.adjusting import imbalance
from placewire.state.manifest import Manifest, WorkersEntry


class StatusOptions(NamedTuple):
    """What the user typed."""

    state: Path
    leaves: int
    map: Path | None
    json: bool
    metrics: bool


def run_status(options: StatusOptions) -> None:
    """Print how a state stands; raises Unusable."""
    if options.json and options.metrics:
        raise Unusable("status: --json and --metrics are two ways to print, give one")
    standing = read_standing(options.state)
    if options.json:
        print(json.dumps(to_facts(standing, options.leaves)))
    elif options.metrics:
        sys.stdout.write(to_metrics(standing, options.leaves))
    else:
        print_status(Console(highlight=False), standing, options.leaves)
    if options.map is not None:
        draw(options.map, standing)


def draw(path: Path, standing: Standing) -> None:
    """Leave a picture of the load by leaf."""
    if standing.loads is None:
        raise Unusable(
            f"{path}: there is no load by leaf to draw: it needs a boolean plan that cuts,"
            " --rebalance other than off, and a batch since the plan was adjusted last"
        )
    if not can_draw():
        raise Unusable(f"{path}: needs matplotlib, which is not installed: pip install matplotlib")
    from placewire.cli.loadmap import draw_load_map

    try:
        draw_load_map(path, standing.loads, standing.codes)
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: cannot be written: {error}") from None


def print_status(console: Console, standing: Standing, most: int) -> None:
    """The tables."""
    manifest = standing.manifest
    counters = manifest.counters
    live = ", ".join(f"{count:,} {kind}" for kind, count in standing.subscriptions.items())
    print(
        f"batch {manifest.batch}: {counters.events:,} events, {counters.objects:,} objects,"
        f" {counters.results:,} results, {counters.dead_letters:,} dead letters"
    )
    print(f"subscriptions: {live or 'none'}")
    if standing.lag is not None:
        print(f"lag at {standing.lag.at}: {lag_line(standing.lag)}")
    for kind, entry in plans_of(standing).items():
        if not entry:
            continue
        line = f"plan {kind}={entry['name']}: version {entry['version']}"
        line += f" for {entry['workers']} worker{'s' if entry['workers'] > 1 else ''}"
        if entry.get("method") == "stripes":
            line += ", by stripes until a sample of the log is full"
        if "changed" in entry:
            line += f", adjusted after batch {entry['changed']}"
        if entry.get("sized"):
            line += f"; {entry['sized']}"
        print(line + (f"; {entry['why']}" if entry.get("why") else ""))
        if "next_why" in entry:
            print(f"  the next plan comes into force with the next batch; {entry['next_why']}")
    for did in standing.workers:
        print(f"\n{KINDS[did.kind]} subscriptions, by worker in batch {did.batch}:")
        print_rows(console, WORKER_HEADINGS, worker_rows(did))
    history = history_rows(manifest)
    if len(history) > 1:
        print("\nthe last batches, all kinds of subscription:")
        print_rows(console, HISTORY_HEADINGS, history)
    if standing.loads is None and standing.manifest.plan.get("changed") == manifest.batch:
        print("\nno counts by leaf yet: the plan has just been adjusted")
    if standing.loads is not None and most:
        loads = standing.loads
        print(
            f"\nheaviest of {loads.leaves.total:,} leaves lately; the busiest worker has"
            f" {imbalance(loads.by_worker):.2f} x the mean load:"
        )
        print_rows(console, LEAF_HEADINGS, leaf_rows(loads, most))


WORKER_HEADINGS: list[Heading] = [
    ("", "worker"), ("subscrip-", "tions"), ("", "objects"), ("candidates", "looked at"),
    ("", "matches"), ("", "bytes"), ("busy,", "ms"), ("busy /", "mean"),
]  # fmt: skip
LEAF_HEADINGS: list[Heading] = [
    ("", "leaf"), ("", "west"), ("", "south"), ("", "east"), ("", "north"), ("", "workers"),
    ("subscrip-", "tions"), ("", "objects"), ("candidates", "looked at"), ("", "matches"),
    ("", "bytes"), ("busy,", "ms"), ("share of", "load, %"),
]  # fmt: skip


def worker_rows(entry: WorkersEntry) -> list[list[str]]:
    mean = max(float(np.mean(entry.busy_s)), 1e-12)
    return [
        [
            str(worker),
            f"{entry.subscriptions[worker]:,}" if entry.subscriptions else "",
            f"{entry.objects[worker]:,}",
            f"{entry.candidates[worker]:,}",
            f"{entry.matches[worker]:,}",
            f"{entry.bytes[worker]:,}",
            figure(1e3 * entry.busy_s[worker]),
            f"{entry.busy_s[worker] / mean:.2f}",
        ]
        for worker in range(len(entry.objects))
    ]


def leaf_rows(loads: LeafLoads, most: int) -> list[list[str]]:
    whole = max(float(loads.load.sum()), 1e-12)
    rows = []
    for leaf in loads.heaviest(most):
        done = loads.of_leaf(leaf)
        busy_s = done.pop("busy_s")
        rows.append(
            [
                str(leaf),
                *(f"{edge:.2f}" for edge in loads.degrees(leaf)),
                " ".join(map(str, loads.workers_of(leaf))),
                *(f"{count:,.0f}" for count in done.values()),
                figure(1e3 * busy_s),
                f"{100 * loads.load[leaf] / whole:.1f}",
            ]
        )
    return rows


HISTORY_HEADINGS: tuple[Heading, ...] = (
    ("", "batch"), ("", "workers"), ("", "objects"), ("", "candidates"), ("", "matches"),
    ("busiest", "ms"), ("of the", "mean"),
)  # fmt: skip


def history_rows(manifest: Manifest) -> list[list[str]]:
    """What workers did batch by batch, as the manifest keeps it."""
    entries = manifest.signals.history if manifest.signals is not None else []
    batches: dict[int, list[WorkersEntry]] = {}
    for entry in entries:
        batches.setdefault(entry.batch, []).append(entry)
    rows = []
    for batch, some in batches.items():
        busy = np.sum([entry.busy_s for entry in some], axis=0)
        counts = [sum(sum(getattr(e, name)) for e in some) for name in COUNTS[:3]]
        rows.append(
            [
                str(batch),
                str(busy.size),
                *(f"{count:,}" for count in counts),
                figure(1e3 * float(busy.max())),
                f"{imbalance(busy):.2f}",
            ]
        )
    return rows
