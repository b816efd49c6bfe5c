"""Answer snapshot queries of the kind `nearest` from retained objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.ingest.queries import Query
from placewire.kernels.space.cells import points_to_codes
from placewire.model.regions import CIRCLE, Region, circle_bounds
from placewire.objects.kernels.nearest import nearest_in_lists
from placewire.objects.sections import (
    Section,
    Span,
    name_object,
    ranges_of,
    region_of,
    whole_parts,
    words_in,
)


class NearestSoFar:
    """The k nearest objects found so far, by distance and seq, ascending."""

    def __init__(self, k: int) -> None:
        self.arrays = (
            np.full(k, math.inf),
            np.zeros(k, np.int64),
            np.zeros(k, np.int64),
            np.zeros(k, np.int64),
        )
        self.k = k
        self.count = 0

    @property
    def worst(self) -> float:
        """The distance beyond which no object can enter."""
        return float(self.arrays[0][self.k - 1]) if self.count == self.k else math.inf


def answer_nearest(
    query: Query, span: Span, sections: Sequence[Section], with_data: bool
) -> dict[str, Any]:
    """Find the nearest objects: first those close on the space-filling curve, to bound the rest."""
    best = NearestSoFar(query.k)
    code = int(points_to_codes(np.array([query.lon]), np.array([query.lat]))[0])
    asked = [words_in(section.retained, query.terms) for section in sections]
    for seeding in (True, False):
        within = min(query.within_m, best.worst)
        region = None
        if math.isfinite(within):
            box = circle_bounds(query.lon, query.lat, within)
            region = region_of(Region(CIRCLE, box, (query.lon, query.lat, within)))
        for number, section in enumerate(sections):
            retained = section.retained
            present = asked[number][asked[number] >= 0]
            if present.size == 0 or (query.every and present.size < asked[number].size):
                continue
            ranges = whole_parts(section)
            if not seeding and region is not None:
                ranges = ranges_of(section, region)
            best.count = nearest_in_lists(
                ranges,
                seeding,
                code,
                query.lon,
                query.lat,
                query.within_m,
                retained.lon,
                retained.lat,
                retained.ts_us,
                retained.seq,
                retained.code,
                retained.term_offsets,
                retained.terms,
                retained.list_offsets,
                retained.lists,
                present,
                query.every,
                *span,
                number,
                *best.arrays,
                best.count,
            )
    distances, _, owners, rows = best.arrays
    return {
        "objects": [
            name_object(
                sections[owners[i]].retained,
                int(rows[i]),
                with_data,
                distance_m=float(distances[i]),
            )
            for i in range(best.count)
        ]
    }
