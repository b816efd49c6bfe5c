"""The kind `nearest`: the k nearest objects that share words with the subscription."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.ingest.changes import RowFields
from placewire.ingest.fields import POINT, FieldReader, read_k, read_metres, read_mode
from placewire.ingest.queries import Query, read_ranked
from placewire.kernels.jit import read_only
from placewire.kernels.json.changes import PlainNumbers
from placewire.kernels.space.circles import radii_to_limits
from placewire.kinds.boolean.explain import find_row_postings
from placewire.kinds.candidates import Matches, ObjectBlock, PieceSummary, Target
from placewire.kinds.explanation import MatchTrace, PostingRef
from placewire.kinds.nearest.answer import answer_nearest
from placewire.kinds.nearest.explain import add_nearest_reasons, explain_nearest, trace_nearest
from placewire.kinds.nearest.index import (
    CircleIndex,
    concat_partitions,
    index_circles,
    load_circles,
    one_part,
    save_circles,
    take_partition,
)
from placewire.kinds.nearest.match import match_near
from placewire.kinds.nearest.results import (
    NearestResults,
    Neighbours,
    no_neighbours,
    radii_of,
    read_radii,
    take_neighbours,
)
from placewire.kinds.nearest.rows import NO_NEAREST, NearestRows, nearest_columns
from placewire.kinds.nearest.settle import Entered, enter_candidates, enter_new_rows, name_entrants
from placewire.kinds.shard import AdmittedRows, KindResults, SettleBatch, Shard
from placewire.model.arrays import F32, I64
from placewire.model.events import UNSET, QueryEvent, SubscribeEvent
from placewire.model.expression import COVER_ALL, COVER_ONE, Program
from placewire.model.kinds import (
    NEAREST,
    AnswerSources,
    Arrays,
    ExplainedPair,
    Kind,
    KindForm,
    KindMemory,
    MergedResults,
    MergedRows,
    Samples,
    TracedObject,
)
from placewire.model.regions import CIRCLE, WHOLE_WORLD, Region, circle_bounds
from placewire.model.subscriptions import SubscriptionRows, concat_columns
from placewire.segments.live_segment import LiveSegment, ResultsContext
from placewire.segments.segment import Segment
from placewire.storage.arrays import label_columns, read_columns
from placewire.storage.layout import StateDir
from placewire.storage.manifest import DeltaEntry

MANY_NEAREST = 50_000
FIRST_ROWS = 2_000
MOST_LOOKED = 1e9  # postings of `nearest` rows that a batch may test; some seconds of a core


class Pacer(KindMemory):
    """Remembers how many postings of `nearest` rows each object met in the last batch."""

    def __init__(self) -> None:
        self.looked_an_object: float | None = None

    def cap_batch(self, rows: int, live: Sequence[LiveSegment], window: float) -> int:
        """Return how many of `rows` events the next batch should have.

        Subscriptions without results accept every object that has their terms. If there are many, a
        short batch lets their circles shrink, and the index be rebuilt, before the next.
        """
        if sum(one.segment.rows.total for one in live) < MANY_NEAREST:
            return rows
        if self.looked_an_object is None:
            return min(rows, FIRST_ROWS)
        return min(rows, max(FIRST_ROWS, int(MOST_LOOKED / max(self.looked_an_object, 1.0))))

    def note_matched(
        self, live: Sequence[LiveSegment], objects: int, pieces: Sequence[PieceSummary]
    ) -> None:
        """Record how many postings the objects of a batch met."""
        results = {one.name: one.results for one in live}
        looked = 0
        for piece in pieces:
            found = results.get(piece.piece.segment)
            if found is not None:
                looked += piece.candidates
                found.note_looked(piece.candidates, piece.passed)
        if live and objects:
            self.looked_an_object = looked / objects


class NearestKind(Kind):
    """Workers find objects in the circle of a full result; settling applies them by seq."""

    number, name = NEAREST, "nearest"
    needed, optional = POINT, ("mode", "within_m")
    query_needed, query_optional = POINT, ("mode", "within_m")

    left_out = "the object is not near enough any more"
    verdicts = ("A candidate", "Not a candidate")
    own_columns = NO_NEAREST
    form = KindForm(
        {"kind": "nearest", "lon": -73.98, "lat": 40.75, "keywords": ["bagel"], "k": 3},
        lists="objects",
        order_by="distance_m",
    )

    def decode(self, event: SubscribeEvent, ts_us: int, reader: FieldReader) -> RowFields:
        """The program is a plain list of terms and a cover, without jumps."""
        k = read_k(event.k)
        lon, lat = reader.point(event)
        every = read_mode(event.mode)
        terms = reader.keywords(event)
        nowhere = [0] * len(terms)
        mode = COVER_ONE if every or len(terms) == 1 else COVER_ALL
        program = Program(terms, nowhere, nowhere, mode, list(range(len(terms))))
        within = math.inf
        if event.within_m is not UNSET:
            within = read_metres(event.within_m, "within_m")
        return RowFields(k, WHOLE_WORLD, program, {"circle": (lon, lat, within)})

    def read_plain(self, numbers: PlainNumbers, literals: I64) -> NearestRows:
        return NearestRows(np.column_stack([numbers.lon, numbers.lat, numbers.within_m]))

    def build_index(self, rows: SubscriptionRows, held: Neighbours, parts: Any) -> CircleIndex:
        return index_circles(
            rows, radii_of(held, nearest_columns(rows).within_m), parts or one_part(rows.total)
        )

    def save(self, segment: Segment) -> tuple[Arrays, dict[str, Any]]:
        arrays, facts = save_circles(segment.index)
        return arrays | label_columns("neighbours", segment.held), facts

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> tuple[Any, Any]:
        return load_circles(arrays, facts), read_columns(Neighbours, arrays, "neighbours")

    def open_results(
        self, segment: Segment, deltas: Sequence[DeltaEntry], context: ResultsContext
    ) -> NearestResults:
        within_m = nearest_columns(segment.rows).within_m
        return NearestResults(segment.held, segment.index.radius, within_m, deltas, context.path)

    def merge(self, merged: MergedRows) -> MergedResults:
        pairs = zip(merged.held, merged.picked, strict=True)
        taken = [take_neighbours(one, some) for one, some in pairs]
        deals = [
            take_partition(s.index.partition, some)
            for s, some in zip(merged.segments, merged.picked, strict=True)
        ]
        return MergedResults(concat_columns(taken), concat_partitions(deals))

    def parts(self, segment: Segment) -> Sequence[Any]:
        return segment.index.parts

    def open_thresholds(self, segment: Segment) -> F32:
        return radii_to_limits(read_only(segment.index.radius))

    def apply_delta(self, thresholds: F32, arrays: Arrays, label: str) -> None:
        """Limits only filter: fewer deltas give more candidates, but the same results."""
        rows, radius = read_radii(arrays, label)
        limits = radii_to_limits(read_only(np.ascontiguousarray(radius)))
        thresholds[rows] = np.minimum(thresholds[rows], limits)

    def match(self, block: ObjectBlock, targets: Sequence[Target], scan: bool) -> list[Matches]:
        return [match_near(block, target, scan) for target in targets]

    def open(self, state: StateDir) -> Pacer:
        return Pacer()

    def settle(self, shard: Shard, batch: SettleBatch) -> Entered | None:
        return enter_candidates(shard, batch)

    def admit_new(self, rows: SubscriptionRows, row_end: I64, batch: SettleBatch) -> AdmittedRows:
        deal = batch.partition(self.number, rows, None)
        scan = self.number in batch.scans
        segment, entered = enter_new_rows(self.number, batch.facts, rows, row_end, deal, scan)
        return AdmittedRows(segment, entered)

    def finish(self, updates: Sequence[tuple[str, Any]], batch: SettleBatch) -> KindResults:
        entered = [update for _, update in updates if update is not None]
        return KindResults(changed=name_entrants(batch.number, batch.facts, entered, batch.ids))

    def read_query(self, event: QueryEvent, query: Query, reader: FieldReader) -> Query:
        query = read_ranked(event, query, reader)
        query = query._replace(every=read_mode(event.mode))
        if event.within_m is UNSET:
            return query
        within = read_metres(event.within_m, "within_m")
        shape = (query.lon, query.lat, within)
        region = Region(CIRCLE, circle_bounds(*shape), shape)
        return query._replace(within_m=within, region=region)

    def answer(self, query: Query, sources: AnswerSources) -> dict[str, Any]:
        return answer_nearest(query, sources.span, sources.sections, sources.with_data)

    def empty_results(self, rows: SubscriptionRows) -> Neighbours:
        return no_neighbours(rows.k)

    def explain(self, pair: ExplainedPair, explanation: dict[str, Any]) -> bool:
        explanation[self.name] = explain_nearest(*pair)
        return bool(explanation[self.name]["candidate"])

    def add_reasons(self, explanation: dict[str, Any], good: list[str], bad: list[str]) -> None:
        add_nearest_reasons(explanation[self.name], good, bad)

    def find_postings(self, index: Any, row: int, part: int) -> list[PostingRef]:
        return find_row_postings(index, row, part)

    def trace_match(self, traced: TracedObject) -> MatchTrace:
        return trace_nearest(traced.opened, traced.obj, traced.now_us, traced.thresholds)

    def samples(self, number: int) -> Samples:
        point = {"lon": 0, "lat": 0}
        return Samples(
            subscriptions=(
                {**point, "keywords": ["coffee", "kahve"], "k": 1},
                {**point, "keywords": ["free coffee"], "mode": "all", "k": 2},
            ),
            queries=({**point, "keywords": ["coffee"], "k": 1},),
        )


KIND = NearestKind()
