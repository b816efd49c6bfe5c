"""Read queries of Elasticsearch and OpenSearch; compound clauses such as bool are here.

`FieldReader.read` takes a query as it is in a percolator document. The clauses that ask about words
and places are in `elasticsearch_clauses`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from placewire.importers.alternatives import (
    EVERYTHING,
    NOTHING,
    Alternatives,
    all_of,
    any_of,
    at_least,
    negate,
)
from placewire.importers.report import (
    BOOST,
    NAMED,
    NO_COUNTERPART,
    OPTIONAL,
    ImportNote,
    Untranslatable,
    shown,
)
from placewire.importers.shapes import ShapeReader, read_distance
from placewire.importers.words import WordReader
from placewire.text.query import Tokens

MOST_CLAUSE_DEPTH = 64
OTHER_FIELD = "a field that is neither the text nor the place"

ClauseReader: TypeAlias = "Callable[[ElasticsearchReader, dict[str, Any], str], Alternatives]"


class QueryFields(NamedTuple):
    """The fields of a document that hold an object's text and its place."""

    text: frozenset[str]
    place: frozenset[str]


class ElasticsearchReader:
    """Reads queries; `notes` are those of the last query."""

    def __init__(
        self,
        fields: QueryFields,
        tokens: Tokens,
        readers: Mapping[str, ClauseReader],
        phrases_as_words: bool = False,
    ) -> None:
        self.fields = fields
        self.readers = readers
        self.words = WordReader(tokens)
        self.shapes = ShapeReader(read_distance, wide=False, add_note=self.add_note)
        self.phrases_as_words = phrases_as_words
        self.notes: list[ImportNote] = []
        self.depth = 0

    def read(self, query: Any) -> Alternatives:
        """Read a query as alternatives; raises Untranslatable."""
        self.notes = []
        self.depth = 0
        return self.clause(query, "query")

    def add_note(self, what: str, where: str) -> None:
        """Add a note unless the query already has it."""
        if all(note.what != what for note in self.notes):
            self.notes.append(ImportNote(what, where))

    def clause(self, query: Any, where: str) -> Alternatives:
        """Read a clause: an object with its name as the only key."""
        if not isinstance(query, dict) or len(query) != 1:
            raise Untranslatable("a clause must be an object with one key", where, shown(query))
        ((name, body),) = query.items()
        at = f"{where}.{name}"
        read = self.readers.get(name)
        if read is None:
            raise Untranslatable(f"{name[:60]} {NO_COUNTERPART}", at)
        if not isinstance(body, dict):
            raise Untranslatable(f"{name} must be an object", at, shown(body))
        if self.depth == MOST_CLAUSE_DEPTH:
            raise Untranslatable(f"clauses are nested more than {MOST_CLAUSE_DEPTH} deep", at)
        self.depth += 1
        try:
            return read(self, body, at)
        except Untranslatable as error:
            error.where = error.where or at
            raise
        finally:
            self.depth -= 1

    def clauses(self, body: dict[str, Any], name: str, where: str) -> list[Alternatives]:
        """Read a clause or a list of clauses."""
        given = body.get(name, [])
        if isinstance(given, dict):
            return [self.clause(given, f"{where}.{name}")]
        if not isinstance(given, list):
            raise Untranslatable(f"{name} must be a list", f"{where}.{name}", shown(given))
        return [self.clause(each, f"{where}.{name}[{n}]") for n, each in enumerate(given)]

    def check(self, body: dict[str, Any], where: str, known: Collection[str]) -> None:
        """Refuse unknown parameters; boosts and names only add a note."""
        for name, value in body.items():
            if name in known:
                continue
            if name == "boost":
                if value != 1:
                    self.add_note(BOOST, f"{where}.{name}")
            elif name == "_name":
                self.add_note(NAMED, f"{where}.{name}")
            else:
                raise Untranslatable("an unknown parameter", f"{where}.{name}")

    def one_field(
        self, body: dict[str, Any], where: str, known: Collection[str]
    ) -> tuple[str, Any, str]:
        """The only field in a body: its name, its value and its location."""
        names = [name for name in body if name not in known and name not in ("boost", "_name")]
        if len(names) != 1:
            raise Untranslatable("must name one field", where, shown(body))
        self.check(body, where, {names[0], *known})
        return names[0], body[names[0]], f"{where}.{names[0]}"

    def text_field(self, body: dict[str, Any], where: str) -> tuple[Any, str]:
        """The value and the location of the only field in a body, which must hold the text."""
        field, value, at = self.one_field(body, where, ())
        self.require_field(field, self.fields.text, at)
        return value, at

    def place_field(
        self, body: dict[str, Any], where: str, known: Collection[str]
    ) -> tuple[Any, str]:
        """The value and the location of the only field in a body, which must hold the place."""
        field, value, at = self.one_field(body, where, known)
        self.require_field(field, self.fields.place, at)
        return value, at

    def require_field(self, field: Any, allowed: frozenset[str], where: str) -> None:
        if field not in allowed:
            raise Untranslatable(OTHER_FIELD, where, shown(field))


