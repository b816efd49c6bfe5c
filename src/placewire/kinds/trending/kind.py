"""The kind `trending`: reports of the most frequent terms of a region, at regular times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.ingest.changes import RowFields
from placewire.ingest.fields import FieldReader, read_k, read_window
from placewire.ingest.queries import Query
from placewire.kinds.explanation import explain_region
from placewire.kinds.shard import AdmittedRows, KindResults, SettleBatch, Shard
from placewire.kinds.trending.answer import answer_trending
from placewire.kinds.trending.due import DueRows, find_due, hash_regions
from placewire.kinds.trending.explain import add_trending_reasons, explain_trending
from placewire.kinds.trending.rows import NO_TRENDING, trending_columns
from placewire.kinds.trending.settle import make_reports
from placewire.model.arrays import I64
from placewire.model.events import QueryEvent, SubscribeEvent
from placewire.model.expression import ANY_TEXT
from placewire.model.kinds import (
    TRENDING,
    AnswerSources,
    ExplainedPair,
    Kind,
    KindForm,
    RowResults,
    Samples,
)
from placewire.model.subscriptions import SubscriptionRows
from placewire.segments.live_segment import LiveSegment, ResultsContext
from placewire.segments.segment import Segment, make_segment
from placewire.storage.manifest import DeltaEntry


class TrendingResults(RowResults):
    """Rows hold no results, only a key shared by rows with the same region and window."""

    def __init__(self, rows: SubscriptionRows) -> None:
        super().__init__()
        self.rows = rows
        self._region_keys: I64 | None = None

    @property
    def region_keys(self) -> I64:
        if self._region_keys is None:
            self._region_keys = hash_regions(self.rows)
        return self._region_keys

    def carry(self, source: RowResults, rows: I64) -> None:
        assert isinstance(source, TrendingResults)
        self._region_keys = source.region_keys[rows]


class TrendingKind(Kind):
    """Nothing is matched: reports count retained objects when they are due."""

    number, name = TRENDING, "trending"
    needed, optional = ("k", "window", "every"), ("region",)
    query_needed, query_optional = ("k",), ("region",)
    matched = False
    own_columns = NO_TRENDING
    verdicts = ("Counted", "Not counted")
    form = KindForm({"kind": "trending", "k": 10, "window": "PT1H", "every": "PT5M"}, lists="terms")

    def decode(self, event: SubscribeEvent, ts_us: int, reader: FieldReader) -> RowFields:
        k = read_k(event.k)
        region = reader.region(event)
        window_us, every_us = read_window(event.window, event.every)  # type: ignore[arg-type]
        own = {"begun_us": ts_us, "window_us": window_us, "every_us": every_us}
        return RowFields(k, region, ANY_TEXT, own)

    def open_results(
        self, segment: Segment, deltas: Sequence[DeltaEntry], context: ResultsContext
    ) -> TrendingResults:
        return TrendingResults(segment.rows)

    def settle(self, shard: Shard, batch: SettleBatch) -> DueRows:
        live = shard.live
        return find_due(
            live.segment.rows,
            live.results.region_keys,
            ~live.ended_mask(),
            shard.end_seqs(),
            batch.advances,
            batch.first_seq,
        )

    def admit_new(self, rows: SubscriptionRows, row_end: I64, batch: SettleBatch) -> AdmittedRows:
        results = TrendingResults(rows)
        all_rows = np.ones(rows.total, np.bool_)
        due = find_due(
            rows, results.region_keys, all_rows, row_end, batch.advances, batch.first_seq
        )
        return AdmittedRows(make_segment(self.number, rows), due, results)

    def finish(self, updates: Sequence[tuple[str, Any]], batch: SettleBatch) -> KindResults:
        return KindResults(reports=make_reports([due for _, due in updates], batch))

    def retention_us(self, live: Sequence[LiveSegment]) -> int:
        """Return the longest window; ended rows count until they are merged away."""
        return max(
            (int(trending_columns(one.segment.rows).window_us.max(initial=0)) for one in live),
            default=0,
        )

    def read_query(self, event: QueryEvent, query: Query, reader: FieldReader) -> Query:
        return query._replace(k=read_k(event.k), region=reader.region(event))

    def answer(self, query: Query, sources: AnswerSources) -> dict[str, Any]:
        return answer_trending(query, sources.span, sources.sections)

    def explain(self, pair: ExplainedPair, explanation: dict[str, Any]) -> bool:
        explanation["region"] = explain_region(pair.subscription.rows, pair.obj)
        explanation[self.name] = explain_trending(*pair)
        return bool(explanation["region"]["inside"]) and explanation[self.name]["reports"] != 0

    def same_subscription(self, a: SubscriptionRows, b: SubscriptionRows) -> bool:
        """Compare all but the time at which the subscriptions began."""
        begun_us = trending_columns(b).begun_us
        own = {self.number: trending_columns(a)._replace(begun_us=begun_us)}
        return super().same_subscription(a._replace(own=own), b)

    def add_reasons(self, explanation: dict[str, Any], good: list[str], bad: list[str]) -> None:
        add_trending_reasons(explanation[self.name], bool(explanation["matches"]), good, bad)

    def samples(self, number: int) -> Samples:
        box, circle = [-1, -1, 1, 1], {"lon": 0, "lat": 0, "radius_m": 1e5}
        reports = {"k": 2, "window": "PT5M", "every": "PT30S"}
        return Samples(
            subscriptions=({"region": {"box": box}, **reports},),
            queries=({"region": {"circle": circle}, "k": 1},),
        )


KIND = TrendingKind()
