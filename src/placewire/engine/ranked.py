"""Ranked answers: the nearest and the most relevant of the retained objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.engine.querying import Query
from placewire.engine.sections import (
    Section,
    Span,
    ground_of,
    name_object,
    stretches_of,
    whole_parts,
    words_in,
)
from placewire.kernels.cells import points_to_codes
from placewire.kernels.searching import nearest_in_lists, relevant_in_lists
from placewire.model.regions import CIRCLE, Region, circle_bounds
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
    best = Best(query.k)
    idf, ask_norm = weigh_terms(query.terms, lexicon)
    weights = np.array(idf)
    for number, section in enumerate(sections):
        retained = section.retained
        asked = words_in(retained, query.terms)
        present = asked >= 0
        if not present.any():
            continue
        best.count = relevant_in_lists(
            whole_parts(section),
            query.lon,
            query.lat,
            query.alpha,
            query.reach_m,
            retained.lon,
            retained.lat,
            retained.ts_us,
            retained.seq,
            retained.term_offsets,
            retained.terms,
            retained.norm,
            retained.list_offsets,
            retained.lists,
            asked[present],
            weights[present],
            ask_norm,
            *span,
            number,
            *best.arrays,
            best.count,
        )
    scores, _, owners, rows = best.arrays
    return {
        "objects": [
            name_object(
                sections[owners[i]].retained, int(rows[i]), with_data, score=-float(scores[i])
            )
            for i in range(best.count)
        ]
    }