def read_minimum_should_match(spec: Any, clauses: int, where: str) -> int:
    """How many of the clauses must match, counted as Elasticsearch counts."""
    text = str(spec).strip() if isinstance(spec, int | str) and not isinstance(spec, bool) else "?"
    try:
        if "<" not in text:
            return simple_count(text, clauses)
        result = clauses
        for part in re.sub(r"\s*<\s*", "<", text).split():
            bound, count = part.split("<")
            if clauses <= int(bound):
                return result
            result = simple_count(count, clauses)
    except (ValueError, OverflowError):
        raise Untranslatable("an unreadable minimum_should_match", where, shown(spec)) from None
    return result


def simple_count(text: str, clauses: int) -> int:
    """Read `3`, `-2`, `75%` or `-25%`; percentages are truncated in 32-bit floats."""
    if text.endswith("%"):
        share = int(np.float32(clauses * int(text[:-1])) * (np.float32(1) / np.float32(100)))
        return max(clauses + share if share < 0 else share, 0)
    count = int(text)
    return max(clauses + count if count < 0 else count, 0)


def read_bool(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
    known = ("must", "filter", "should", "must_not", "minimum_should_match", "adjust_pure_negative")
    reader.check(body, where, known)
    needed = reader.clauses(body, "must", where) + reader.clauses(body, "filter", where)
    given = body.get("should", [])
    count = len(given) if isinstance(given, list) else 1
    least = 0
    if "minimum_should_match" in body:
        at = f"{where}.minimum_should_match"
        least = read_minimum_should_match(body["minimum_should_match"], count, at)
    if least == 0 and count and not needed:
        least = 1
    excluded = reader.clauses(body, "must_not", where)
    if least > count:
        return NOTHING
    if least:
        needed.append(at_least(least, reader.clauses(body, "should", where)))
    elif count:
        reader.add_note(OPTIONAL, f"{where}.should")
    if excluded and not needed and body.get("adjust_pure_negative") is False:
        return NOTHING
    # Exclusions come last, when the area in which they are a hole is known.
    return all_of([*needed, negate(any_of(excluded))])


def read_constant_score(
    reader: ElasticsearchReader, body: dict[str, Any], where: str
) -> Alternatives:
    reader.check(body, where, ("filter",))
    return reader.clause(body.get("filter"), f"{where}.filter")


def read_dis_max(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
    reader.check(body, where, ("queries", "tie_breaker"))
    return any_of(reader.clauses(body, "queries", where))


def read_boosting(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
    reader.check(body, where, ("positive", "negative", "negative_boost"))
    reader.add_note(BOOST, f"{where}.negative")
    return reader.clause(body.get("positive"), f"{where}.positive")


def read_function_score(
    reader: ElasticsearchReader, body: dict[str, Any], where: str
) -> Alternatives:
    if "min_score" in body:
        raise Untranslatable(f"min_score {NO_COUNTERPART}", f"{where}.min_score")
    reader.add_note(BOOST, where)
    return reader.clause(body["query"], f"{where}.query") if "query" in body else EVERYTHING


def read_match_all(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
    reader.check(body, where, ())
    return EVERYTHING


def read_match_none(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
    reader.check(body, where, ())
    return NOTHING


def read_exists(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
    """Match everything: every object has a text and a place."""
    reader.check(body, where, ("field",))
    reader.require_field(body.get("field"), reader.fields.text | reader.fields.place, where)
    return EVERYTHING


COMPOUND_CLAUSES: dict[str, ClauseReader] = {
    "bool": read_bool,
    "constant_score": read_constant_score,
    "dis_max": read_dis_max,
    "boosting": read_boosting,
    "function_score": read_function_score,
    "match_all": read_match_all,
    "match_none": read_match_none,
    "exists": read_exists,
}
