"""The boolean plan in force as one JSON object: its leaves, whose they are, what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from placewire.plans.names import UNPLANNED
from placewire.plans.ref import read_plan
from placewire.status.status import LeafLoads, Standing
from placewire.storage.layout import StateDir
from placewire.storage.manifest import LeafPlanEntry

WORLD = [-180.0, -90.0, 180.0, 90.0]
MOST_LEAVES = 1_000


def plan_facts(state: StateDir, standing: Standing) -> dict[str, Any]:
    """The plan of a state as of a commit."""
    entry = standing.manifest.leaf_plan
    told: dict[str, Any] = {
        "version": entry.version,
        "workers": entry.workers,
        "why": entry.why,
        **({"sized": entry.sized} if entry.sized else {}),
    }
    told |= {"leaves": leaf_facts(state, standing), "loads": worker_loads(standing)}
    if standing.asked is not None:
        told["asked"] = standing.asked.wish()
    return {"name": name_in_force(entry), **told}


def worker_loads(standing: Standing) -> list[float]:
    """What each worker had of the load lately, as shares; none where nothing is counted."""
    if standing.loads is None:
        return []
    loads = standing.loads.by_worker
    return [round(share, 6) for share in (loads / (float(loads.sum()) or 1.0)).tolist()]


def name_in_force(entry: LeafPlanEntry) -> str:
    """The plan by its method: another one than the run began with, if somebody asked for it."""
    if not entry.file:
        return entry.name if entry.name in UNPLANNED or entry.waits else "shared"
    if entry.method != "stripes":
        return entry.method
    # Stripes are in force until enough was seen for the plan itself.
    return entry.name if entry.next is not None else entry.by_hand or entry.name


def leaf_facts(state: StateDir, standing: Standing) -> list[dict[str, Any]]:
    """Leaves with their boxes in degrees and their shares of the load, the heaviest first.

    Of a plan that does not cut that is the world; the share is 0 where nothing is counted yet.
    """
    entry = standing.manifest.leaf_plan
    if not entry.file:
        return [{"leaf": 0, "worker": 0, "workers": [0], "box": WORLD, "load": 1.0, "terms": False}]
    loads = standing.loads or unloaded(state, entry.file)
    shares = loads.load / (float(loads.load.sum()) or 1.0)
    told = []
    for leaf in loads.heaviest(MOST_LEAVES):
        workers = loads.workers_of(leaf)
        told.append(
            {
                "leaf": leaf,
                "worker": workers[0],
                "workers": workers,
                "box": list(loads.degrees(leaf)),
                "load": round(float(shares[leaf]), 6),
                "terms": len(workers) > 1,
            }
        )
    return told


def unloaded(state: StateDir, name: str) -> LeafLoads:
    """The leaves of a plan that nothing was counted by."""
    leaves = read_plan(state.file(name)).leaves
    nothing = np.zeros((leaves.total, leaves.workers))
    return LeafLoads(leaves, np.zeros((0, *nothing.shape)), nothing, nothing)
