"""The kind `relevant`: the k objects of the sliding window with the highest scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placewire.ingest.changes import RowFields
from placewire.ingest.fields import POINT, FieldReader, read_alpha, read_k, read_reach
from placewire.ingest.queries import Query, read_ranked
from placewire.kernels.json.changes import PlainNumbers
from placewire.kinds.candidates import Matches, ObjectBlock, Target
from placewire.kinds.explanation import MatchTrace, PostingRef
from placewire.kinds.relevant.answer import answer_relevant
from placewire.kinds.relevant.explain import (
    add_relevant_reasons,
    explain_relevant,
    find_group_postings,
    trace_relevant,
)
from placewire.kinds.relevant.index import RelevantIndex, TermPartition, index_parts
from placewire.kinds.relevant.kernels.buffers import Buffers
from placewire.kinds.relevant.kernels.groups import GroupIndex
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.kinds.relevant.match import match_relevant
from placewire.kinds.relevant.refill import WindowSearch
from placewire.kinds.relevant.results import (
    BUFFERS,
    BufferRule,
    RelevantResults,
    buffer_arrays,
    concat_buffers,
    empty_buffers,
    read_buffers,
    read_delta,
    take_buffers,
)
from placewire.kinds.relevant.rows import NO_RELEVANT, RelevantRows
from placewire.kinds.relevant.settle import WindowSlide, gather_candidates, resolve_window_updates
from placewire.kinds.shard import AdmittedRows, Changed, KindResults, SettleBatch, Shard
from placewire.model.arrays import I32, I64, U16
from placewire.model.events import QueryEvent, SubscribeEvent
from placewire.model.expression import COVER_ALL, Program
from placewire.model.kinds import (
    RELEVANT,
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
from placewire.model.regions import WHOLE_WORLD
from placewire.model.subscriptions import SubscriptionRows
from placewire.segments.live_segment import ResultsContext
from placewire.segments.segment import Segment, make_segment
from placewire.storage.arrays import label_columns, read_columns
from placewire.storage.layout import StateDir
from placewire.storage.manifest import DeltaEntry
from placewire.text.words import weigh_terms


class RelevantKind(Kind):
    """Rows hold more than k objects, so that the window can slide on without a refill."""

    number, name = RELEVANT, "relevant"
    needed, optional = (*POINT, "alpha"), ("reach_m",)
    query_needed, query_optional = (*POINT, "alpha"), ("reach_m",)
    uses_window = True
    buffers = BUFFERS

    looks_back = True
    left_out = "the object's score is below what it still needs"
    verdicts = ("A candidate", "Not a candidate")
    own_columns = NO_RELEVANT
    form = KindForm(
        {
            "kind": "relevant",
            "lon": -73.98,
            "lat": 40.75,
            "keywords": ["jazz"],
            "k": 5,
            "alpha": 0.5,
        },
        lists="objects",
        order_by="score",
        descending=True,
    )

    def decode(self, event: SubscribeEvent, ts_us: int, reader: FieldReader) -> RowFields:
        """Read the point, the weights of place and words, and the terms in code-point order."""
        k = read_k(event.k)
        lon, lat = reader.point(event)
        reach = read_reach(event, reader.settings)
        alpha = read_alpha(event.alpha)  # type: ignore[arg-type]
        terms = sorted(reader.keywords(event))
        idf, norm = weigh_terms(terms, reader.lexicon)
        nowhere = [0] * len(terms)
        program = Program(terms, nowhere, nowhere, COVER_ALL, list(range(len(terms))))
        own = {"weights": (lon, lat, alpha, reach, norm), "literal_idf": idf}
        return RowFields(k, WHOLE_WORLD, program, own)

    def read_plain(self, numbers: PlainNumbers, literals: I64) -> RelevantRows:
        """Read plain columns; lines are plain only without a lexicon, so every idf is 1."""
        lon, lat, _, alpha, reach_m = numbers
        weights = np.column_stack([lon, lat, alpha, reach_m, np.sqrt(literals)])
        return RelevantRows(weights, np.ones(int(literals.sum())))

    def build_index(
        self, rows: SubscriptionRows, held: Buffers, parts: TermPartition | None
    ) -> RelevantIndex:
        return RelevantIndex(index_parts(rows, held.theta, parts), parts)

    def save(self, segment: Segment) -> tuple[Arrays, dict[str, Any]]:
        arrays = buffer_arrays(segment.held)
        for part, groups in enumerate(segment.index.groups):
            arrays |= label_columns(f"groups{part}", groups)
        if segment.index.partition is not None:
            arrays["dealt"] = segment.index.partition.owner
        return arrays, {"groups": len(segment.index.groups)}

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> tuple[Any, Any]:
        groups = tuple(
            read_columns(GroupIndex, arrays, f"groups{part}") for part in range(facts["groups"])
        )
        dealt = TermPartition(facts["groups"], arrays["dealt"]) if "dealt" in arrays else None
        return RelevantIndex(groups, dealt), read_buffers(arrays)

    def open_results(
        self, segment: Segment, deltas: Sequence[DeltaEntry], context: ResultsContext
    ) -> RelevantResults:
        return open_buffers(segment.held, segment.rows.k, deltas, context)

    def merge(self, merged: MergedRows) -> MergedResults:
        by_time = any(one.exp is not one.seq for one in merged.held)
        pairs = zip(merged.held, merged.picked, strict=True)
        taken = [take_buffers(one, some, by_time) for one, some in pairs]
        joined = concat_buffers(taken, by_time)
        return MergedResults(joined, merged.partition(self.number, merged.rows, joined))

    def parts(self, segment: Segment) -> Sequence[Any]:
        return segment.index.groups

    def open_thresholds(self, segment: Segment) -> I32:
        return segment.held.theta.copy()

    def apply_delta(self, thresholds: I32, arrays: Arrays, label: str) -> None:
        changed = read_delta(arrays, label)
        thresholds[changed.theta_row] = changed.theta

    def match(self, block: ObjectBlock, targets: Sequence[Target], scan: bool) -> list[Matches]:
        objects = RelevanceBlock(*block[:6], block.norms)
        return [match_relevant(objects, target, scan) for target in targets]

    def open(self, state: StateDir) -> WindowSearch:
        return WindowSearch(state)

    def begin(self, memory: KindMemory, batch: SettleBatch) -> WindowSlide:
        assert isinstance(memory, WindowSearch)
        entries = list(batch.store)
        moves = batch.window.moves(entries, batch.first_seq, batch.facts, batch.advances)
        memory.by_time = batch.window.by_time
        memory.use_files(entries)
        batch.live.horizon = int(moves.horizon[-1])
        return WindowSlide(
            moves, batch.advances, memory, batch.window.by_time, batch.last_seq, batch.window.growth
        )

    def settle(self, shard: Shard, batch: SettleBatch) -> list[Changed]:
        window_slide: WindowSlide = batch.begun[self.number]
        rows, found = gather_candidates(shard, batch, window_slide.by_time)
        updates = window_slide.settle_committed(shard.live, found, rows, shard.end_seqs())
        return resolve_window_updates(shard.live.segment.rows, updates, window_slide.search)

    def admit_new(self, rows: SubscriptionRows, row_end: I64, batch: SettleBatch) -> AdmittedRows:
        """Give rows their first results from the window."""
        window_slide: WindowSlide = batch.begun[self.number]
        empty = empty_buffers(np.zeros(rows.total, np.int64), window_slide.by_time)
        results = open_buffers(empty, rows.k, (), batch.live.results_context)
        updates = window_slide.settle_new(rows, results, row_end)
        held = results.take(np.arange(rows.total))
        segment = make_segment(self.number, rows, held, batch.partition(self.number, rows, held))
        return AdmittedRows(
            segment, resolve_window_updates(rows, updates, window_slide.search), results
        )

    def finish(self, updates: Sequence[tuple[str, Any]], batch: SettleBatch) -> KindResults:
        return KindResults(changed=[changed for _, some in updates for changed in some])

    def read_query(self, event: QueryEvent, query: Query, reader: FieldReader) -> Query:
        query = read_ranked(event, query, reader)
        reach = read_reach(event, reader.settings)
        return query._replace(alpha=read_alpha(event.alpha), reach_m=reach)  # type: ignore[arg-type]

    def answer(self, query: Query, sources: AnswerSources) -> dict[str, Any]:
        return answer_relevant(query, *sources)

    def empty_results(self, rows: SubscriptionRows) -> Buffers:
        return empty_buffers(rows.k.astype(np.int64), False)

    def explain(self, pair: ExplainedPair, explanation: dict[str, Any]) -> bool:
        explanation[self.name] = explain_relevant(*pair)
        return bool(explanation[self.name]["candidate"])

    def add_reasons(self, explanation: dict[str, Any], good: list[str], bad: list[str]) -> None:
        add_relevant_reasons(explanation[self.name], good, bad)

    def find_postings(self, index: Any, row: int, part: int) -> list[PostingRef]:
        return find_group_postings(index, row, part)

    def trace_match(self, traced: TracedObject) -> MatchTrace:
        return trace_relevant(*traced)

    def samples(self, number: int) -> Samples:
        point = {"lon": 0, "lat": 0, "alpha": 0.5}
        # No later object has this word: its results leave the window and are refilled.
        past = {"keywords": [f"round{number - 1}"], "k": 1, "reach_m": 1e6}
        return Samples(
            subscriptions=({**point, "keywords": ["coffee", "kahve"], "k": 2}, {**point, **past}),
            queries=({**point, "keywords": ["coffee"], "k": 1},),
        )


def open_buffers(
    held: Buffers, ks: U16, deltas: Sequence[DeltaEntry], context: ResultsContext
) -> RelevantResults:
    """Return the buffers of rows in memory, kept by the rule of the run."""
    rule = BufferRule(context.buffer or BUFFERS[0], context.by_time)
    return RelevantResults(held, ks, rule, context.horizon, deltas, context.path)


KIND = RelevantKind()
