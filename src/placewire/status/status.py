"""How a state stands: its plans, and what workers and leaves did lately; read without a lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.model.errors import Unusable
from placewire.model.kinds import name_of_kind, number_of_kind
from placewire.objects.store import open_retained
from placewire.plans.cost.calibrate import calibrate
from placewire.plans.cost.model import LoadModel, read_cost
from placewire.plans.leaves import Leaves
from placewire.plans.names import PLANS
from placewire.plans.rebalance.adjustment import imbalance
from placewire.plans.rebalance.signals import Signals
from placewire.plans.rebalance.tally import BY_LEAF
from placewire.plans.ref import read_plan
from placewire.plans.sample.sample import SIDE
from placewire.segments.counts import SubscriptionCounts
from placewire.sinks.delivery import SinkCursor, read_cursor
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, WorkersEntry, read_latest
from placewire.storage.notes import Lag, PlanRequest, read_lag, read_waiting

MOST_OBJECTS = 20_000  # that a map shows
TRIES = 3  # a writer may delete a file between the manifest and our look at it


class LeafLoads(NamedTuple):
    """A boolean plan's leaves with what was done in each lately, by worker."""

    leaves: Leaves
    counts: NDArray[np.float64]  # [count, leaf, worker], the counts being those of BY_LEAF
    held: NDArray[np.float64]  # subscriptions by leaf and worker
    loads: NDArray[np.float64]  # by leaf and worker

    @property
    def load(self) -> NDArray[np.float64]:
        """What each leaf costs."""
        summed: NDArray[np.float64] = self.loads.sum(axis=1)
        return summed

    @property
    def by_worker(self) -> NDArray[np.float64]:
        """What each worker costs."""
        summed: NDArray[np.float64] = self.loads.sum(axis=0)
        return summed

    @property
    def named_counts(self) -> dict[str, NDArray[np.float64]]:
        """What was done by leaf and worker, by name."""
        return dict(zip(BY_LEAF, self.counts, strict=True))

    def of_leaf(self, leaf: int) -> dict[str, float]:
        """What was done in a leaf, by name."""
        done = zip(BY_LEAF, self.counts[:, leaf].sum(axis=1).tolist(), strict=True)
        return {"subscriptions": float(self.held[leaf].sum()), **dict(done)}

    def workers_of(self, leaf: int) -> list[int]:
        """Who has parts of a leaf."""
        first, last = self.leaves.part_offsets[leaf : leaf + 2]
        return sorted(set(self.leaves.part_worker[first:last].tolist()))

    def heaviest(self, most: int) -> list[int]:
        """The leaves that cost most, first the heaviest."""
        found: list[int] = np.argsort(-self.load, kind="stable")[:most].tolist()
        return found

    def degrees(self, leaf: int) -> tuple[float, float, float, float]:
        """West, south, east, north of a leaf."""
        west, south, east, north = self.leaves.box[leaf].tolist()
        across, down = 360 / SIDE, 180 / SIDE
        return west * across - 180, south * down - 90, east * across - 180, north * down - 90


class Standing(NamedTuple):
    """A state as of its last commit; `codes` u32 are the cells of some retained objects."""

    manifest: Manifest
    subscriptions: dict[str, int]
    workers: list[WorkersEntry]  # of the last batch that each kind had
    loads: LeafLoads | None
    codes: NDArray[np.uint32]
    lag: Lag | None  # as the run noted it last, but sinks as they are now
    asked: PlanRequest | None = None  # by hand, and not taken up yet


def read_standing(root: Path) -> Standing:
    """Read how a state stands; raises Unusable."""
    state = open_state(root)
    for left in range(TRIES, 0, -1):
        try:
            return look(state)
        except Unusable:
            if left == 1:
                raise
    raise AssertionError("unreachable")


def open_state(root: Path) -> StateDir:
    """A state directory that is there; raises Unusable."""
    state = StateDir.given(root)
    state.check_made()
    return state


