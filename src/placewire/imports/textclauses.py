"""Clauses about words: term, terms, match, match_phrase, multi_match."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from placewire.imports.clauses import NO_COUNTERPART, ClauseReader, QueryReader
from placewire.imports.meaning import (
    EVERYTHING,
    NOTHING,
    Meaning,
    at_least,
    every,
    of_text,
    some,
)
from placewire.imports.numbers import how_many
from placewire.imports.reasons import (
    ANALYZER,
    BOOST,
    CASE,
    FOLDED,
    PHRASE,
    WORDS,
    Untranslatable,
    shown,
)
from placewire.imports.words import Word

# Parameters that change no match here: `lenient` is about types, the others about what is refused.
WITHOUT_EFFECT = frozenset(
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
OF_MATCH = WITHOUT_EFFECT | {
    "query", "operator", "minimum_should_match", "zero_terms_query", "analyzer", "fuzziness",
}  # fmt: skip
OF_PHRASE = frozenset(["query", "slop", "zero_terms_query", "analyzer"])
SAME_AS_MATCH = ("best_fields", "most_fields", "cross_fields")


def read_term(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    field, value, at = reader.one_field(body, where, ())
    reader.need_text(field, at)
    folded = False
    if isinstance(value, dict):
        reader.check(value, at, ("value", "case_insensitive"))
        folded = value.get("case_insensitive") is True
        value, at = value.get("value"), f"{at}.value"
    return term(reader, value, at, folded)


def read_terms(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    field, values, at = reader.one_field(body, where, ())
    reader.need_text(field, at)
    if not isinstance(values, list):
        raise Untranslatable(f"a terms lookup {NO_COUNTERPART}", at, shown(values))
    return some([term(reader, value, f"{at}[{n}]") for n, value in enumerate(values)])


def term(reader: QueryReader, value: Any, where: str, folded: bool = False) -> Meaning:
    """A word that is looked up as it stands, without the analyzer."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise Untranslatable("a term must be a word", where, shown(value))
    written = str(value)
    words = reader.words.read(written, where)
    if len(words) != 1 or words[0].written != written:
        raise Untranslatable("a term that is not one word never meets an analysed text", where,
                             shown(value))  # fmt: skip
    if not folded and words[0].lowered != written:
        reader.tell(CASE, where)
    return of_words(reader, words, where)[0]


def read_match(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    field, value, at = reader.one_field(body, where, ())
    reader.need_text(field, at)
    options = value if isinstance(value, dict) else {"query": value}
    reader.check(options, at, OF_MATCH)
    return match(reader, options, at)


def match(reader: QueryReader, options: dict[str, Any], where: str) -> Meaning:
    """Some of the words of a text, or all of them."""
    if options.get("fuzziness", 0) not in (0, "0"):
        raise Untranslatable(f"fuzziness {NO_COUNTERPART}", f"{where}.fuzziness")
    words = read_words(reader, options, where)
    if not words:
        return without_words(options, where)
    meanings = of_words(reader, words, where)
    operator = str(options.get("operator", "or")).lower()
    if operator not in ("or", "and"):
        raise Untranslatable("an operator must be and or or", where, shown(options["operator"]))
    least = len(meanings)
    if operator == "or":
        least = 1
        if "minimum_should_match" in options and len(meanings) > 1:
            at = f"{where}.minimum_should_match"
            least = max(how_many(options["minimum_should_match"], len(meanings), at), 1)
    if least > len(meanings):
        return NOTHING
    return every(meanings) if least == len(meanings) else at_least(least, meanings)


def read_match_phrase(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    field, value, at = reader.one_field(body, where, ())
    reader.need_text(field, at)
    options = value if isinstance(value, dict) else {"query": value}
    reader.check(options, at, OF_PHRASE)
    return phrase(reader, options, at)


def phrase(reader: QueryReader, options: dict[str, Any], where: str) -> Meaning:
    """Exact if it is one word; an object's words have no order."""
    words = read_words(reader, options, where)
    if not words:
        return without_words(options, where)
    if len(words) > 1:
        if not reader.phrases_as_words:
            raise Untranslatable(
                f"a phrase {NO_COUNTERPART}; --phrases-as-words asks for all of its words",
                where,
                shown(options["query"]),
            )
        reader.tell(PHRASE, where)
    return every(of_words(reader, words, where))


def read_multi_match(reader: QueryReader, body: dict[str, Any], where: str) -> Meaning:
    """A match in several fields that all hold the text is a match in the text."""
    fields = body.get("fields")
    if isinstance(fields, str):
        fields = [fields]
    if not isinstance(fields, list) or not fields or not all(isinstance(f, str) for f in fields):
        raise Untranslatable("multi_match must name its fields", where, shown(fields))
    for n, field in enumerate(fields):
        name, boost, _ = field.partition("^")
        reader.need_text(name, f"{where}.fields[{n}]")
        if boost:
            reader.tell(BOOST, f"{where}.fields[{n}]")
    kind = body.get("type", "best_fields")
    own = ("fields", "type")
    if kind in SAME_AS_MATCH:
        reader.check(body, where, OF_MATCH.union(own))
        return match(reader, body, where)
    if kind == "phrase":
        reader.check(body, where, OF_PHRASE | WITHOUT_EFFECT.union(own))
        return phrase(reader, body, where)
    raise Untranslatable(f"multi_match of this type {NO_COUNTERPART}", where, shown(kind))


def read_words(reader: QueryReader, options: dict[str, Any], where: str) -> list[Word]:
    text = options.get("query")
    if not isinstance(text, str | int | float) or isinstance(text, bool):
        raise Untranslatable("a match must have a text", where, shown(text))
    if "analyzer" in options:
        reader.tell(ANALYZER, where)
    return reader.words.read(str(text), where)


def of_words(reader: QueryReader, words: Sequence[Word], where: str) -> list[Meaning]:
    if not all(word.is_same for word in words):
        reader.tell(WORDS, where)
    if any(word.is_folded for word in words):
        reader.tell(FOLDED, where)
    return [of_text(word.node) for word in words]


def without_words(options: dict[str, Any], where: str) -> Meaning:
    """What a text with no word in it matches: nothing, or all if it says so."""
    wanted = options.get("zero_terms_query", "none")
    allowed: Collection[str] = ("none", "all")
    if not isinstance(wanted, str) or wanted.lower() not in allowed:
        raise Untranslatable("zero_terms_query must be none or all", where, shown(wanted))
    return EVERYTHING if wanted.lower() == "all" else NOTHING


OF_WORDS: dict[str, ClauseReader] = {
    "term": read_term,
    "terms": read_terms,
    "match": read_match,
    "match_phrase": read_match_phrase,
    "multi_match": read_multi_match,
}
