"""`placewire plan --statistics`: where objects come from, who asks there and for what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console

from placewire.cli.tables import figure, print_rows
from placewire.plans.sample.sample import CRQ, SIDE, Sample
from placewire.plans.sample.statistics import cell_statistics, gather_statistics

MOST_CELLS = 20
MOST_ASKED = 10  # keywords whose share of all tells how skewed the asking is
HEADINGS = (
    ("cell: lon", "and lat"),
    ("objects", ""),
    ("obj.", "%"),
    ("asking", "%"),
    ("key-", "words"),
    ("top 10", "%"),
    ("wordless", "%"),
)


def print_statistics(console: Console, sample: Sample) -> None:
    """The cells of the statistics quadtree that are not divided, the fullest first."""
    tree = gather_statistics(sample)
    asking = tree.probabilities[:, CRQ]
    cells = np.flatnonzero(tree.first_child < 0)
    cells = cells[np.lexsort((-asking[cells], -tree.objects[cells]))][:MOST_CELLS]
    rows = []
    for at in cells.tolist():
        cell = cell_statistics(tree, at)
        _, counts = cell.keywords_of(CRQ)
        top = np.sort(counts)[::-1][:MOST_ASKED].sum()
        rows.append(
            [
                name_box(tree.box[at].tolist()),
                f"{cell.objects:,}",
                figure(100 * cell.objects / max(sample.objects, 1)),
                figure(100 * asking[at]),
                f"{counts.size:,}",
                figure(100 * top / max(int(counts.sum()), 1)),
                figure(100 * cell.chances[CRQ, 0]),
            ]
        )
    print_rows(console, HEADINGS, rows)


def name_box(box: Sequence[int]) -> str:
    """A box of plan cells in degrees."""
    west, east = (360 * column / SIDE - 180 for column in box[0::2])
    south, north = (180 * row / SIDE - 90 for row in box[1::2])
    return f"{west:.2f}..{east:.2f} {south:.2f}..{north:.2f}"
