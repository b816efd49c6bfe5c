"""Answer snapshot queries of the kind `boolean` from retained objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.ingest.queries import Query
from placewire.model.arrays import U32
from placewire.model.expression import COVER_ALL
from placewire.objects.index import Retained
from placewire.objects.kernels.find import Cover, Literals, rows_found
from placewire.objects.sections import Section, Span, name_object, region_of, words_in


def answer_boolean(
    query: Query, span: Span, sections: Sequence[Section], with_data: bool
) -> dict[str, Any]:
    """Count the matching objects and return the newest of them."""
    region = region_of(query.region)
    program = query.program
    total = 0
    found: list[tuple[Retained, U32]] = []
    jumps = np.array(program.on_true, np.int64), np.array(program.on_false, np.int64)
    cover = Cover(np.array(program.cover, np.int64), program.cover_mode == COVER_ALL)
    for section in sections:
        retained = section.retained
        literals = Literals(words_in(retained, program.terms), *jumps)
        rows = rows_found(section.columns, section.rows, region, span, literals, cover)
        total += rows.size
        if rows.size:
            found.append((retained, rows))
    if not found:
        return {"total": 0, "objects": []}
    seqs = np.concatenate([r.seq[rows] for r, rows in found])
    if seqs.size > query.limit:
        newest = np.argpartition(-seqs, query.limit - 1)[: query.limit]
    else:
        newest = np.arange(seqs.size)
    newest = newest[np.argsort(-seqs[newest])]
    owner = np.repeat(np.arange(len(found)), [rows.size for _, rows in found])
    rows_all = np.concatenate([rows for _, rows in found])
    objects = [
        name_object(found[owner[i]][0], int(rows_all[i]), with_data) for i in newest.tolist()
    ]
    return {"total": total, "objects": objects}
