"""The kind `boolean`: every object in a region whose text satisfies an expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placewire.ingest.changes import RowFields
from placewire.ingest.fields import FieldReader, read_limit
from placewire.ingest.queries import Query
from placewire.kernels.jit import freeze
from placewire.kinds.boolean.answer import answer_boolean
from placewire.kinds.boolean.explain import explain_boolean, find_row_postings, trace_boolean
from placewire.kinds.boolean.index import build_index
from placewire.kinds.boolean.kernels.postings import BooleanIndex
from placewire.kinds.boolean.match import make_probe, match_all
from placewire.kinds.boolean.settle import match_new_rows, settle_piece
from placewire.kinds.candidates import Matches, ObjectBlock, Target
from placewire.kinds.explanation import MatchTrace, PostingRef
from placewire.kinds.shard import AdmittedRows, KindResults, MatchedPiece, SettleBatch, Shard
from placewire.model.arrays import I64
from placewire.model.errors import InvalidEvent
from placewire.model.events import UNSET, QueryEvent, SubscribeEvent
from placewire.model.kinds import (
    BOOLEAN,
    AnswerSources,
    Arrays,
    ExplainedPair,
    Kind,
    KindForm,
    Samples,
    TracedObject,
)
from placewire.model.subscriptions import SubscriptionRows
from placewire.segments.segment import Segment, make_segment
from placewire.storage.arrays import label_columns, read_columns
from placewire.storage.manifest import PieceEntry


class BooleanKind(Kind):
    """Matches are final once found; workers decide them alone."""

    number, name = BOOLEAN, "boolean"
    optional = ("region", "where")
    query_needed, query_optional = (), ("region", "where", "limit")
    exact = True

    probes_any_text = True
    left_out = "it has ended since"
    form = KindForm(
        {
            "kind": "boolean",
            "region": {"circle": {"lon": -73.98, "lat": 40.75, "radius_m": 2000}},
            "where": "coffee AND (free OR sale)",
        },
        needs_one_of=("region", "where"),
    )

    def decode(self, event: SubscribeEvent, ts_us: int, reader: FieldReader) -> RowFields:
        check_asks(event)
        return RowFields(0, reader.region(event), reader.where(event))

    def build_index(self, rows: SubscriptionRows, held: Any, parts: Any) -> BooleanIndex:
        """`parts`, if given, is the frequency of each literal's term."""
        return build_index(rows, parts)

    def save(self, segment: Segment) -> tuple[Arrays, dict[str, Any]]:
        return label_columns("index", segment.index), {}

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> tuple[Any, Any]:
        return freeze(BooleanIndex, read_columns(BooleanIndex, arrays, "index")), None

    def parts(self, segment: Segment) -> Sequence[Any]:
        return (segment.index,)

    def match(self, block: ObjectBlock, targets: Sequence[Target], scan: bool) -> list[Matches]:
        probe = make_probe(*block[:8])
        return match_all(probe, [(target.segment, target.dead) for target in targets], scan)

    def settle(self, shard: Shard, batch: SettleBatch) -> list[PieceEntry | MatchedPiece]:
        return [settle_piece(shard, summary, batch) for summary in shard.pieces]

    def admit_new(self, rows: SubscriptionRows, row_end: I64, batch: SettleBatch) -> AdmittedRows:
        segment = make_segment(self.number, rows)
        first = int(rows.begin_seq[0])
        scan = self.number in batch.scans
        found = [
            MatchedPiece(block, *match_new_rows(fact, segment, row_end, scan))
            for block, (fact, end) in enumerate(zip(batch.facts, batch.block_ends, strict=True))
            if end > first
        ]
        return AdmittedRows(segment, found)

    def finish(self, updates: Sequence[tuple[str, Any]], batch: SettleBatch) -> KindResults:
        pairs = [(segment, piece) for segment, pieces in updates for piece in pieces]
        return KindResults(
            pieces=[piece for _, piece in pairs if isinstance(piece, PieceEntry)],
            matched=[
                (segment, piece) for segment, piece in pairs if isinstance(piece, MatchedPiece)
            ],
        )

    def read_query(self, event: QueryEvent, query: Query, reader: FieldReader) -> Query:
        check_asks(event)
        return query._replace(
            region=reader.region(event), program=reader.where(event), limit=read_limit(event.limit)
        )

    def answer(self, query: Query, sources: AnswerSources) -> dict[str, Any]:
        return answer_boolean(query, sources.span, sources.sections, sources.with_data)

    def explain(self, pair: ExplainedPair, explanation: dict[str, Any]) -> bool:
        return explain_boolean(*pair, explanation)

    def find_postings(self, index: Any, row: int, part: int) -> list[PostingRef]:
        return find_row_postings(index, row, part)

    def trace_match(self, traced: TracedObject) -> MatchTrace:
        return trace_boolean(traced.context, traced.opened, traced.obj, traced.now_us)

    def samples(self, number: int) -> Samples:
        box, polygon = {"box": [-1, -1, 1, 1]}, [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]
        circle = {"circle": {"lon": 0, "lat": 0, "radius_m": 1e5}}
        both, expires = "coffee AND (free OR sale)", "2026-03-01T13:00:00Z"
        return Samples(
            subscriptions=(
                {"region": box},
                {"region": box, "where": "coffee"},
                {"region": circle, "where": both, "expires": expires},
                {"region": {"polygon": [polygon]}, "where": {"none": ["tea"]}},
                {"where": {"all": ["coffee", {"any": ["free", "kahve"]}]}},
            ),
            queries=({"region": {"polygon": [polygon]}}, {"region": box, "where": "coffee"}),
        )


def check_asks(event: SubscribeEvent | QueryEvent) -> None:
    """Reject an event with neither region nor expression, which would match everything."""
    if event.region is UNSET and event.where is UNSET:
        raise InvalidEvent("needs a region or a where, got neither")


KIND = BooleanKind()


def make_boolean_segment(rows: SubscriptionRows, literal_count: I64 | None = None) -> Segment:
    """Index boolean rows, by default with the term frequencies among them."""
    return make_segment(KIND.number, rows, parts=literal_count)
