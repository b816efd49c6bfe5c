"""Translate a file of queries or fences into subscriptions, in two passes.

The first pass finds the fields, the second translates and writes events. Each query of the file
gives one `ImportOutcome`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from placewire.importers import report
from placewire.importers.alternatives import Alternatives, to_where
from placewire.importers.areas import EVERYWHERE, has_excluded_edges, to_region
from placewire.importers.elasticsearch import ElasticsearchReader, QueryFields
from placewire.importers.elasticsearch_documents import (
    Document,
    DocumentSource,
    FieldSurvey,
    require_one,
)
from placewire.importers.json_files import ReadProgress, Unreadable
from placewire.importers.report import (
    ImportNote,
    ImportOutcome,
    Untranslatable,
    shown,
)
from placewire.importers.shapes import read_number
from placewire.importers.tile38 import Fence, FenceReader, read_fences
from placewire.model.errors import InvalidEvent
from placewire.model.events import MOST_ID_CHARACTERS, UNSET, compact_data
from placewire.model.regions import read_region
from placewire.model.times import format_timestamp, parse_timestamp
from placewire.text.analyzer import Analyzer
from placewire.text.query import Tokens, parse_where

MOST_TTL_S = 36_500 * 86_400
BROKEN = "it cannot be read"

DIFFERENCES = {
    "queries": (
        "words are Placewire's: letters folded, no stemming, stop words or synonyms",
        "Elasticsearch and OpenSearch round places to about a centimetre",
    ),
    "fences": (
        "every object of the log is new: none is followed from place to place by its id",
        "where messages are sent is left out",
        "Tile38's earth is 1.4 millionths smaller",
    ),
}
NOTHING_FITS = "it matches nothing"
TAKEN = "its id is taken by a query of another index"
TAKEN_BY_PART = "its id is taken by a part of a query that was split"
ENDED, IS_PART = -1, -2  # instead of a number of parts


class ImportOptions(NamedTuple):
    """Options of an import; the command line has the same ones."""

    ts: str
    text_fields: Sequence[str] = ()
    place_fields: Sequence[str] = ()
    query_field: str = "query"
    key: str | None = None
    with_data: bool = False
    phrases_as_words: bool = False
    tokens: Tokens = Analyzer(0, 0).tokens


class TranslatedQuery(NamedTuple):
    """A query ready to become events: its id and index, what it matches, expiry and data."""

    id: str
    index_name: str
    alternatives: Alternatives
    expires: str | None = None
    data: Any = UNSET


class IdClaim(NamedTuple):
    """The query that has an id: the number of its index, and its number of parts."""

    owner: int
    parts: int  # 0 if it was not split, or ENDED or IS_PART


class SubscriptionWriter:
    """Turns translated queries into events and resolves repeated ids.

    A query with a repeated id replaces the earlier one, as in the source system. Ids are stored as
    hashes, about 100 bytes each.
    """

    def __init__(self, ts: str, tokens: Tokens) -> None:
        self.ts = ts
        self.tokens = tokens
        self.claims: dict[int, IdClaim] = {}
        self.indexes: dict[str, int] = {}

    def subscribe(self, query: TranslatedQuery, notes: list[ImportNote]) -> list[dict[str, Any]]:
        """The events of a query; raises Untranslatable and then changes nothing."""
        if not query.alternatives:
            raise Untranslatable(NOTHING_FITS)
        split = len(query.alternatives) > 1
        ids = part_ids(query.id, len(query.alternatives)) if split else [query.id]
        longest = len(ids[-1])
        if not 1 <= longest <= MOST_ID_CHARACTERS:
            raise Untranslatable(
                f"an id must have 1 to {MOST_ID_CHARACTERS} characters", got=str(longest)
            )
        before = self.look_up(query)
        if split:
            kept = before.parts if before is not None else 0
            for name in ids[max(kept, 0) :]:
                if hash(name) in self.claims:
                    raise Untranslatable("an id of its parts is taken", got=shown(name))
        events = []
        for name, (area, text) in zip(ids, query.alternatives, strict=True):
            event: dict[str, Any] = {"type": "subscribe", "id": name, "ts": self.ts}
            event["kind"] = "boolean"
            if text is None or area != EVERYWHERE:
                event["region"] = to_region(area)
            if text is not None:
                event["where"] = to_where(text)
            if query.expires is not None:
                event["expires"] = query.expires
            if query.data is not UNSET:
                event["data"] = query.data
            self.check(event)
            events.append(event)
        if split:
            notes.append(ImportNote(report.SPLIT, ""))
        if any(has_excluded_edges(area) for area, _ in query.alternatives):
            notes.append(ImportNote(report.EDGE, ""))
        if before is not None and before.parts != ENDED:
            notes.append(ImportNote(report.REPEATED, ""))
        stale = self.stale_ids(query.id, before, set(ids))
        self.claim(query.id, query.index_name, len(ids) if split else 0)
        return [self.end_event(name) for name in stale] + events

    def unsubscribe(self, name: str, index: str) -> list[dict[str, Any]]:
        """The events that end a query, if it is live."""
        before = self.claims.get(hash(name))
        if before is None or before.parts < 0 or before.owner != self.number(index):
            return []
        self.claim(name, index, ENDED)
        return [self.end_event(each) for each in self.stale_ids(name, before, set())]

    def is_live(self, name: str) -> bool:
        """Whether a live query has the id."""
        before = self.claims.get(hash(name))
        return before is not None and before.parts >= 0

    def look_up(self, query: TranslatedQuery) -> IdClaim | None:
        """The claim on a query's id; raises Untranslatable if another query owns it."""
        before = self.claims.get(hash(query.id))
        if before is None or before.parts == ENDED:
            return before
        if before.parts == IS_PART:
            raise Untranslatable(TAKEN_BY_PART)
        if before.owner != self.number(query.index_name):
            raise Untranslatable(TAKEN, got=shown(query.index_name))
        return before

    def claim(self, name: str, index: str, parts: int) -> None:
        """Record that a query owns an id and the ids of its parts."""
        owner = self.number(index)
        before = self.claims.get(hash(name))
        for part in part_ids(name, before.parts if before is not None else 0):
            self.claims.pop(hash(part), None)
        self.claims[hash(name)] = IdClaim(owner, parts)
        for part in part_ids(name, parts):
            self.claims[hash(part)] = IdClaim(owner, IS_PART)

    def number(self, index: str) -> int:
        return self.indexes.setdefault(index, len(self.indexes))

    def stale_ids(self, name: str, before: IdClaim | None, kept: set[str]) -> list[str]:
        """The ids of an earlier query that nothing replaces."""
        if before is None or before.parts < 0:
            return []
        ids = part_ids(name, before.parts) or [name]
        return [each for each in ids if each not in kept]

    def end_event(self, name: str) -> dict[str, Any]:
        return {"type": "unsubscribe", "id": name, "ts": self.ts}

    def check(self, event: dict[str, Any]) -> None:
        """Check the event as a replay will read it; raises Untranslatable."""
        try:
            if "region" in event:
                read_region(event["region"])
            if "where" in event:
                parse_where(event["where"], self.tokens)
            compact_data(event.get("data", UNSET))
        except InvalidEvent as error:
            what, _, got = str(error).partition(", got ")
            raise Untranslatable(f"beyond what a subscription can have: {what}", got=got) from None


