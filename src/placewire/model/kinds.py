"""The kinds of subscription: their registry, and the protocol that each of them implements.

A kind is a package whose module `kind` exports `KIND`, an instance of a subclass of `Kind`. All
other code finds kinds here, by the number that files use or the name that events use, and never
names one itself.
Packages are imported when a kind is first used. `docs/adding-a-kind.md` walks through an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.errors import Unusable

if TYPE_CHECKING:
    from placewire.explainer.context import ExplainContext, OpenSegment
    from placewire.explainer.object import ExplainedObject
    from placewire.explainer.subscription import ExplainedSubscription
    from placewire.ingest.changes import RowFields
    from placewire.ingest.fields import FieldReader
    from placewire.ingest.queries import Query
    from placewire.kernels.json.changes import PlainNumbers
    from placewire.kinds.candidates import Matches, ObjectBlock, PieceSummary, Target
    from placewire.kinds.explanation import MatchTrace, PostingRef
    from placewire.kinds.shard import AdmittedRows, KindResults, SettleBatch, Shard
    from placewire.model.events import QueryEvent, SubscribeEvent
    from placewire.model.subscriptions import SubscriptionRows
    from placewire.objects.sections import Section, Span
    from placewire.segments.live_segment import LiveSegment, ResultsContext
    from placewire.segments.segment import Segment
    from placewire.storage.layout import StateDir
    from placewire.storage.manifest import DeltaEntry
    from placewire.text.words import Lexicon

NO_ROWS = np.empty(0, np.int64)
COMPARED = (
    *("kind", "k", "expires_us", "region_kind", "box", "shape", "cover_mode"),
    *("literal_term", "literal_true", "literal_false"),
)

Arrays = dict[str, NDArray[Any]]
Partition = Callable[[int, "SubscriptionRows", Any], Any]


class Delta(NamedTuple):
    """What a batch changed in the results of one segment's rows, as arrays of a file."""

    arrays: Arrays
    entrants: int  # objects in it, which measure its size


class MergedRows(NamedTuple):
    """Rows of several segments to merge: those picked of each, and all of them in order."""

    segments: Sequence[Segment]
    held: Sequence[Any]  # what the rows of each segment hold
    picked: Sequence[NDArray[np.int64]]
    rows: SubscriptionRows
    partition: Partition


class MergedResults(NamedTuple):
    """The results of merged rows, and the partition of those rows."""

    held: Any = None
    parts: Any = None


class AnswerSources(NamedTuple):
    """What a query is answered from: a span of time, and the retained objects that may be in it."""

    span: Span
    sections: Sequence[Section]
    lexicon: Lexicon | None = None
    with_data: bool = False


class ExplainedPair(NamedTuple):
    """A subscription and an object to explain."""

    context: ExplainContext
    subscription: ExplainedSubscription
    obj: ExplainedObject


class TracedObject(NamedTuple):
    """One object to match with one segment while the work is counted."""

    context: ExplainContext
    opened: OpenSegment
    obj: ExplainedObject
    now_us: int
    thresholds: Any


class NoColumns(NamedTuple):
    """The own columns of rows that have none."""


class KindForm(NamedTuple):
    """How clients see subscriptions and current results of one kind."""

    example: dict[str, Any]  # a valid subscription, for the OpenAPI document
    lists: str = ""  # what its current result lists: "objects" or "terms"; empty: it has none
    order_by: str = ""  # the field that orders the objects of its current result
    descending: bool = False  # by that field; among equals the latest object is then first
    needs_one_of: tuple[str, ...] = ()  # fields of which a subscription has at least one


class Samples(NamedTuple):
    """Subscriptions and queries of a kind: the fields that not every kind has."""

    subscriptions: Sequence[dict[str, Any]] = ()
    queries: Sequence[dict[str, Any]] = ()


class RowResults:
    """The results of one segment's rows as the writer keeps them in memory.

    This is the null implementation, of a kind whose rows hold nothing between batches.
    """

    def __init__(self) -> None:
        self.deltas: list[DeltaEntry] = []

    @property
    def stale(self) -> bool:
        """Whether the index should be rebuilt because results have changed since it was built."""
        return False

    def end(self, rows: NDArray[np.int64]) -> None:
        """Rows have ended."""

    def freeze(self, copy: bool) -> Any:
        """What the rows hold, for a merge or rewrite; changes from here on are tracked."""

    def inherit(self, source: RowResults, row_map: NDArray[np.int64]) -> None:
        """Apply what changed in a source since it was frozen; `row_map` renumbers its rows."""

    def carry(self, source: RowResults, rows: NDArray[np.int64]) -> None:
        """Copy derived values of a source's rows, which become all rows of this one."""

    def take(self, rows: NDArray[np.int64]) -> Any:
        """What some rows hold."""

    def unindexed(self) -> NDArray[np.int64]:
        """Return rows for which the index no longer finds all objects."""
        return NO_ROWS

    def take_fresh(self, first_seq: int) -> Delta | None:
        """What the batch that began with `first_seq` changed, once."""
        return None

    def fold(self, path: Callable[[str], Any]) -> Delta:
        """All deltas as one."""
        raise NotImplementedError

    def object_seqs(self) -> NDArray[np.int64]:
        """The objects in results whose ids a later update may need."""
        return NO_ROWS


