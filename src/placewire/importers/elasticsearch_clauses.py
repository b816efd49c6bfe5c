"""Clauses of Elasticsearch and OpenSearch about words and places, and the table of all clauses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

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
from placewire.importers.elasticsearch_query import (
    COMPOUND_CLAUSES,
    ClauseReader,
    ElasticsearchReader,
    read_minimum_should_match,
)
from placewire.importers.report import (
    ANALYZER,
    BOOST,
    CASE,
    FOLDED,
    NO_COUNTERPART,
    PHRASE,
    WORDS,
    Untranslatable,
    shown,
)
from placewire.importers.shapes import read_box, read_distance, read_point, read_wkt
from placewire.importers.words import Word

# These change no match: `lenient` concerns types, the others concern clauses that are refused.
IGNORED_TEXT_PARAMETERS = frozenset(
    [
        "lenient",
        "auto_generate_synonyms_phrase_query",
        "max_expansions",
        "prefix_length",
        "fuzzy_transpositions",
        "fuzzy_rewrite",
        "tie_breaker",
    ]
)
MATCH_PARAMETERS = IGNORED_TEXT_PARAMETERS | {
    "query", "operator", "minimum_should_match", "zero_terms_query", "analyzer", "fuzziness",
}  # fmt: skip
PHRASE_PARAMETERS = frozenset(["query", "slop", "zero_terms_query", "analyzer"])
SAME_AS_MATCH = ("best_fields", "most_fields", "cross_fields")
# These change no match: values out of range are refused, and distances are great-circle.
IGNORED_PLACE_PARAMETERS = ("validation_method", "ignore_unmapped", "ignore_malformed", "coerce")


def read_term(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
    value, at = reader.text_field(body, where)
    folded = False
    if isinstance(value, dict):
        reader.check(value, at, ("value", "case_insensitive"))
        folded = value.get("case_insensitive") is True
        value, at = value.get("value"), f"{at}.value"
    return match_term(reader, value, at, folded)


def read_terms(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
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
        reader.add_note(CASE, where)
    return match_words(reader, words, where)[0]


def read_match(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
    value, at = reader.text_field(body, where)
    options = value if isinstance(value, dict) else {"query": value}
    reader.check(options, at, MATCH_PARAMETERS)
    return match_text(reader, options, at)


def match_text(reader: ElasticsearchReader, options: dict[str, Any], where: str) -> Alternatives:
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


def read_match_phrase(
    reader: ElasticsearchReader, body: dict[str, Any], where: str
) -> Alternatives:
    value, at = reader.text_field(body, where)
    options = value if isinstance(value, dict) else {"query": value}
    reader.check(options, at, PHRASE_PARAMETERS)
    return match_phrase(reader, options, at)


def match_phrase(reader: ElasticsearchReader, options: dict[str, Any], where: str) -> Alternatives:
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
        reader.add_note(PHRASE, where)
    return all_of(match_words(reader, words, where))


def read_multi_match(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
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
            reader.add_note(BOOST, f"{where}.fields[{n}]")
    kind = body.get("type", "best_fields")
    own = ("fields", "type")
    if kind in SAME_AS_MATCH:
        reader.check(body, where, MATCH_PARAMETERS.union(own))
        return match_text(reader, body, where)
    if kind == "phrase":
        reader.check(body, where, PHRASE_PARAMETERS | IGNORED_TEXT_PARAMETERS.union(own))
        return match_phrase(reader, body, where)
    raise Untranslatable(f"multi_match of this type {NO_COUNTERPART}", where, shown(kind))


def read_words(reader: ElasticsearchReader, options: dict[str, Any], where: str) -> list[Word]:
    text = options.get("query")
    if not isinstance(text, str | int | float) or isinstance(text, bool):
        raise Untranslatable("a match must have a text", where, shown(text))
    if "analyzer" in options:
        reader.add_note(ANALYZER, where)
    return reader.words.read(str(text), where)


def match_words(
    reader: ElasticsearchReader, words: Sequence[Word], where: str
) -> list[Alternatives]:
    if not all(word.is_same for word in words):
        reader.add_note(WORDS, where)
    if any(word.is_folded for word in words):
        reader.add_note(FOLDED, where)
    return [from_text(word.node) for word in words]


def match_no_words(options: dict[str, Any], where: str) -> Alternatives:
    """What a text without words matches: nothing, or everything with zero_terms_query all."""
    wanted = options.get("zero_terms_query", "none")
    allowed: Collection[str] = ("none", "all")
    if not isinstance(wanted, str) or wanted.lower() not in allowed:
        raise Untranslatable("zero_terms_query must be none or all", where, shown(wanted))
    return EVERYTHING if wanted.lower() == "all" else NOTHING


TEXT_CLAUSES: dict[str, ClauseReader] = {
    "term": read_term,
    "terms": read_terms,
    "match": read_match,
    "match_phrase": read_match_phrase,
    "multi_match": read_multi_match,
}


def read_geo_bounding_box(
    reader: ElasticsearchReader, body: dict[str, Any], where: str
) -> Alternatives:
    value, at = reader.place_field(body, where, (*IGNORED_PLACE_PARAMETERS, "type"))
    return from_areas([read_box(value, at, reader.shapes)])


def read_geo_distance(
    reader: ElasticsearchReader, body: dict[str, Any], where: str
) -> Alternatives:
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


def read_geo_shape(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
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


def read_geo_polygon(reader: ElasticsearchReader, body: dict[str, Any], where: str) -> Alternatives:
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


PLACE_CLAUSES: dict[str, ClauseReader] = {
    "geo_bounding_box": read_geo_bounding_box,
    "geo_distance": read_geo_distance,
    "geo_shape": read_geo_shape,
    "geo_polygon": read_geo_polygon,
}

CLAUSES: dict[str, ClauseReader] = {**COMPOUND_CLAUSES, **TEXT_CLAUSES, **PLACE_CLAUSES}
