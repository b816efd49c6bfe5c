"""The plan in force: kept in the manifest, versioned, changed only between two batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from placewire.engine.dispatcher import BlockSummary
from placewire.model.errors import Unusable
from placewire.plan.grid import GRID_LEVEL, GridPlan, plan_blindly, plan_by_load
from placewire.route.protocol import CellRoute, Route, StayRoute
from placewire.state.arrays import open_arrays, write_arrays
from placewire.state.layout import StateDir

PLANS = ("shared", "grid", "scan")
ENOUGH_OBJECTS = 1_000


class Planner:
    """Holds the plan, and makes its next version from the loads that blocks report."""

    def __init__(self, state: StateDir, name: str, workers: int, saved: dict[str, Any]) -> None:
        if name not in PLANS:
            raise Unusable(f"plan: must be one of {', '.join(PLANS)}, got {name!r}")
        self.state = state
        self.name = name
        self.saved = saved if saved.get("name") == name and saved.get("workers") == workers else {}
        self.loads = np.zeros(1 << (2 * GRID_LEVEL), np.int64)
        self.workers = workers
        self.grid = plan_blindly(workers)
        if "file" in self.saved:
            table = open_arrays(state.file(self.saved["file"])).arrays["cell_worker"]
            self.grid = GridPlan(int(self.saved["version"]), workers, table)

    def route(self) -> Route:
        """The route of the next batch."""
        if self.name != "grid":
            return StayRoute()
        return CellRoute(GRID_LEVEL, self.grid.cell_worker)

    def next_version(self, batch: int, blocks: list[BlockSummary]) -> dict[str, Any]:
        """The plan's entry for the manifest: regrouped once enough objects were seen."""
        if self.name != "grid":
            return {"name": self.name, "workers": self.workers, "version": 0}
        for block in blocks:
            for cell, objects in block.loads:
                self.loads[cell] += objects
        if self.grid.version == 0 and self.loads.sum() >= ENOUGH_OBJECTS:
            self.grid = plan_by_load(self.loads, self.workers, 1)
            file = self.state.new_name(batch, "plan")
            write_arrays(self.state.file(file), {"cell_worker": self.grid.cell_worker})
            self.saved = {"file": file}
        return {
            **{key: value for key, value in self.saved.items() if key == "file"},
            "name": self.name,
            "workers": self.workers,
            "version": self.grid.version,
        }
