"""Strata of retained objects, made when searches for the most relevant ones are worth it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.index.retained import Retained
from placewire.kernels.jit import read_only
from placewire.kernels.strata import (
    PAGE,
    Strata,
    lists_to_bitmaps,
    norms_to_inverse,
    points_to_balls,
    rows_to_points,
    terms_to_places,
)

MOST_LAYERS = 64
LAYER_PAGES = 12  # of a layer in cell order: about as fine in space as layers are in norm


def build_strata(retained: Retained) -> Strata:
    """Put the rows of a file in layers."""
    inverse = norms_to_inverse(retained.norm, retained.term_offsets)
    rows = rows_in_layers(retained, inverse)
    points = rows_to_points(rows, retained.lon, retained.lat)
    inverse = inverse[rows]
    balls, greatest = points_to_balls(points, inverse)
    bitmap, count, offsets = lists_to_bitmaps(retained.list_offsets, rows.size)
    places, bits = terms_to_places(
        rows, retained.term_offsets, retained.terms, bitmap, count, offsets
    )
    columns = (rows, inverse, points, greatest, balls, offsets, places, bitmap, bits)
    return Strata(*map(read_only, columns))


def rows_in_layers(retained: Retained, inverse: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The rows u32[n] by layers of falling inverse norm, each in cell order."""
    layers = int(np.clip(retained.total // (LAYER_PAGES * PAGE), 1, MOST_LAYERS))
    edges = np.quantile(inverse, np.arange(1, layers) / layers)
    layer = (layers - 1 - np.searchsorted(edges, inverse)).astype(np.uint8)
    if retained.part.size == 1:
        return np.argsort(layer, kind="stable").astype(np.uint32)
    order = np.argsort(retained.code, kind="stable")
    return order[np.argsort(layer[order], kind="stable")].astype(np.uint32)
