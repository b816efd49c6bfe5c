"""A picture of the load: the plan's leaves in the colours of their workers, darker where more is.

It is drawn as pictures of plans are, on the same page.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placewire.cli.drawing import (
    INK,
    counted,
    draw_bars,
    draw_map,
    find_view,
    lay_out,
    number_leaves,
    paint_leaves,
    scatter_objects,
    worker_colours,
)
from placewire.plans.rebalance.adjustment import imbalance
from placewire.status.status import LeafLoads

PALEST = 0.18  # how much colour a leaf without load keeps


def draw_load_map(path: Path, loads: LeafLoads, codes: NDArray[np.uint32]) -> None:
    """Draw the load of each leaf by its own area, and of each worker as a bar."""
    lons, lats = scatter_objects(codes)
    view = find_view(lons, lats)
    page = lay_out(view)
    colours = worker_colours(loads.leaves.workers)
    pixels = paint_leaves(loads.leaves, view, colours, page.wide_px, page.high_px)
    leaf = number_leaves(loads.leaves, view, page.wide_px, page.high_px)
    share = np.sqrt(loads.load / max(float(loads.load.max(initial=0.0)), 1e-300))
    keep = (PALEST + (1.0 - PALEST) * share)[leaf][..., None]
    pixels = keep * (0.82 * pixels) + (1.0 - keep)
    the_map = page.add_map()
    draw_map(the_map, view, pixels, lons, lats)
    title = f"{loads.leaves.name}: {counted(loads.leaves.total, 'leaf', 'leaves')} at"
    title += f" {counted(loads.leaves.workers, 'worker')}, the busiest has"
    title += f" {imbalance(loads.by_worker):.2f} x the mean load"
    the_map.set_title(title, loc="left", color=INK, fontsize=12, pad=12)
    the_map.annotate(
        "the darker, the more load a leaf had lately; dots are retained objects",
        (1, 0), (0, -34), "axes fraction", "offset points", ha="right", fontsize=9, color=INK,
    )  # fmt: skip
    draw_bars(page.add_bars(), loads.by_worker, colours, 72 * page.high)
    page.figure.savefig(path)
