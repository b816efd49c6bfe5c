"""The status of a state directory: plans, recent work by worker and leaf, lag.

Reading it needs no lock. It is printed as JSON or Prometheus metrics; the live map shows the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.model.errors import Unusable
from placewire.model.kinds import kind_numbered
from placewire.objects.store import open_retained
from placewire.plans.allocation import imbalance
from placewire.plans.cost.model import LoadModel, calibrate, read_cost
from placewire.plans.leaves import Leaves
from placewire.plans.names import UNPLANNED
from placewire.plans.rebalance.signals import BY_LEAF, Signals
from placewire.plans.route.leaf_route import read_plan
from placewire.plans.sample.sample import SIDE
from placewire.segments.segment import SubscriptionCounts
from placewire.sinks.delivery import SinkCursor, read_cursor
from placewire.storage.layout import StateDir
from placewire.storage.manifest import (
    LeafPlanEntry,
    Manifest,
    PlanEntry,
    WorkersEntry,
    read_latest,
    retry_reading,
)
from placewire.storage.runtime_files import Lag, PlanRequest, read_lag, read_pending_request

MOST_OBJECTS = 20_000  # that a map shows
WORLD = [-180.0, -90.0, 180.0, 90.0]
MOST_LEAVES = 1_000


class LeafLoads(NamedTuple):
    """The leaves of a plan, with recent counts of work in each by worker."""

    leaves: Leaves
    counts: NDArray[np.float64]  # [count, leaf, worker], counts as in BY_LEAF
    held: NDArray[np.float64]  # subscriptions by leaf and worker
    loads: NDArray[np.float64]  # by leaf and worker

    @property
    def load(self) -> NDArray[np.float64]:
        summed: NDArray[np.float64] = self.loads.sum(axis=1)
        return summed

    @property
    def by_worker(self) -> NDArray[np.float64]:
        summed: NDArray[np.float64] = self.loads.sum(axis=0)
        return summed

    def of_leaf(self, leaf: int) -> dict[str, float]:
        """Return the counts of one leaf, by name."""
        done = zip(BY_LEAF, self.counts[:, leaf].sum(axis=1).tolist(), strict=True)
        return {"subscriptions": float(self.held[leaf].sum()), **dict(done)}

    def workers_of(self, leaf: int) -> list[int]:
        """Return the workers that have parts of a leaf."""
        first, last = self.leaves.part_offsets[leaf : leaf + 2]
        return sorted(set(self.leaves.part_worker[first:last].tolist()))

    def heaviest(self, most: int) -> list[int]:
        """Return the leaves with the largest loads, the heaviest first."""
        found: list[int] = np.argsort(-self.load, kind="stable")[:most].tolist()
        return found

    def degrees(self, leaf: int) -> tuple[float, float, float, float]:
        """Return west, south, east and north of a leaf."""
        west, south, east, north = self.leaves.box[leaf].tolist()
        across, down = 360 / SIDE, 180 / SIDE
        return west * across - 180, south * down - 90, east * across - 180, north * down - 90


class StateStatus(NamedTuple):
    """A state at its last commit; `codes` u32 are the cells of some retained objects."""

    manifest: Manifest
    subscriptions: dict[str, int]
    workers: list[WorkersEntry]  # of each kind's last batch
    loads: LeafLoads | None
    codes: NDArray[np.uint32]
    lag: Lag | None  # sources as last recorded, sinks as they are now
    asked: PlanRequest | None = None  # a plan request that is still pending


def read_status(root: Path) -> StateStatus:
    """Read the status of a state; raises Unusable."""
    state = open_state(root)
    return retry_reading(partial(read_once, state))


def open_state(root: Path) -> StateDir:
    """Open an existing state directory; raises Unusable."""
    state = StateDir.given(root)
    state.check_made()
    return state


def read_once(state: StateDir) -> StateStatus:
    """Read the status once; raises Unusable if a file is deleted meanwhile."""
    manifest = read_latest(state)
    if manifest is None:
        raise Unusable(f"state {state}: has no committed batch yet")
    counted = SubscriptionCounts(state).count(manifest)
    live = {kind_numbered(kind).name: count for kind, count in counted.items()}
    history = manifest.signals.history if manifest.signals is not None else []
    last = {entry.kind: entry for entry in history}
    parts = [np.empty(0, np.uint32)]
    for kept in manifest.store[-8:]:
        parts.append(open_retained(state.file(kept.name)).code)
    codes = np.concatenate(parts)
    step = max(1, codes.size // MOST_OBJECTS)
    return StateStatus(
        manifest, live, [last[kind] for kind in sorted(last)], read_leaf_loads(state, manifest),
        np.sort(codes[::step]), read_current_lag(state, manifest),
        read_pending_request(state, manifest),
    )  # fmt: skip


def read_current_lag(state: StateDir, manifest: Manifest) -> Lag | None:
    """Read the lag of sources and sinks; None if no run recorded one."""
    lag = read_lag(state)
    if lag is None:
        return None
    cursors = {name: read_cursor(state, name) or SinkCursor() for name in lag.sinks}
    lacking = {name: manifest.batch - cursor.batch for name, cursor in cursors.items()}
    return msgspec.structs.replace(
        lag, sinks={name: max(0, batches) for name, batches in lacking.items()}
    )


def read_leaf_loads(state: StateDir, manifest: Manifest) -> LeafLoads | None:
    """Read the leaves of the leaf plan with their loads; None without counts."""
    plan = manifest.leaf_plan
    if not plan.file or manifest.signals is None or manifest.signals.file is None:
        return None
    leaves = read_plan(state.file(plan.file)).leaves
    signals = Signals(state, manifest.signals)
    if signals.counts.shape[1:] != (leaves.total, leaves.workers):
        return None
    cost: LoadModel = read_cost(plan.cost) if plan.cost is not None else calibrate().load
    objects, candidates = signals.counts[:2]
    loads = cost.per_object * objects + cost.per_posting * candidates
    return LeafLoads(leaves, signals.counts, signals.held, loads)


COUNTS = ("objects", "candidates", "matches", "bytes", "busy_s")
BY_WORKER = ("subscriptions", *COUNTS)
WAITING = {"messages": "topic", "files": "folder", "bytes": "folder", "versions": "table"}
Labels = tuple[tuple[str, str], ...]


def describe_plan(plan: PlanEntry) -> dict[str, Any]:
    """Return a plan's part of the status."""
    leaves = plan if isinstance(plan, LeafPlanEntry) else LeafPlanEntry()
    facts: dict[str, Any] = {"name": plan.name}
    if plan.method:
        facts["method"] = plan.method
    if leaves.by_hand:
        facts["by_hand"] = leaves.by_hand
    facts["workers"] = plan.workers
    if leaves.sized:
        facts["sized"] = leaves.sized
    facts |= {"version": plan.version, "why": plan.why}
    if leaves.changed is not None:
        facts["changed"] = leaves.changed
    if leaves.next is not None:
        facts["next_why"] = leaves.next.why
        if leaves.next.workers is not None:
            facts["next_workers"] = leaves.next.workers
    if leaves.previous is not None:
        previous = leaves.previous
        facts["beside"] = {
            "method": previous.method,
            "version": previous.version,
            "subscriptions": previous.subscriptions,
        }
    return facts


