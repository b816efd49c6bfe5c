"""How a state stands: its plans, and what workers and leaves did lately; read without a lock."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.engine.calibrating import calibrate
from placewire.engine.census import Census
from placewire.engine.delivery import Cursor, read_cursor
from placewire.engine.planref import read_plan
from placewire.engine.signals import Signals
from placewire.engine.tally import BY_LEAF
from placewire.model.errors import Unusable
from placewire.model.subscriptions import BOOLEAN, NEAREST, RELEVANT, TRENDING
from placewire.plan.cost import LoadModel, read_cost
from placewire.plan.leaves import Leaves
from placewire.plan.sample import SIDE
from placewire.state.asking import Asked, read_waiting
from placewire.state.lag import Lag, read_lag
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest, WorkersEntry, read_latest
from placewire.state.store import open_retained

KINDS = {BOOLEAN: "boolean", NEAREST: "nearest", RELEVANT: "relevant", TRENDING: "trending"}
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
    asked: Asked | None = None  # by hand, and not taken up yet


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
    counted = Census(state).count(manifest)
    live = {KINDS.get(kind, str(kind)): count for kind, count in counted.items()}
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
    cursors = {name: read_cursor(state, name) or Cursor() for name in lag.sinks}
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