class KindMemory:
    """What a kind remembers between batches; this null implementation remembers nothing."""

    def cap_batch(self, rows: int, live: Sequence[LiveSegment], window: float) -> int:
        """Return how many of `rows` events the next batch should have.

        `window` is the number of objects in the sliding window.
        """
        return rows

    def note_matched(
        self, live: Sequence[LiveSegment], objects: int, pieces: Sequence[PieceSummary]
    ) -> None:
        """Record the cost of matching a batch."""


class Kind:
    """One kind of subscription; this base class is a kind that matches nothing.

    Fields are those of events: required and optional ones of subscriptions and of queries.
    """

    number: int  # in files
    name: str  # in events
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    query_needed: tuple[str, ...] | None = None  # None: there is no such query
    query_optional: tuple[str, ...] = ()
    matched = True  # whether objects are matched with its index
    exact = False  # whether a match is a result, and not only a candidate for one
    uses_window = False  # whether its results follow the sliding window
    buffers: tuple[str, ...] = ()  # ways to buffer results, by name; the first is the default
    form = KindForm({})
    # The columns that only its rows have: a named tuple of arrays, here without rows. Arrays have a
    # value for each row, those whose names begin with `literal_` one for each literal.
    own_columns: Any = NoColumns()

    # Decode: an event to a row.

    def decode(self, event: SubscribeEvent, ts_us: int, reader: FieldReader) -> RowFields:
        """Read the kind's own fields of a subscription; raises InvalidEvent."""
        raise NotImplementedError

    def read_plain(self, numbers: PlainNumbers, literals: NDArray[np.int64]) -> Any:
        """Return the own columns of rows from the numbers of their plain lines.

        `literals` has how many literals each row has.
        """
        return self.own_columns

    # Segments: rows on disk and in memory.

    def build_index(self, rows: SubscriptionRows, held: Any, parts: Any) -> Any:
        """The index of rows that hold such results, by the parts they are divided into."""

    def save(self, segment: Segment) -> tuple[Arrays, dict[str, Any]]:
        """Index and results as arrays and facts of a file."""
        return {}, {}

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> tuple[Any, Any]:
        """Index and results of a file."""
        return None, None

    def open_results(
        self, segment: Segment, deltas: Sequence[DeltaEntry], context: ResultsContext
    ) -> RowResults:
        """The results of a segment's rows, with the changes of its deltas."""
        return RowResults()

    def merge(self, merged: MergedRows) -> MergedResults:
        """Return what rows of several segments hold when they are merged into one."""
        return MergedResults()

    # Match: objects against the index, in any process.

    def parts(self, segment: Segment) -> Sequence[Any]:
        """The parts of the index, each of them for one worker, as named tuples of arrays."""
        return ()

    def open_thresholds(self, segment: Segment) -> Any:
        """Return the thresholds in a segment's file, by which matching drops candidates."""

    def apply_delta(self, thresholds: Any, arrays: Arrays, label: str) -> None:
        """Apply a delta to thresholds in place."""

    def match(self, block: ObjectBlock, targets: Sequence[Target], scan: bool) -> list[Matches]:
        """Match a block of objects with segments, by their indexes or by scanning."""
        raise NotImplementedError

    # Settle: candidates to results, by seq.

    def open(self, state: StateDir) -> KindMemory:
        """Return the kind's memory between batches; it may change speed but not results."""
        return KindMemory()

    def begin(self, memory: KindMemory, batch: SettleBatch) -> Any:
        """Return what all shards of the kind share in a batch; called if there are any."""

    def settle(self, shard: Shard, batch: SettleBatch) -> Any:
        """Apply a batch to one shard of committed rows: its candidates by seq, its ends, the clock.

        Reads nothing but its arguments. Changes the results that the shard holds in place, so it
        runs in the process that writes the state.
        """

    def admit_new(
        self, rows: SubscriptionRows, row_end: NDArray[np.int64], batch: SettleBatch
    ) -> AdmittedRows:
        """Index rows that began in the batch and apply the rest of the batch to them."""
        raise NotImplementedError

    def finish(self, updates: Sequence[tuple[str, Any]], batch: SettleBatch) -> KindResults:
        """Combine the updates of all shards, each with its segment, into the results of a batch."""
        raise NotImplementedError

    def retention_us(self, live: Sequence[LiveSegment]) -> int:
        """Return how long objects must be retained for these rows."""
        return 0

    # Answer: snapshot queries.

    def read_query(self, event: QueryEvent, query: Query, reader: FieldReader) -> Query:
        """Read the kind's own fields of a query; raises InvalidEvent."""
        raise NotImplementedError

    def answer(self, query: Query, sources: AnswerSources) -> dict[str, Any]:
        """Answer a query from retained objects; return the kind's own fields of the answer."""
        raise NotImplementedError

    # Explain: why a pair does or does not match.

    verdicts = ("Match", "No match")  # how the sentence of an explanation begins
    looks_back = False  # whether objects from before the subscription count
    probes_any_text = False  # whether an object also probes for rows that ask for no word
    left_out = ""  # why a matching pair is no longer found

    def empty_results(self, rows: SubscriptionRows) -> Any:
        """Return the results of new rows."""

    def explain(self, pair: ExplainedPair, explanation: dict[str, Any]) -> bool:
        """Add the kind's own facts to an explanation; whether the pair matches, time aside."""
        raise NotImplementedError

    def add_reasons(self, explanation: dict[str, Any], good: list[str], bad: list[str]) -> None:
        """Add phrases about the kind's own facts to the reasons for and against a match."""

    def find_postings(self, index: Any, row: int, part: int) -> list[PostingRef]:
        """Find the postings of a row in one part of an index."""
        return []

    def trace_match(self, traced: TracedObject) -> MatchTrace:
        """Match one object with one segment and count the work."""
        raise NotImplementedError

    def same_subscription(self, a: SubscriptionRows, b: SubscriptionRows) -> bool:
        """Whether two rows are of equal subscriptions."""
        columns = [(getattr(a, name), getattr(b, name)) for name in COMPARED]
        own = (rows.own.get(self.number, self.own_columns) for rows in (a, b))
        return all(np.array_equal(x, y) for x, y in (*columns, *zip(*own, strict=True)))

    # Warm-up: compile kernels before a run.

    def samples(self, number: int) -> Samples:
        """Return samples that use every kernel of the kind, for round `number` of a warm-up.

        Objects of the round are near (0.5, 0.5) and have the words coffee, free, kahve and
        `round{number}`.
        """
        return Samples()