def describe_status(status: StateStatus, most: int) -> dict[str, Any]:
    """Return a status as one JSON object, with the heaviest leaves."""
    manifest = status.manifest
    facts: dict[str, Any] = {
        "batch": manifest.batch,
        "events": manifest.counters.events,
        "objects": manifest.counters.objects,
        "results": manifest.counters.results,
        "dead_letters": manifest.counters.dead_letters,
        "subscriptions": status.subscriptions,
        "plans": {kind: describe_plan(plan) for kind, plan in manifest.plans.items()},
        "workers": {
            kind_numbered(entry.kind).name: {
                "batch": entry.batch,
                **{name: getattr(entry, name) for name in BY_WORKER},
            }
            for entry in status.workers
        },
        "history": [
            {"batch": entry.batch, "kind": kind_numbered(entry.kind).name}
            | {name: getattr(entry, name) for name in BY_WORKER}
            for entry in (manifest.signals.history if manifest.signals is not None else [])
        ],
    }
    if status.asked is not None:
        facts["asked"] = status.asked.wish()
    if status.lag is not None:
        facts["lag"] = msgspec.to_builtins(status.lag)
    loads = status.loads
    if loads is not None:
        facts["imbalance"] = imbalance(loads.by_worker)
        facts["leaves_in_all"] = loads.leaves.total
        whole = max(float(loads.load.sum()), 1e-12)
        facts["leaves"] = [
            {"leaf": leaf, "box": list(loads.degrees(leaf)), "workers": loads.workers_of(leaf)}
            | loads.of_leaf(leaf)
            | {"load_ns": float(loads.load[leaf]), "share": float(loads.load[leaf]) / whole}
            for leaf in loads.heaviest(most)
        ]
    return facts


