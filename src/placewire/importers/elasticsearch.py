"""Read queries of Elasticsearch and OpenSearch, clause by clause.

`ElasticsearchReader.read` takes a query as it is in a percolator document. `CLAUSES` has a function
for each clause that can be translated: compound ones such as `bool`, then words, then places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from placewire.importers import report
from placewire.importers.alternatives import (
    EVERYTHING,
    NOTHING,
    Alternatives,
    all_of,
    any_of,
    at_least,
    from_areas,
    from_text,
    negate,
)
from placewire.importers.areas import Circle
from placewire.importers.report import (
    NO_COUNTERPART,
    ImportNote,
    Untranslatable,
    shown,
)
from placewire.importers.shapes import ShapeReader, read_box, read_distance, read_point, read_wkt
from placewire.importers.words import Word, WordReader
from placewire.text.query import Tokens

MOST_CLAUSE_DEPTH = 64
OTHER_FIELD = "a field that is neither the text nor the place"

Body = dict[str, Any]
ClauseReader: TypeAlias = "Callable[[ElasticsearchReader, Body, str], Alternatives]"

# These change no match: `lenient` concerns types, the others concern clauses that are refused.
IGNORED_TEXT_PARAMETERS = {
    "lenient", "auto_generate_synonyms_phrase_query", "max_expansions", "prefix_length",
    "fuzzy_transpositions", "fuzzy_rewrite", "tie_breaker",
}  # fmt: skip
MATCH_PARAMETERS = IGNORED_TEXT_PARAMETERS | {
    "query", "operator", "minimum_should_match", "zero_terms_query", "analyzer", "fuzziness",
}  # fmt: skip
PHRASE_PARAMETERS = {"query", "slop", "zero_terms_query", "analyzer"}
SAME_AS_MATCH = ("best_fields", "most_fields", "cross_fields")
# These change no match: values out of range are refused, and distances are great-circle.
IGNORED_PLACE_PARAMETERS = ("validation_method", "ignore_unmapped", "ignore_malformed", "coerce")


class QueryFields(NamedTuple):
    """The fields of a document that hold an object's text and its place."""

    text: frozenset[str]
    place: frozenset[str]


class ElasticsearchReader:
    """Reads queries; `notes` are those of the last query."""

    def __init__(self, fields: QueryFields, tokens: Tokens, phrases_as_words: bool = False) -> None:
        self.fields = fields
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
        read = CLAUSES.get(name)
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

    def clauses(self, body: Body, name: str, where: str) -> list[Alternatives]:
        """Read a clause or a list of clauses."""
        given = body.get(name, [])
        if isinstance(given, dict):
            return [self.clause(given, f"{where}.{name}")]
        if not isinstance(given, list):
            raise Untranslatable(f"{name} must be a list", f"{where}.{name}", shown(given))
        return [self.clause(each, f"{where}.{name}[{n}]") for n, each in enumerate(given)]

    def check(self, body: Body, where: str, known: Collection[str]) -> None:
        """Refuse unknown parameters; boosts and names only add a note."""
        for name, value in body.items():
            if name in known:
                continue
            if name == "boost":
                if value != 1:
                    self.add_note(report.BOOST, f"{where}.{name}")
            elif name == "_name":
                self.add_note(report.NAMED, f"{where}.{name}")
            else:
                raise Untranslatable("an unknown parameter", f"{where}.{name}")

    def one_field(self, body: Body, where: str, known: Collection[str]) -> tuple[str, Any, str]:
        """The only field in a body: its name, its value and its location."""
        names = [name for name in body if name not in known and name not in ("boost", "_name")]
        if len(names) != 1:
            raise Untranslatable("must name one field", where, shown(body))
        self.check(body, where, {names[0], *known})
        return names[0], body[names[0]], f"{where}.{names[0]}"

    def text_field(self, body: Body, where: str) -> tuple[Any, str]:
        """The value and the location of the only field in a body, which must hold the text."""
        field, value, at = self.one_field(body, where, ())
        self.require_field(field, self.fields.text, at)
        return value, at

    def text_options(self, body: Body, where: str, known: Collection[str]) -> tuple[Body, str]:
        """The options of a clause on the text, which may be the text alone, and their location."""
        value, at = self.text_field(body, where)
        options = value if isinstance(value, dict) else {"query": value}
        self.check(options, at, known)
        return options, at

    def place_field(self, body: Body, where: str, known: Collection[str]) -> tuple[Any, str]:
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


