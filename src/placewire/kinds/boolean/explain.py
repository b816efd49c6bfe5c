"""Explain pairs of the kind `boolean`: region, expression, and the postings that were met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kinds.boolean.index import BooleanIndex
from placewire.kinds.boolean.kernels.postings import ROW
from placewire.kinds.boolean.kernels.probes import object_meeting_postings
from placewire.kinds.boolean.match import Probe, make_probe, match_segment
from placewire.kinds.explanation import (
    Looked,
    Post,
    explain_region,
    explain_where,
    fits,
    terms_by_number,
)

if TYPE_CHECKING:
    from placewire.explainer.context import ExplainContext, Live
    from placewire.explainer.object import Seen
    from placewire.explainer.subscription import Subscribed


def explain_boolean(
    ground: ExplainContext, subscribed: Subscribed, seen: Seen, told: dict[str, Any]
) -> bool:
    """Where the object lies and which of the expression's words it has."""
    told["region"] = explain_region(subscribed.rows, seen)
    told["where"] = explain_where(subscribed, seen)
    return fits(subscribed.rows, seen)


def look_boolean(ground: ExplainContext, live: Live, seen: Seen, now_us: int) -> Looked:
    """Match the object with one segment, as a worker does."""
    probe = make_probe(*seen.columns(now_us))
    matches = match_segment(probe, live.segment, live.dead)
    known, _, met, _, _, doubtful = meet(probe, live.segment.index)
    return Looked(known, met, matches.candidates, doubtful, matches.row.tolist())


def posts_of_row(index: BooleanIndex, row: int, part: int = 0) -> list[Post]:
    """The postings of a row."""
    at = np.flatnonzero(index.postings[:, ROW] == row)
    cells = np.searchsorted(index.cell_offsets, at, "right") - 1
    runs = np.searchsorted(index.run_cells, cells, "right") - 1
    numbers = np.searchsorted(index.run_offsets, runs, "right") - 1
    terms = terms_by_number(index.term_table)
    return [
        Post(terms[number], int(index.run_level[run]), int(index.cell_code[cell]), part)
        for number, run, cell in zip(numbers.tolist(), runs.tolist(), cells.tolist(), strict=True)
    ]


def meet(probe: Probe, index: BooleanIndex) -> tuple[int, ...]:
    """How the probe of one object meets an index."""
    some = np.diff(probe.group_offsets) > 0
    counts: tuple[int, ...] = object_meeting_postings(
        read_only(probe.group_term[some]),
        int(probe.codes[0]),
        float(probe.lon[0]),
        float(probe.lat[0]),
        probe.signatures[0],
        *map(read_only, index),
    )
    return counts
