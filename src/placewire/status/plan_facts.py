"""Describe the leaf plan in force as one JSON object: its leaves, their workers and loads."""

from __future__ import annotations

from typing import Any

import numpy as np

from placewire.plans.names import UNPLANNED
from placewire.plans.ref import read_plan
from placewire.status.status import LeafLoads, StateStatus
from placewire.storage.layout import StateDir
from placewire.storage.manifest import LeafPlanEntry

WORLD = [-180.0, -90.0, 180.0, 90.0]
MOST_LEAVES = 1_000


def plan_facts(state: StateDir, status: StateStatus) -> dict[str, Any]:
    """Return the leaf plan of a state at its last commit."""
    entry = status.manifest.leaf_plan
    told: dict[str, Any] = {
        "version": entry.version,
        "workers": entry.workers,
        "why": entry.why,
        **({"sized": entry.sized} if entry.sized else {}),
    }
    told |= {"leaves": leaf_facts(state, status), "loads": worker_loads(status)}
    if status.asked is not None:
        told["asked"] = status.asked.wish()
    return {"name": name_in_force(entry), **told}


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
    # Stripes are in force until enough was seen for the plan itself.
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
    """Return the leaves of a plan with loads of 0."""
    leaves = read_plan(state.file(name)).leaves
    nothing = np.zeros((leaves.total, leaves.workers))
    return LeafLoads(leaves, np.zeros((0, *nothing.shape)), nothing, nothing)
