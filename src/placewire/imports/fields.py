"""Which fields hold the text and the place: those that are named, or the only ones asked of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from placewire.imports.clauses import MOST_NESTED, Fields
from placewire.imports.placeclauses import OF_PLACES, WITHOUT_EFFECT
from placewire.model.errors import Unusable

ANALYSED = ("match", "match_phrase", "match_phrase_prefix", "match_bool_prefix")
AS_IT_STANDS = ("term", "terms")
PARAMETERS = frozenset(
    ["boost", "_name", "type", "distance", "unit", "distance_type", *WITHOUT_EFFECT]
)


class FieldSurvey:
    """Counts the fields that queries ask of, by what they ask."""

    def __init__(self) -> None:
        self.analysed: Counter[str] = Counter()
        self.terms: Counter[str] = Counter()
        self.places: Counter[str] = Counter()

    def add(self, query: Any) -> None:
        """Look through a query, whatever it is; what is no query is found out later."""
        for name, body in clauses_of(query):
            if name == "multi_match":
                fields = body.get("fields", [])
                fields = fields if isinstance(fields, list) else [fields]
                self.analysed.update({str(field).partition("^")[0] for field in fields})
                continue
            fields = [field for field in body if field not in PARAMETERS]
            if len(fields) != 1:
                continue
            if name in ANALYSED:
                self.analysed.update(fields)
            elif name in AS_IT_STANDS:
                self.terms.update(fields)
            elif name in OF_PLACES:
                self.places.update(fields)

    def choose(self, text: Sequence[str], place: Sequence[str]) -> Fields:
        """The fields to go by; raises Unusable if that is for the user to say.

        A field that is matched holds text; one that only has terms may hold anything, and counts
        if nothing is matched.
        """
        return Fields(
            frozenset(text) or only(self.analysed or self.terms, "text", "--text-field"),
            frozenset(place) or only(self.places, "place", "--place-field"),
        )


def only(fields: Counter[str], what: str, option: str) -> frozenset[str]:
    if len(fields) > 1:
        named = ", ".join(f"{name} ({count:,} times)" for name, count in fields.most_common(5))
        more = f" and {len(fields) - 5} more" if len(fields) > 5 else ""
        raise Unusable(
            f"the {what} may be in several fields: {named}{more}; say which with {option}"
        )
    return frozenset(fields)


def clauses_of(query: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every clause in a query that may have a field, with its name."""
    waiting = [(query, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > 3 * MOST_NESTED:
            continue
        if isinstance(part, list):
            waiting += [(each, depth + 1) for each in part]
        elif isinstance(part, dict):
            for name, body in part.items():
                if isinstance(body, dict) and (
                    name in ANALYSED or name in AS_IT_STANDS or name in OF_PLACES
                    or name == "multi_match"
                ):  # fmt: skip
                    yield name, body
                elif isinstance(body, dict | list):
                    waiting.append((body, depth + 1))