def part_ids(name: str, parts: int) -> list[str]:
    """The ids of the subscriptions that a query is split into."""
    return [f"{name}#{n + 1}" for n in range(parts)]


def import_queries(
    path: Path, options: ImportOptions, moved: ReadProgress = lambda _: None
) -> Iterator[ImportOutcome]:
    """Translate percolator queries; raises Unusable.

    `moved` is called with the number of bytes read. The file is read twice unless the options name
    all fields, and the second pass continues the count.
    """
    source = DocumentSource(path, options.query_field)
    fields = QueryFields(frozenset(options.text_fields), frozenset(options.place_fields))
    begun = 0
    if not fields.text or not fields.place:
        survey = FieldSurvey()
        for document in source.documents(moved):
            if isinstance(document, Document) and document.source is not None:
                survey.add(source.query_of(document.source)[0])
        fields = survey.choose(options.text_fields, options.place_fields)
        begun = path.stat().st_size
    reader = ElasticsearchReader(fields, options.tokens, options.phrases_as_words)
    writer = SubscriptionWriter(options.ts, options.tokens)
    for document in source.documents(lambda read: moved(begun + read)):
        if isinstance(document, Unreadable):
            yield unreadable_outcome(document)
        elif document.source is None:
            if document.id is not None:
                events = writer.unsubscribe(document.id, document.index_name)
                yield ImportOutcome(document.line, document.id, events, [])
        else:
            yield translate_document(document, source, reader, writer, options)