def look(state: StateDir) -> Standing:
    manifest = read_latest(state)
    if manifest is None:
        raise Unusable(f"state {state}: has no committed batch yet")
    counted = SubscriptionCounts(state).count(manifest)
    live = {name_of_kind(kind): count for kind, count in counted.items()}
    history = manifest.signals.history if manifest.signals is not None else []
    last = {entry.kind: entry for entry in history}
    parts = [np.empty(0, np.uint32)]
    for kept in manifest.store[-8:]:
        parts.append(open_retained(state.file(kept.name)).code)
    codes = np.concatenate(parts)
    step = max(1, codes.size // MOST_OBJECTS)
    return Standing(
        manifest, live, [last[kind] for kind in sorted(last)], look_at_leaves(state, manifest),
        np.sort(codes[::step]), look_at_lag(state, manifest), read_waiting(state, manifest.plan),
    )  # fmt: skip


def look_at_lag(state: StateDir, manifest: Manifest) -> Lag | None:
    """How far sources and sinks are behind, if a run is known to have some."""
    lag = read_lag(state)
    if lag is None:
        return None
    cursors = {name: read_cursor(state, name) or SinkCursor() for name in lag.sinks}
    lacking = {name: manifest.batch - cursor.batch for name, cursor in cursors.items()}
    return msgspec.structs.replace(
        lag, sinks={name: max(0, batches) for name, batches in lacking.items()}
    )


def look_at_leaves(state: StateDir, manifest: Manifest) -> LeafLoads | None:
    """The boolean plan's leaves, if workers counted by them."""
    plan: dict[str, Any] = manifest.plan
    if "file" not in plan or manifest.signals is None or manifest.signals.file is None:
        return None
    leaves = read_plan(state.file(plan["file"])).leaves
    signals = Signals(state, manifest.signals)
    if signals.counts.shape[1:] != (leaves.total, leaves.workers):
        return None
    cost: LoadModel = read_cost(plan["cost"]) if "cost" in plan else calibrate().load
    objects, candidates = signals.counts[:2]
    loads = cost.per_object * objects + cost.per_posting * candidates
    return LeafLoads(leaves, signals.counts, signals.held, loads)


COUNTS = ("objects", "candidates", "matches", "bytes", "busy_s")
BY_WORKER = ("subscriptions", *COUNTS)
SAID = (
    "name", "method", "by_hand", "workers", "sized", "version", "why", "changed", "next_why",
    "next_workers",
)  # fmt: skip

BESIDE = ("method", "version", "subscriptions")

Metric = tuple[str, str, dict[str, float]]


def plans_of(standing: Standing) -> dict[str, dict[str, Any]]:
    """The plan entry of each kind that has plans."""
    return {name: standing.manifest.plan_of(number_of_kind(name)) for name in PLANS}


def told_of(entry: dict[str, Any]) -> dict[str, Any]:
    """What is told of a plan."""
    told = {name: entry[name] for name in SAID if name in entry}
    if "beside" in entry:
        told["beside"] = {name: entry["beside"][name] for name in BESIDE}
    return told


def to_facts(standing: Standing, most: int) -> dict[str, Any]:
    """The same as one JSON object."""
    manifest = standing.manifest
    facts: dict[str, Any] = {
        "batch": manifest.batch,
        "events": manifest.counters.events,
        "objects": manifest.counters.objects,
        "results": manifest.counters.results,
        "dead_letters": manifest.counters.dead_letters,
        "subscriptions": standing.subscriptions,
        "plans": {kind: told_of(entry) for kind, entry in plans_of(standing).items()},
        "workers": {
            name_of_kind(entry.kind): {
                "batch": entry.batch,
                **{name: getattr(entry, name) for name in BY_WORKER},
            }
            for entry in standing.workers
        },
        "history": [
            {"batch": entry.batch, "kind": name_of_kind(entry.kind)}
            | {name: getattr(entry, name) for name in BY_WORKER}
            for entry in (manifest.signals.history if manifest.signals is not None else [])
        ],
    }
    if standing.asked is not None:
        facts["asked"] = standing.asked.wish()
    if standing.lag is not None:
        facts["lag"] = msgspec.to_builtins(standing.lag)
    loads = standing.loads
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


class Families:
    """Metrics in the text format that Prometheus reads, a family after another."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, name: str, kind: str, about: str, values: dict[str, float]) -> None:
        self.lines.append(f"# HELP placewire_{name} {about}")
        self.lines.append(f"# TYPE placewire_{name} {kind}")
        self.lines += [f"placewire_{name}{labels} {value:.15g}" for labels, value in values.items()]

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def to_metrics(standing: Standing, most: int) -> str:
    """All that is known of a state, for Prometheus."""
    manifest = standing.manifest
    families = Families()
    add = families.add
    counters = manifest.counters
    for name in ("events", "objects", "results", "dead_letters"):
        about = f"{name.replace('_', ' ')} since the log began"
        add(f"{name}_total", "counter", about, {"": float(getattr(counters, name))})
    add("batch", "gauge", "the last committed batch", {"": float(manifest.batch)})
    live = {f'{{kind="{kind}"}}': float(n) for kind, n in standing.subscriptions.items()}
    add("subscriptions", "gauge", "live subscriptions", live)
    if standing.lag is not None:
        for name, about, values in lag_metrics(standing.lag):
            add(name, "gauge", about, values)
    add_loads(families, standing, most)
    return families.text()


def load_metrics(standing: Standing, most: int) -> str:
    """Plans, workers and leaves alone."""
    families = Families()
    add_loads(families, standing, most)
    return families.text()


def add_loads(families: Families, standing: Standing, most: int) -> None:
    """The plans in force, and what workers and leaves did."""
    add = families.add
    versions = {
        f'{{kind="{kind}"}}': float(entry["version"])
        for kind, entry in plans_of(standing).items()
        if entry
    }
    add("plan_version", "gauge", "the plan in force", versions)
    beside = standing.manifest.plan.get("beside", {})
    older = {"": float(beside.get("subscriptions", 0))}
    add("older_plan_subscriptions", "gauge", "go by an older plan beside the one in force", older)
    for count in BY_WORKER:
        values = {
            f'{{kind="{name_of_kind(entry.kind)}",worker="{worker}"}}': float(value)
            for entry in standing.workers
            for worker, value in enumerate(getattr(entry, count))
        }
        add(f"worker_{count}", "gauge", f"{count} of a worker in the last batch", values)
    loads = standing.loads
    if loads is not None:
        worst = imbalance(loads.by_worker)
        add("imbalance", "gauge", "the largest load of a worker over the mean", {"": worst})
        shown = [
            (leaf, worker) for leaf in loads.heaviest(most) for worker in loads.workers_of(leaf)
        ]
        for name, table in {"subscriptions": loads.held, **loads.named_counts}.items():
            values = {
                f'{{leaf="{leaf}",worker="{worker}"}}': float(table[leaf, worker])
                for leaf, worker in shown
            }
            add(f"leaf_{name}", "gauge", f"{name} of a leaf at a worker lately", values)


def lag_metrics(lag: Lag) -> Iterator[Metric]:
    """Names, meanings and values by labels, for Prometheus."""
    for name, about in (
        ("messages", "messages that wait in a topic"),
        ("files", "files that wait in a folder"),
        ("bytes", "bytes that wait in a folder"),
        ("versions", "versions that wait in a table"),
    ):
        values = {
            label(source=source.source): float(getattr(source, name))
            for source in lag.sources
            if getattr(source, name) is not None
        }
        if values:
            yield f"source_waiting_{name}", about, values
    partitions = {
        label(source=source.source, partition=partition): float(messages)
        for source in lag.sources
        for partition, messages in source.partitions.items()
    }
    if partitions:
        yield "partition_waiting_messages", "messages that wait in a partition", partitions
    lacking = {label(sink=name): float(batches) for name, batches in lag.sinks.items()}
    if lacking:
        yield "sink_lacking_batches", "committed batches that a sink lacks", lacking


def label(**names: str) -> str:
    """Labels as Prometheus reads them: quoted as JSON quotes."""
    pairs = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in names.items())
    return "{" + ",".join(pairs) + "}"
