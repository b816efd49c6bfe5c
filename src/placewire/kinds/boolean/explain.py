"""Explain pairs of the kind `boolean`: region, expression, postings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placewire.kinds.boolean.kernels.match import make_buffers, object_meeting_postings
from placewire.kinds.boolean.kernels.postings import ANY_TERM, ROW, BooleanIndex
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.kinds.boolean.match import make_probe, match_segment
from placewire.kinds.explanation import (
    MatchTrace,
    PostingRef,
    explain_region,
    explain_where,
    row_matches,
    terms_by_number,
)

if TYPE_CHECKING:
    from placewire.explainer.context import ExplainContext, OpenSegment
    from placewire.explainer.object import ExplainedObject
    from placewire.explainer.subscription import ExplainedSubscription


def explain_boolean(
    context: ExplainContext,
    subscription: ExplainedSubscription,
    obj: ExplainedObject,
    facts: dict[str, Any],
) -> bool:
    """Explain region and expression; return true if the object matches both."""
    facts["region"] = explain_region(subscription.rows, obj)
    facts["where"] = explain_where(subscription, obj)
    return row_matches(subscription.rows, obj)


def trace_boolean(
    context: ExplainContext, opened: OpenSegment, obj: ExplainedObject, now_us: int
) -> MatchTrace:
    """Match the object with one segment as a worker does, and count the work."""
    probe = make_probe(*obj.columns(now_us))
    matches = match_segment(probe, opened.segment, opened.dead)
    known, _, met, _, _, doubtful = count_probe(probe, opened.segment.index)
    return MatchTrace(known, met, matches.candidates, doubtful, matches.row.tolist())


def find_row_postings(index: BooleanIndex, row: int, part: int = 0) -> list[PostingRef]:
    """Find the postings of a row."""
    at = np.flatnonzero(index.postings[:, ROW] == row)
    cells = np.searchsorted(index.cell_offsets, at, "right") - 1
    runs = np.searchsorted(index.run_cells, cells, "right") - 1
    numbers = np.searchsorted(index.run_offsets, runs, "right") - 1
    terms: dict[int, int | None] = {}
    for number, term in terms_by_number(index.term_table).items():
        terms[number] = None if term == ANY_TERM else term
    return [
        PostingRef(terms[number], int(index.run_level[run]), int(index.cell_code[cell]), part)
        for number, run, cell in zip(numbers.tolist(), runs.tolist(), cells.tolist(), strict=True)
    ]


def count_probe(probe: Probe, index: BooleanIndex) -> tuple[int, ...]:
    """Count what the probe of one object visits in an index."""
    return object_meeting_postings(probe, index, make_buffers(index.longest, index.longest))
