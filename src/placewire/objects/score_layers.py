"""Page layers of retained objects, built once searches by relevance repay the cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.objects.index import Retained
from placewire.objects.kernels.score import Columns
from placewire.objects.kernels.score_layers import (
    PAGE,
    PageLayers,
    cards_to_circles,
    lists_to_bitmaps,
    norms_to_inverse,
    rows_to_cards,
    rows_to_records,
    terms_to_places,
)

LEAST_ROWS = 256  # minimum size of a file
MOST_LAYERS = 64
LAYER_PAGES = 12  # pages per layer in cell order; a guess, not measured


NO_ORDER = np.empty(0, np.int64)
NO_PARTS = np.empty((0, 2), np.int64)


class Layers:
    """The page layers of one file, built once the lists scanned instead cost as much."""

    def __init__(self) -> None:
        self.page_layers: PageLayers | None = None
        self.walked = 0

    def deepen(self, retained: Retained, postings: int) -> tuple[PageLayers, bool]:
        """Record a search of `postings`; return the page layers and whether they are built."""
        if self.page_layers is None:
            self.walked += postings
            if retained.total < LEAST_ROWS or self.walked < retained.terms.size:
                return NO_PAGE_LAYERS, False
            self.page_layers = build_page_layers(retained)
        return self.page_layers, True


def build_page_layers(retained: Retained) -> PageLayers:
    """Sort the rows of a file into layers."""
    inverse = norms_to_inverse(retained.norm, retained.term_offsets)
    rows = rows_in_layers(retained, inverse)
    cards = rows_to_cards(rows, retained.lon, retained.lat, inverse)
    marks = cards.view(np.uint64)
    records = np.empty((rows.size, 8), np.int64)
    values = records.view(np.float64)
    r = retained
    rows_to_records(rows, r.lon, r.lat, r.ts_us, r.seq, r.term_offsets, r.norm, records, values)
    bitmap, count, offsets = lists_to_bitmaps(retained.list_offsets, rows.size)
    places, bits = terms_to_places(
        rows, retained.term_offsets, retained.terms, bitmap, count, offsets, marks
    )
    page_circles, page_inverse = cards_to_circles(cards, PAGE)
    circles, _ = cards_to_circles(cards, 64)
    columns = records, values, cards, marks, page_inverse, page_circles, circles
    return PageLayers(*map(read_only, (*columns, offsets, places, bitmap, bits)))


def columns_of(
    retained: Retained,
    word_order: NDArray[np.int64] = NO_ORDER,
    parts: NDArray[np.int64] = NO_PARTS,
) -> Columns:
    """Return the columns that kernels search; rows look words up by hash, queries by number."""
    r = retained
    return Columns(
        r.word_hash,
        read_only(word_order),
        r.code,
        r.lon,
        r.lat,
        r.ts_us,
        r.seq,
        r.term_offsets,
        r.terms,
        r.norm,
        r.list_offsets,
        r.lists,
        read_only(parts),
    )


def rows_in_layers(retained: Retained, inverse: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return the rows u32[n] by layers of descending 1 / norm, each in cell order."""
    layers = int(np.clip(retained.total // (LAYER_PAGES * PAGE), 1, MOST_LAYERS))
    edges = np.quantile(inverse, np.arange(1, layers) / layers)
    layer = (layers - 1 - np.searchsorted(edges, inverse)).astype(np.uint8)
    if retained.part.size == 1:
        return np.argsort(layer, kind="stable").astype(np.uint32)
    order = np.argsort(retained.code, kind="stable")
    return order[np.argsort(layer[order], kind="stable")].astype(np.uint32)


NO_PAGE_LAYERS = PageLayers(
    *map(
        read_only,
        (
            np.empty((0, 8), np.int64),
            np.empty((0, 8)),
            np.empty((0, 8), np.float32),
            np.empty((0, 4), np.uint64),
            np.empty(0),
            np.empty((0, 4)),
            np.empty((0, 4)),
            np.zeros(1, np.int64),
            np.empty(0, np.uint32),
            np.empty(0, np.int32),
            np.empty((0, 0), np.uint64),
        ),
    )
)
