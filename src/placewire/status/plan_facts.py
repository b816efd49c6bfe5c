"""The boolean plan in force as one JSON object: its leaves, whose they are, what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from placewire.plans.names import UNPLANNED
from placewire.plans.ref import read_plan
from placewire.status.status import LeafLoads, Standing
from placewire.storage.layout import StateDir

WORLD = [-180.0, -90.0, 180.0, 90.0]
MOST_LEAVES = 1_000
SAID = ("version", "workers", "why", "sized")


def plan_facts(state: StateDir, standing: Standing) -> dict[str, Any]:
    """The plan of a state as of a commit."""
    entry = standing.manifest.plan
    told = {name: entry[name] for name in SAID if name in entry}
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


def name_in_force(entry: dict[str, Any]) -> str:
    """The plan by its method: another one than the run began with, if somebody asked for it."""
    name = str(entry["name"])
    if "file" not in entry:
        return name if name in UNPLANNED or entry.get("waits") else "shared"
    if entry.get("method", "stripes") != "stripes":
        return str(entry["method"])
    # Stripes are what there is until enough was seen for the plan itself.
    return name if "next_why" in entry else str(entry.get("by_hand") or name)


def leaf_facts(state: StateDir, standing: Standing) -> list[dict[str, Any]]:
    """Leaves with their boxes in degrees and their shares of the load, the heaviest first.

    Of a plan that does not cut that is the world; the share is 0 where nothing is counted yet.
    """
    entry = standing.manifest.plan
    if "file" not in entry:
        return [{"leaf": 0, "worker": 0, "workers": [0], "box": WORLD, "load": 1.0, "terms": False}]
    loads = standing.loads or unloaded(state, entry["file"])
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
