"""Clauses that join others, bool above all, and those that say nothing of words or places."""

from __future__ import annotations

from typing import Any

from placewire.imports.clauses import NO_COUNTERPART, OTHER_FIELD, ClauseReader, QueryReader
from placewire.imports.meaning import EVERYTHING, NOTHING, Meaning, at_least, every, negated, some
from placewire.imports.numbers import how_many
from placewire.imports.reasons import BOOST, OPTIONAL, Untranslatable, shown


def read_bool(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    known = ("must", "filter", "should", "must_not", "minimum_should_match", "adjust_pure_negative")
    reader.check(body, where, known)
    needed = reader.clauses(body, "must", where) + reader.clauses(body, "filter", where)
    given = body.get("should", [])
    count = len(given) if isinstance(given, list) else 1
    least = 0
    if "minimum_should_match" in body:
        at = f"{where}.minimum_should_match"
        least = how_many(body["minimum_should_match"], count, at)
    if least == 0 and count and not needed:
        least = 1
    ruled = reader.clauses(body, "must_not", where)
    if least > count:
        return NOTHING
    if least:
        needed.append(at_least(least, reader.clauses(body, "should", where)))
    elif count:
        reader.tell(OPTIONAL, f"{where}.should")
    if ruled and not needed and body.get("adjust_pure_negative") is False:
        return NOTHING
    # What is ruled out comes last: the area that it is a hole in is known by then.
    return every([*needed, negated(some(ruled))])


def read_constant_score(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    reader.check(body, where, ("filter",))
    return reader.clause(body.get("filter"), f"{where}.filter")


def read_dis_max(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    reader.check(body, where, ("queries", "tie_breaker"))
    return some(reader.clauses(body, "queries", where))


def read_boosting(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    reader.check(body, where, ("positive", "negative", "negative_boost"))
    reader.tell(BOOST, f"{where}.negative")
    return reader.clause(body.get("positive"), f"{where}.positive")


def read_function_score(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    if "min_score" in body:
        raise Untranslatable(f"min_score {NO_COUNTERPART}", f"{where}.min_score")
    reader.tell(BOOST, where)
    return reader.clause(body["query"], f"{where}.query") if "query" in body else EVERYTHING


def read_match_all(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    reader.check(body, where, ())
    return EVERYTHING


def read_match_none(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    reader.check(body, where, ())
    return NOTHING


def read_exists(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    """Every object has a text and a place."""
    reader.check(body, where, ("field",))
    if body.get("field") not in reader.fields.text | reader.fields.place:
        raise Untranslatable(OTHER_FIELD, where, shown(body.get("field")))
    return EVERYTHING


JOINING: dict[str, ClauseReader] = {
    "bool": read_bool,
    "constant_score": read_constant_score,
    "dis_max": read_dis_max,
    "boosting": read_boosting,
    "function_score": read_function_score,
    "match_all": read_match_all,
    "match_none": read_match_none,
    "exists": read_exists,
}
