"""Answer snapshot queries of the kind `boolean` from retained objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placewire.ingest.queries import Query
from placewire.model.expression import COVER_ALL, COVER_ANY
from placewire.objects.index import Retained
from placewire.objects.kernels.find import rows_found
from placewire.objects.sections import (
    Section,
    Span,
    name_object,
    ranges_of,
    region_of,
    whole_parts,
    words_in,
)

SHORT_LIST = 256  # shorter lists are scanned: finding the region's cells costs more


def answer_boolean(
    query: Query, span: Span, sections: Sequence[Section], with_data: bool
) -> dict[str, Any]:
    """Count the matching objects and return the newest of them."""
    region = region_of(query.region)
    program = query.program
    total = 0
    found: list[tuple[Retained, NDArray[np.uint32]]] = []
    on_true = np.array(program.on_true, np.int64)
    on_false = np.array(program.on_false, np.int64)
    for section in sections:
        retained = section.retained
        literals = words_in(retained, program.terms)
        cover, length = choose_cover(retained, literals, program.cover_mode, program.cover)
        listed = program.cover_mode != COVER_ANY
        if listed and length == 0:
            continue
        if listed and length <= SHORT_LIST:
            ranges = whole_parts(section)
        else:
            ranges = ranges_of(section, region)
        rows = rows_found(
            ranges,
            *region,
            retained.lon,
            retained.lat,
            retained.ts_us,
            retained.seq,
            retained.term_offsets,
            retained.terms,
            retained.list_offsets,
            retained.lists,
            literals,
            on_true,
            on_false,
            cover,
            listed,
            *span,
        )
        total += rows.size
        if rows.size:
            found.append((retained, rows))
    seqs = np.concatenate([r.seq[rows] for r, rows in found] or [np.empty(0, np.int64)])
    if seqs.size > query.limit:
        newest = np.argpartition(-seqs, query.limit - 1)[: query.limit]
    else:
        newest = np.arange(seqs.size)
    newest = newest[np.argsort(-seqs[newest])]
    owner = np.repeat(np.arange(len(found)), [rows.size for _, rows in found])
    rows_all = np.concatenate([rows for _, rows in found] or [np.empty(0, np.uint32)])
    objects = [
        name_object(found[owner[i]][0], int(rows_all[i]), with_data) for i in newest.tolist()
    ]
    return {"total": total, "objects": objects}


def choose_cover(
    retained: Retained, literals: NDArray[np.int64], mode: int, cover: Sequence[int]
) -> tuple[NDArray[np.int64], int]:
    """Choose terms whose postings lists contain every match, and add up their lengths.

    If all matches have each term of the cover, the shortest list is enough.
    """
    numbers = literals[np.array(cover, np.int64)]
    lengths = np.where(
        numbers >= 0,
        retained.list_offsets[numbers + 1] - retained.list_offsets[numbers],
        0,
    )
    if mode == COVER_ALL or numbers.size == 0:
        return numbers, int(lengths.sum())
    shortest = int(lengths.argmin())
    return numbers[shortest : shortest + 1], int(lengths[shortest])