class Exposition:
    """Metric families in the Prometheus text format."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, name: str, kind: str, about: str, values: Mapping[Labels, float] | float) -> None:
        """Add a family with one value, or with one value per label set."""
        full = f"placewire_{name}"
        self.lines += [f"# HELP {full} {escape(about)}", f"# TYPE {full} {kind}"]
        for labels, value in (values if isinstance(values, Mapping) else {(): values}).items():
            inside = ",".join(f'{key}="{escape(text, quotes=True)}"' for key, text in labels)
            self.lines.append(f"{full}{f'{{{inside}}}' if inside else ''} {format_value(value)}")

    def counter(self, name: str, about: str, values: Mapping[Labels, float] | float) -> None:
        self.add(f"{name}_total", "counter", about, values)

    def gauge(self, name: str, about: str, values: Mapping[Labels, float] | float) -> None:
        self.add(name, "gauge", about, values)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def escape(text: str, quotes: bool = False) -> str:
    """Escape help text or, with `quotes`, a label value."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def format_value(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if value == int(value) else repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def labelled(label: str, values: Mapping[str, float]) -> dict[Labels, float]:
    return {((label, name),): value for name, value in values.items()}


def format_metrics(status: StateStatus, most: int) -> str:
    """Format a status as Prometheus metrics."""
    out = Exposition()
    for name in ("events", "objects", "results", "dead_letters"):
        about = f"{name.replace('_', ' ')} since the log began"
        out.counter(name, about, getattr(status.manifest.counters, name))
    out.gauge("batch", "number of the last committed batch", status.manifest.batch)
    out.gauge("subscriptions", "live subscriptions", labelled("kind", status.subscriptions))
    if status.lag is not None:
        add_lag(out, status.lag)
    return out.text() + format_load_metrics(status, most)


def format_load_metrics(status: StateStatus, most: int) -> str:
    """Format only plans, workers and leaves as Prometheus metrics."""
    out = Exposition()
    versions = {kind: plan.version for kind, plan in status.manifest.plans.items()}
    out.gauge("plan_version", "version of the current plan", labelled("kind", versions))
    previous = status.manifest.leaf_plan.previous
    older = previous.subscriptions if previous is not None else 0
    out.gauge("older_plan_subscriptions", "subscriptions that still use an older plan", older)
    for count in BY_WORKER:
        by_worker: dict[Labels, float] = {
            (("kind", kind_numbered(entry.kind).name), ("worker", str(worker))): value
            for entry in status.workers
            for worker, value in enumerate(getattr(entry, count))
        }
        out.gauge(f"worker_{count}", f"{count} of a worker in the last batch", by_worker)
    loads = status.loads
    if loads is not None:
        worst = imbalance(loads.by_worker)
        out.gauge("imbalance", "largest load of a worker divided by the mean", worst)
        shown = [
            (leaf, worker) for leaf in loads.heaviest(most) for worker in loads.workers_of(leaf)
        ]
        counts = dict(zip(BY_LEAF, loads.counts, strict=True))
        for name, table in {"subscriptions": loads.held, **counts}.items():
            by_leaf: dict[Labels, float] = {
                (("leaf", str(leaf)), ("worker", str(worker))): float(table[leaf, worker])
                for leaf, worker in shown
            }
            out.gauge(f"leaf_{name}", f"{name} of a leaf at a worker in recent batches", by_leaf)
    return out.text()


