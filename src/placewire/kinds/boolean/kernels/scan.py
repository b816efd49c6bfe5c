"""Scanning: matching with no index at all, the oracle of the indexed kernel."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel
from placewire.kernels.space.regions import region_contains_point
from placewire.kernels.text.term_sets import terms_satisfy_literals
from placewire.model.subscriptions import NEVER_US


@kernel
def objects_satisfying_rows(
    lons: np.ndarray,
    lats: np.ndarray,
    nows_us: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    expires_us: np.ndarray,
    region_kind: np.ndarray,
    box: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    literal_true: np.ndarray,
    literal_false: np.ndarray,
    dead: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Every (object, row) that matches, by looking at each pair; returns as the indexed kernel."""
    out_object = np.empty(1024, np.uint32)
    out_row = np.empty(1024, np.uint32)
    found = 0
    next_expiry = NEVER_US
    for o in range(lons.size):
        for row in range(expires_us.size):
            if dead.size and ((dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1)):
                continue
            if expires_us[row] <= nows_us[o]:
                continue
            if not region_contains_point(
                region_kind[row],
                box[row],
                shape[shape_offsets[row] : shape_offsets[row + 1]],
                lons[o],
                lats[o],
            ):
                continue
            if not terms_satisfy_literals(
                terms,
                term_offsets[o],
                term_offsets[o + 1],
                literal_term,
                literal_true,
                literal_false,
                literal_offsets[row],
                literal_offsets[row + 1],
            ):
                continue
            if found == out_object.size:
                out_object = np.append(out_object, np.empty(found, np.uint32))
                out_row = np.append(out_row, np.empty(found, np.uint32))
            out_object[found] = o
            out_row[found] = row
            found += 1
            next_expiry = min(next_expiry, expires_us[row])
    return out_object[:found], out_row[:found], next_expiry, lons.size * expires_us.size
