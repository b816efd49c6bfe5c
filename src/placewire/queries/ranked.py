"""Ranked answers: the nearest and the most relevant of the retained objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.ingest.queries import Query
from placewire.kernels.space.cells import points_to_codes
from placewire.model.regions import CIRCLE, Region, circle_bounds
from placewire.objects.kernels.best_of_rows import best_objects_of_query
from placewire.objects.kernels.nearest import nearest_in_lists
from placewire.objects.kernels.score import ROW_MASK, SECTION_SHIFT, Found
from placewire.objects.score_layers import NO_PARTS, NO_STRATA, columns_of
from placewire.objects.sections import (
    Section,
    Span,
    ground_of,
    name_object,
    stretches_of,
    whole_parts,
    words_in,
)
from placewire.text.lexicon import Lexicon, weigh_terms


class Best:
    """The best k so far, by a measure and seq, ascending."""

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
        """The measure beyond which nothing can enter."""
        return float(self.arrays[0][self.k - 1]) if self.count == self.k else math.inf


def answer_nearest(
    query: Query, span: Span, sections: Sequence[Section], with_data: bool
) -> dict[str, Any]:
    """The nearest objects: first those close along the curve, whose distance bounds the rest."""
    best = Best(query.k)
    code = int(points_to_codes(np.array([query.lon]), np.array([query.lat]))[0])
    asked = [words_in(section.retained, query.terms) for section in sections]
    for seeding in (True, False):
        within = min(query.within_m, best.worst)
        ground = None
        if math.isfinite(within):
            box = circle_bounds(query.lon, query.lat, within)
            ground = ground_of(Region(CIRCLE, box, (query.lon, query.lat, within)))
        for number, section in enumerate(sections):
            retained = section.retained
            present = asked[number][asked[number] >= 0]
            if present.size == 0 or (query.every and present.size < asked[number].size):
                continue
            stretches = whole_parts(section)
            if not seeding and ground is not None:
                stretches = stretches_of(section, ground)
            best.count = nearest_in_lists(
                stretches,
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


def answer_relevant(
    query: Query,
    span: Span,
    sections: Sequence[Section],
    lexicon: Lexicon | None,
    with_data: bool,
) -> dict[str, Any]:
    """The objects of the highest score."""
    idf, ask_norm = weigh_terms(query.terms, lexicon)
    weights = np.array(idf)
    found = Found(np.empty(query.k, np.int32), *np.empty((2, query.k), np.int64))
    count = 0
    for number, section in enumerate(sections):
        retained = section.retained
        asked = words_in(retained, query.terms)
        present = asked >= 0
        if not present.any():
            continue
        asked = asked[present]
        lengths = retained.list_offsets[asked + 1] - retained.list_offsets[asked]
        strata, layered = NO_STRATA, False
        if section.layers is not None:
            strata, layered = section.layers.deepen(retained, int(lengths.sum()))
        whole = section.rows.shape[0] == retained.part.size
        count = best_objects_of_query(
            float(query.lon),
            float(query.lat),
            float(query.alpha),
            float(query.reach_m),
            float(ask_norm),
            asked,
            weights[present],
            *span,
            number,
            columns_of(retained, parts=NO_PARTS if whole else section.rows),
            strata,
            layered,
            count,
            found,
        )
    return {
        "objects": [
            name_object(
                sections[found.kept[i] >> SECTION_SHIFT].retained,
                int(found.kept[i] & ROW_MASK),
                with_data,
                score=int(found.nano[i]) / 1e9,
            )
            for i in range(count)
        ]
    }