def read_bool(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
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
        reader.add_note(report.OPTIONAL, f"{where}.should")
    if excluded and not needed and body.get("adjust_pure_negative") is False:
        return NOTHING
    # Exclusions come last, when the area in which they are a hole is known.
    return all_of([*needed, negate(any_of(excluded))])


def read_constant_score(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    reader.check(body, where, ("filter",))
    return reader.clause(body.get("filter"), f"{where}.filter")


def read_dis_max(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    reader.check(body, where, ("queries", "tie_breaker"))
    return any_of(reader.clauses(body, "queries", where))


def read_boosting(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    reader.check(body, where, ("positive", "negative", "negative_boost"))
    reader.add_note(report.BOOST, f"{where}.negative")
    return reader.clause(body.get("positive"), f"{where}.positive")


def read_function_score(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    if "min_score" in body:
        raise Untranslatable(f"min_score {NO_COUNTERPART}", f"{where}.min_score")
    reader.add_note(report.BOOST, where)
    return reader.clause(body["query"], f"{where}.query") if "query" in body else EVERYTHING


def read_match_all(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    reader.check(body, where, ())
    return EVERYTHING


def read_match_none(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    reader.check(body, where, ())
    return NOTHING


def read_exists(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    """Match everything: every object has a text and a place."""
    reader.check(body, where, ("field",))
    reader.require_field(body.get("field"), reader.fields.text | reader.fields.place, where)
    return EVERYTHING


def read_term(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    value, at = reader.text_field(body, where)
    folded = False
    if isinstance(value, dict):
        reader.check(value, at, ("value", "case_insensitive"))
        folded = value.get("case_insensitive") is True
        value, at = value.get("value"), f"{at}.value"
    return match_term(reader, value, at, folded)


def read_terms(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    values, at = reader.text_field(body, where)
    if not isinstance(values, list):
        raise Untranslatable(f"a terms lookup {NO_COUNTERPART}", at, shown(values))
    return any_of([match_term(reader, value, f"{at}[{n}]") for n, value in enumerate(values)])


def match_term(
    reader: ElasticsearchReader, value: Any, where: str, folded: bool = False
) -> Alternatives:
    """Match a word that Elasticsearch looks up without analysing it."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise Untranslatable("a term must be a word", where, shown(value))
    written = str(value)
    words = reader.words.read(written, where)
    if len(words) != 1 or words[0].written != written:
        raise Untranslatable("a term that is not one word never meets an analysed text", where,
                             shown(value))  # fmt: skip
    if not folded and words[0].lowered != written:
        reader.add_note(report.CASE, where)
    return match_words(reader, words, where)[0]


def read_match(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    return match_text(reader, *reader.text_options(body, where, MATCH_PARAMETERS))


def match_text(reader: ElasticsearchReader, options: Body, where: str) -> Alternatives:
    """Match some or all words of a text."""
    if options.get("fuzziness", 0) not in (0, "0"):
        raise Untranslatable(f"fuzziness {NO_COUNTERPART}", f"{where}.fuzziness")
    words = read_words(reader, options, where)
    if not words:
        return match_no_words(options, where)
    parts = match_words(reader, words, where)
    operator = str(options.get("operator", "or")).lower()
    if operator not in ("or", "and"):
        raise Untranslatable("an operator must be and or or", where, shown(options["operator"]))
    least = len(parts)
    if operator == "or":
        least = 1
        if "minimum_should_match" in options and len(parts) > 1:
            at = f"{where}.minimum_should_match"
            least = max(
                read_minimum_should_match(options["minimum_should_match"], len(parts), at), 1
            )
    if least > len(parts):
        return NOTHING
    return all_of(parts) if least == len(parts) else at_least(least, parts)


def read_match_phrase(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    return match_phrase(reader, *reader.text_options(body, where, PHRASE_PARAMETERS))


def match_phrase(reader: ElasticsearchReader, options: Body, where: str) -> Alternatives:
    """Match a phrase: exact for a single word, since an object's terms have no order."""
    words = read_words(reader, options, where)
    if not words:
        return match_no_words(options, where)
    if len(words) > 1:
        if not reader.phrases_as_words:
            raise Untranslatable(
                f"a phrase {NO_COUNTERPART}; --phrases-as-words asks for all of its words",
                where,
                shown(options["query"]),
            )
        reader.add_note(report.PHRASE, where)
    return all_of(match_words(reader, words, where))


def read_multi_match(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    """Match several fields, all of which must hold the text."""
    fields = body.get("fields")
    if isinstance(fields, str):
        fields = [fields]
    if not isinstance(fields, list) or not fields or not all(isinstance(f, str) for f in fields):
        raise Untranslatable("multi_match must name its fields", where, shown(fields))
    for n, field in enumerate(fields):
        name, boost, _ = field.partition("^")
        reader.require_field(name, reader.fields.text, f"{where}.fields[{n}]")
        if boost:
            reader.add_note(report.BOOST, f"{where}.fields[{n}]")
    match_type = body.get("type", "best_fields")
    own = ("fields", "type")
    if match_type in SAME_AS_MATCH:
        reader.check(body, where, MATCH_PARAMETERS.union(own))
        return match_text(reader, body, where)
    if match_type == "phrase":
        reader.check(body, where, PHRASE_PARAMETERS | IGNORED_TEXT_PARAMETERS.union(own))
        return match_phrase(reader, body, where)
    raise Untranslatable(f"multi_match of this type {NO_COUNTERPART}", where, shown(match_type))


def read_words(reader: ElasticsearchReader, options: Body, where: str) -> list[Word]:
    text = options.get("query")
    if not isinstance(text, str | int | float) or isinstance(text, bool):
        raise Untranslatable("a match must have a text", where, shown(text))
    if "analyzer" in options:
        reader.add_note(report.ANALYZER, where)
    return reader.words.read(str(text), where)


def match_words(
    reader: ElasticsearchReader, words: Sequence[Word], where: str
) -> list[Alternatives]:
    if not all(word.is_same for word in words):
        reader.add_note(report.WORDS, where)
    if any(word.is_folded for word in words):
        reader.add_note(report.FOLDED, where)
    return [from_text(word.node) for word in words]


def match_no_words(options: Body, where: str) -> Alternatives:
    """What a text without words matches: nothing, or everything with zero_terms_query all."""
    wanted = options.get("zero_terms_query", "none")
    allowed: Collection[str] = ("none", "all")
    if not isinstance(wanted, str) or wanted.lower() not in allowed:
        raise Untranslatable("zero_terms_query must be none or all", where, shown(wanted))
    return EVERYTHING if wanted.lower() == "all" else NOTHING


def read_geo_bounding_box(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    value, at = reader.place_field(body, where, (*IGNORED_PLACE_PARAMETERS, "type"))
    return from_areas([read_box(value, at, reader.shapes)])


def read_geo_distance(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    own = ("distance", "unit", "distance_type")
    value, at = reader.place_field(body, where, (*IGNORED_PLACE_PARAMETERS, *own))
    if str(body.get("distance_type", "arc")).lower() not in ("arc", "sloppy_arc"):
        raise Untranslatable(
            "a distance must be along the arc",
            f"{where}.distance_type",
            shown(body["distance_type"]),
        )
    radius_m = read_distance(body.get("distance"), f"{where}.distance", body.get("unit", "m"))
    return from_areas([Circle(*read_point(value, at, reader.shapes), radius_m)])


def read_geo_shape(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    """Read a geo_shape; a point is within a shape exactly if it intersects it."""
    value, at = reader.place_field(body, where, ("ignore_unmapped",))
    if not isinstance(value, dict):
        raise Untranslatable("geo_shape must have a shape", at, shown(value))
    if "indexed_shape" in value:
        raise Untranslatable("an indexed shape is not in this file", f"{at}.indexed_shape")
    reader.check(value, at, ("shape", "relation", "strategy"))
    relation = str(value.get("relation", "intersects")).lower()
    if relation not in ("intersects", "within", "disjoint"):
        raise Untranslatable(f"this relation {NO_COUNTERPART}", f"{at}.relation", shown(relation))
    shape = value.get("shape")
    if isinstance(shape, str):
        shape = read_wkt(shape, f"{at}.shape")
    alternatives = from_areas(reader.shapes.read(shape, f"{at}.shape"))
    return negate(alternatives) if relation == "disjoint" else alternatives


def read_geo_polygon(reader: ElasticsearchReader, body: Body, where: str) -> Alternatives:
    """Read a geo_polygon: a list of points, closed or not."""
    value, at = reader.place_field(body, where, IGNORED_PLACE_PARAMETERS)
    points = value.get("points") if isinstance(value, dict) else None
    if not isinstance(points, list) or len(points) < 3:
        raise Untranslatable("geo_polygon must have three points or more", at, shown(points))
    ring = [
        list(read_point(point, f"{at}.points[{n}]", reader.shapes))
        for n, point in enumerate(points)
    ]
    if ring[0] != ring[-1]:
        ring.append(ring[0])
    return from_areas([reader.shapes.polygon([ring], f"{at}.points")])


def by_name(*readers: ClauseReader) -> dict[str, ClauseReader]:
    """Return the functions `read_*` by the clauses that they read."""
    return {read.__name__.removeprefix("read_"): read for read in readers}


PLACE_CLAUSES = by_name(read_geo_bounding_box, read_geo_distance, read_geo_shape, read_geo_polygon)
CLAUSES = PLACE_CLAUSES | by_name(
    read_bool, read_constant_score, read_dis_max, read_boosting, read_function_score,
    read_match_all, read_match_none, read_exists, read_term, read_terms, read_match,
    read_match_phrase, read_multi_match,
)  # fmt: skip