def translate_document(
    document: Document,
    source: DocumentSource,
    reader: ElasticsearchReader,
    writer: SubscriptionWriter,
    options: ImportOptions,
) -> ImportOutcome:
    assert document.source is not None
    query, rest = source.query_of(document.source)
    name = document.id if document.id is not None else f"query-{document.line}"
    try:
        if query is None:
            raise Untranslatable(f"the document has no query in its field {source.query_field!r}")
        if document.is_new and writer.is_live(name):
            raise Untranslatable("create of a document that exists")
        alternatives = reader.read(query)
        notes = list(reader.notes)
        if document.id is None:
            notes.append(ImportNote(report.NO_ID, ""))
        if rest and not options.with_data:
            notes.append(ImportNote(report.OTHER_FIELDS, ""))
        data = rest if rest and options.with_data else UNSET
        events = writer.subscribe(
            TranslatedQuery(name, document.index_name, alternatives, None, data), notes
        )
    except Untranslatable as refusal:
        # The source system replaced the earlier query with this id, so it must end here too.
        events = [] if document.is_new else writer.unsubscribe(name, document.index_name)
        return ImportOutcome(document.line, document.id, events, [], refusal)
    return ImportOutcome(document.line, name, events, notes)


def import_fences(
    path: Path, options: ImportOptions, moved: ReadProgress = lambda _: None
) -> Iterator[ImportOutcome]:
    """Translate Tile38 fences; raises Unusable."""
    key, begun = options.key, 0
    if key is None:
        keys: Counter[str] = Counter()
        for fence in read_fences(path, moved):
            if isinstance(fence, Fence) and len(fence.words) > 1:
                keys[fence.words[1]] += 1
        key = next(iter(require_one(keys, "stream", "--key")), None)
        begun = path.stat().st_size
    reader = FenceReader(key)
    writer = SubscriptionWriter(options.ts, options.tokens)
    for fence in read_fences(path, lambda read: moved(begun + read)):
        if isinstance(fence, Unreadable):
            yield unreadable_outcome(fence)
        elif not fence.words and fence.name is not None:
            yield ImportOutcome(fence.line, fence.name, writer.unsubscribe(fence.name, ""), [])
        else:
            yield translate_fence(fence, reader, writer, options)


def translate_fence(
    fence: Fence, reader: FenceReader, writer: SubscriptionWriter, options: ImportOptions
) -> ImportOutcome:
    name = fence.name if fence.name is not None else f"fence-{fence.line}"
    try:
        alternatives: Alternatives = reader.read(fence)
        notes = list(reader.notes)
        if fence.name is None:
            notes.append(ImportNote(report.NO_ID, ""))
        if fence.meta and not options.with_data:
            notes.append(ImportNote(report.META, ""))
        data = fence.meta if fence.meta and options.with_data else UNSET
        expires = None
        if fence.ttl_s is not None:
            expires = expiry_after(options.ts, fence.ttl_s)
            notes.append(ImportNote(report.EXPIRES, "EX"))
        events = writer.subscribe(TranslatedQuery(name, "", alternatives, expires, data), notes)
    except Untranslatable as refusal:
        return ImportOutcome(fence.line, fence.name, writer.unsubscribe(name, ""), [], refusal)
    return ImportOutcome(fence.line, name, events, notes)


def expiry_after(ts: str, ttl_s: str) -> str:
    """The time `ttl_s` seconds after `ts`."""
    seconds = read_number(ttl_s, "EX", "EX")
    if not 0.0 <= seconds <= MOST_TTL_S:
        raise Untranslatable("EX must be from 0 to 100 years", "EX", shown(ttl_s))
    return format_timestamp(parse_timestamp(ts) + round(1e6 * seconds))


def unreadable_outcome(found: Unreadable) -> ImportOutcome:
    return ImportOutcome(found.line, None, [], [], Untranslatable(BROKEN, "", found.why))
