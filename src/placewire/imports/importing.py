"""From a file of queries to outcomes: two passes, one to find the fields, one to translate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from placewire.imports.clauses import ClauseReader, Fields, QueryReader
from placewire.imports.commands import Fence, read_fences
from placewire.imports.documents import Document, DocumentSource
from placewire.imports.fences import FenceReader
from placewire.imports.fields import FieldSurvey, only
from placewire.imports.joining import JOINING
from placewire.imports.ledger import Outcome
from placewire.imports.meaning import Meaning
from placewire.imports.numbers import number
from placewire.imports.placeclauses import OF_PLACES
from placewire.imports.reading import Broken, Moved
from placewire.imports.reasons import (
    EXPIRES,
    META,
    NO_ID,
    OTHER_FIELDS,
    Note,
    Untranslatable,
    shown,
)
from placewire.imports.subscriptions import SubscriptionWriter, Wish
from placewire.imports.textclauses import OF_WORDS
from placewire.model.events import UNSET
from placewire.model.times import format_timestamp, parse_timestamp
from placewire.text.analyzer import Analyzer
from placewire.text.query import Tokens

READERS: dict[str, ClauseReader] = {**JOINING, **OF_WORDS, **OF_PLACES}
LONGEST_S = 36_500 * 86_400
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


class ImportOptions(NamedTuple):
    """What the translation depends on."""

    ts: str
    text_fields: Sequence[str] = ()
    place_fields: Sequence[str] = ()
    query_field: str = "query"
    key: str | None = None
    with_data: bool = False
    phrases_as_words: bool = False
    tokens: Tokens = Analyzer(0, 0).tokens


def unheard(_: int) -> None:
    """Nobody wants to know how much is read."""


def import_queries(path: Path, options: ImportOptions, moved: Moved = unheard) -> Iterator[Outcome]:
    """Percolator queries as outcomes; raises Unusable.

    `moved` hears how many bytes are read, of twice the file unless all fields are named.
    """
    source = DocumentSource(path, options.query_field)
    fields = Fields(frozenset(options.text_fields), frozenset(options.place_fields))
    begun = 0
    if not fields.text or not fields.place:
        survey = FieldSurvey()
        for document in source.documents(moved):
            if isinstance(document, Document) and document.source is not None:
                survey.add(source.query_of(document.source)[0])
        fields = survey.choose(options.text_fields, options.place_fields)
        begun = path.stat().st_size
    reader = QueryReader(fields, options.tokens, READERS, options.phrases_as_words)
    writer = SubscriptionWriter(options.ts, options.tokens)
    for document in source.documents(lambda read: moved(begun + read)):
        if isinstance(document, Broken):
            yield broken(document)
        elif document.source is None:
            if document.id is not None:
                events = writer.unsubscribe(document.id, document.index_name)
                yield Outcome(document.line, document.id, events, [])
        else:
            yield translate_document(document, source, reader, writer, options)


def translate_document(
    document: Document,
    source: DocumentSource,
    reader: QueryReader,
    writer: SubscriptionWriter,
    options: ImportOptions,
) -> Outcome:
    """One document with a query."""
    assert document.source is not None
    query, rest = source.query_of(document.source)
    name = document.id if document.id is not None else f"query-{document.line}"
    try:
        if query is None:
            raise Untranslatable(f"the document has no query in its field {source.query_field!r}")
        if document.is_new and writer.stands(name):
            raise Untranslatable("create of a document that is there")
        meaning = reader.read(query)
        notes = list(reader.notes)
        if document.id is None:
            notes.append(Note(NO_ID, ""))
        if rest and not options.with_data:
            notes.append(Note(OTHER_FIELDS, ""))
        data = rest if rest and options.with_data else UNSET
        events = writer.subscribe(Wish(name, document.index_name, meaning, None, data), notes)
    except Untranslatable as refusal:
        # What stood under the id was replaced where it comes from, so it must not stand here.
        events = [] if document.is_new else writer.unsubscribe(name, document.index_name)
        return Outcome(document.line, document.id, events, [], refusal)
    return Outcome(document.line, name, events, notes)


def import_fences(path: Path, options: ImportOptions, moved: Moved = unheard) -> Iterator[Outcome]:
    """Tile38's fences as outcomes; raises Unusable."""
    key, begun = options.key, 0
    if key is None:
        keys: Counter[str] = Counter()
        for fence in read_fences(path, moved):
            if isinstance(fence, Fence) and len(fence.words) > 1:
                keys[fence.words[1]] += 1
        key = next(iter(only(keys, "stream", "--key")), None)
        begun = path.stat().st_size
    reader = FenceReader(key)
    writer = SubscriptionWriter(options.ts, options.tokens)
    for fence in read_fences(path, lambda read: moved(begun + read)):
        if isinstance(fence, Broken):
            yield broken(fence)
        elif not fence.words and fence.name is not None:
            yield Outcome(fence.line, fence.name, writer.unsubscribe(fence.name, ""), [])
        else:
            yield translate_fence(fence, reader, writer, options)


def translate_fence(
    fence: Fence, reader: FenceReader, writer: SubscriptionWriter, options: ImportOptions
) -> Outcome:
    """One fence."""
    name = fence.name if fence.name is not None else f"fence-{fence.line}"
    try:
        meaning: Meaning = reader.read(fence)
        notes = list(reader.notes)
        if fence.name is None:
            notes.append(Note(NO_ID, ""))
        data: Any = UNSET
        if fence.meta:
            if options.with_data:
                data = fence.meta
            else:
                notes.append(Note(META, ""))
        expires = None
        if fence.ttl_s is not None:
            expires = end_of(options.ts, fence.ttl_s)
            notes.append(Note(EXPIRES, "EX"))
        events = writer.subscribe(Wish(name, "", meaning, expires, data), notes)
    except Untranslatable as refusal:
        return Outcome(fence.line, fence.name, writer.unsubscribe(name, ""), [], refusal)
    return Outcome(fence.line, name, events, notes)


def end_of(ts: str, ttl_s: str) -> str:
    """When something ends that has so many seconds left."""
    seconds = number(ttl_s, "EX", "EX")
    if not 0.0 <= seconds <= LONGEST_S:
        raise Untranslatable("EX must be from 0 to 100 years", "EX", shown(ttl_s))
    return format_timestamp(parse_timestamp(ts) + round(1e6 * seconds))


def broken(found: Broken) -> Outcome:
    return Outcome(found.line, None, [], [], Untranslatable(BROKEN, "", found.why))
