"""Answer snapshot queries of the kind `nearest` from retained objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.ingest.queries import Query
from placewire.model.regions import CIRCLE, WHOLE_WORLD, Region, circle_bounds
from placewire.objects.kernels.find import NearestFound, NearestSearch, nearest_in_lists
from placewire.objects.sections import Section, Span, name_object, region_of, words_in

EVERYWHERE = region_of(WHOLE_WORLD)


def answer_nearest(
    query: Query, span: Span, sections: Sequence[Section], with_data: bool
) -> dict[str, Any]:
    """Find the nearest objects, bounded first by those close to the point on the Z-order curve."""
    lon, lat, within_m = float(query.lon), float(query.lat), float(query.within_m)
    found, count = make_room(query.k), 0
    searched = []
    for number, section in enumerate(sections):
        terms = words_in(section.retained, query.terms)
        present = terms[terms >= 0]
        if present.size and (present.size == terms.size or not query.every):
            searched.append((number, section, present))
    around = EVERYWHERE
    for seeding in (True, False):
        if not seeding:
            worst_m = float(found.distance_m[-1]) if count == query.k else math.inf
            radius_m = min(within_m, worst_m)
            if math.isfinite(radius_m):
                box = circle_bounds(lon, lat, radius_m)
                around = region_of(Region(CIRCLE, box, (lon, lat, radius_m)))
        search = NearestSearch(lon, lat, within_m, query.every, seeding, *span)
        for number, section, present in searched:
            count = nearest_in_lists(
                section.columns, section.rows, around, search, present, number, found, count
            )
    distances = found.distance_m.tolist()
    owners, rows = found.section.tolist(), found.row.tolist()
    return {
        "objects": [
            name_object(sections[owners[i]].retained, rows[i], with_data, distance_m=distances[i])
            for i in range(count)
        ]
    }


def make_room(k: int) -> NearestFound:
    """Return room for the k nearest objects."""
    return NearestFound(
        np.full(k, math.inf), np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64)
    )
