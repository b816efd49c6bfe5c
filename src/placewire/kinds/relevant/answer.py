"""Answer snapshot queries of the kind `relevant` from retained objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.ingest.queries import Query
from placewire.objects.kernels.best_of_rows import best_objects_of_query, make_ask
from placewire.objects.kernels.score import ROW_MASK, SECTION_SHIFT, ScoredObjects
from placewire.objects.score_layers import NO_PAGE_LAYERS
from placewire.objects.sections import Section, Span, name_object, words_in
from placewire.text.words import Lexicon, weigh_terms


def answer_relevant(
    query: Query, span: Span, sections: Sequence[Section], lexicon: Lexicon | None, with_data: bool
) -> dict[str, Any]:
    """Find the objects with the highest scores."""
    idf, ask_norm = weigh_terms(query.terms, lexicon)
    weights = np.array(idf)
    found = ScoredObjects(np.empty(query.k, np.int32), *np.empty((2, query.k), np.int64))
    count = 0
    for number, section in enumerate(sections):
        retained = section.retained
        asked = words_in(retained, query.terms)
        present = asked >= 0
        if not present.any():
            continue
        asked = asked[present]
        lengths = retained.list_offsets[asked + 1] - retained.list_offsets[asked]
        page_layers, layered = NO_PAGE_LAYERS, False
        if section.layers is not None:
            page_layers, layered = section.layers.deepen(retained, int(lengths.sum()))
        count = best_objects_of_query(
            make_ask(
                (query.lon, query.lat),
                query.alpha,
                query.reach_m,
                ask_norm,
                asked,
                weights[present],
                span,
            ),
            number,
            section.columns,
            page_layers,
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