def add_lag(out: Exposition, lag: Lag) -> None:
    """Add the lag of sources and sinks that is known."""
    families: dict[tuple[str, str], dict[Labels, float]] = {
        (f"source_waiting_{name}", f"{name} that are not yet read from a {where}"): {
            (("source", source.source),): getattr(source, name)
            for source in lag.sources
            if getattr(source, name) is not None
        }
        for name, where in WAITING.items()
    }
    families["partition_waiting_messages", "messages that are not yet read from a partition"] = {
        (("source", source.source), ("partition", partition)): messages
        for source in lag.sources
        for partition, messages in source.partitions.items()
    }
    families["sink_lacking_batches", "committed batches that are not yet in a sink"] = labelled(
        "sink", lag.sinks
    )
    for (name, about), values in families.items():
        if values:
            out.gauge(name, about, values)


def plan_facts(state: StateDir, status: StateStatus) -> dict[str, Any]:
    """Return the leaf plan of a state at its last commit."""
    entry = status.manifest.leaf_plan
    facts: dict[str, Any] = {
        "version": entry.version,
        "workers": entry.workers,
        "why": entry.why,
        **({"sized": entry.sized} if entry.sized else {}),
    }
    facts |= {"leaves": leaf_facts(state, status), "loads": worker_loads(status)}
    if status.asked is not None:
        facts["asked"] = status.asked.wish()
    return {"name": name_in_force(entry), **facts}


def worker_loads(status: StateStatus) -> list[float]:
    """Return each worker's share of the recent load; empty if nothing was counted."""
    if status.loads is None:
        return []
    loads = status.loads.by_worker
    return [round(share, 6) for share in (loads / (float(loads.sum()) or 1.0)).tolist()]


def name_in_force(entry: LeafPlanEntry) -> str:
    """Return the method of the plan in force, which a request may have changed."""
    if not entry.file:
        return entry.name if entry.name in UNPLANNED or entry.waits else "shared"
    if entry.method != "stripes":
        return entry.method
    # Stripes are in force until the plan itself has seen enough data.
    return entry.name if entry.next is not None else entry.by_hand or entry.name


def leaf_facts(state: StateDir, status: StateStatus) -> list[dict[str, Any]]:
    """Return leaves with their boxes in degrees and shares of the load, the heaviest first.

    A plan without leaves counts as one leaf, the world. Shares are 0 until work is counted.
    """
    entry = status.manifest.leaf_plan
    if not entry.file:
        return [{"leaf": 0, "worker": 0, "workers": [0], "box": WORLD, "load": 1.0, "terms": False}]
    loads = status.loads or unloaded(state, entry.file)
    shares = loads.load / (float(loads.load.sum()) or 1.0)
    facts = []
    for leaf in loads.heaviest(MOST_LEAVES):
        workers = loads.workers_of(leaf)
        facts.append(
            {
                "leaf": leaf,
                "worker": workers[0],
                "workers": workers,
                "box": list(loads.degrees(leaf)),
                "load": round(float(shares[leaf]), 6),
                "terms": len(workers) > 1,
            }
        )
    return facts


def unloaded(state: StateDir, name: str) -> LeafLoads:
    """Return the leaves of a plan with loads of 0."""
    leaves = read_plan(state.file(name)).leaves
    nothing = np.zeros((leaves.total, leaves.workers))
    return LeafLoads(leaves, np.zeros((0, *nothing.shape)), nothing, nothing)