DEFAULT_KIND = "boolean"  # of a table of subscriptions without a column for the kind
BOOLEAN, NEAREST, TRENDING, RELEVANT = 0, 1, 2, 3  # numbers are in files: never change or reuse one
# A new kind is a package and a line here.
_PACKAGES = {
    "boolean": (BOOLEAN, "placewire.kinds.boolean.kind"),
    "nearest": (NEAREST, "placewire.kinds.nearest.kind"),
    "relevant": (RELEVANT, "placewire.kinds.relevant.kind"),
    "trending": (TRENDING, "placewire.kinds.trending.kind"),
}


def kind_names() -> tuple[str, ...]:
    """The names of all kinds."""
    return tuple(_PACKAGES)


def name_of_kind(number: int) -> str:
    """The name of a kind by its number, without importing it."""
    return next(name for name, (known, _) in _PACKAGES.items() if known == number)


def kind_named(name: str) -> Kind:
    """A kind by its name in events."""
    return _load(_PACKAGES[name][1])


def kind_numbered(number: int) -> Kind:
    """A kind by its number in files."""
    return kind_named(name_of_kind(int(number)))


def all_kinds() -> Iterator[Kind]:
    """Every kind, by number."""
    for number in sorted(number for number, _ in _PACKAGES.values()):
        yield kind_numbered(number)


def check_buffer(name: str) -> str:
    """Return the name of a way to buffer results that some kind has; raises Unusable."""
    known = [buffer for kind in all_kinds() for buffer in kind.buffers]
    if name not in known:
        raise Unusable(f"buffer: must be one of {', '.join(known)}, got {name!r}")
    return name


def register(kind: type[Kind] | Kind, package: str) -> None:
    """Add a kind to those of this process; `package` is the module that exports it as `KIND`."""
    _PACKAGES[kind.name] = (kind.number, package)


def unregister(name: str) -> None:
    """Remove a kind from those of this process."""
    del _PACKAGES[name]
    _load.cache_clear()


@cache
def _load(package: str) -> Kind:
    kind: Kind = import_module(package).KIND
    return kind
