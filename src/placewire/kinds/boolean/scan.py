"""The scan: every object against every row. The oracle of the index, and its null form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kinds.boolean.kernels.scan import objects_satisfying_rows
from placewire.model.subscriptions import SubscriptionRows


def scan_rows(
    lon: NDArray[np.float64],
    lat: NDArray[np.float64],
    now_us: NDArray[np.int64],
    term_offsets: NDArray[np.int64],
    terms: NDArray[np.uint64],
    rows: SubscriptionRows,
    dead: NDArray[np.uint64],
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], int, int]:
    """The same as matching with an index, by looking at every pair."""
    objects, matched, next_expiry_us, candidates = objects_satisfying_rows(
        lon,
        lat,
        now_us,
        term_offsets,
        terms,
        rows.expires_us,
        rows.region_kind,
        rows.box,
        rows.shape_offsets,
        rows.shape,
        rows.literal_offsets,
        rows.literal_term,
        rows.literal_true,
        rows.literal_false,
        dead,
    )
    return objects, matched, next_expiry_us, candidates
