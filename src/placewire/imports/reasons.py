"""Why a query cannot be translated, and what is worth knowing of one that was."""

from __future__ import annotations

from typing import NamedTuple

BOOST = "boosts and scores are left out"
OPTIONAL = "should clauses that only add to the score are left out"
NAMED = "the names of clauses are left out"
SPLIT = "split into several subscriptions: an object that fits several is reported by each"
EDGE = "an object exactly on the edge of an area that is ruled out is reported"
CASE = "a term is compared without case"
WORDS = "what is one word there is several words here, all of which are needed"
FOLDED = "a word is compared without the forms of its letters, such as ß for ss or full width"
PHRASE = "a phrase became all of its words, in any order"
ANALYZER = "a clause names an analyzer: here there is one for all"
HEIGHT = "heights of positions are left out"
NO_ID = "it had no id and was given one"
REPEATED = "its id came before: it replaces the earlier one"
OTHER_FIELDS = "other fields of the document are left out; --with-data keeps them"
META = "META is left out; --with-data keeps it"
ONLY_INSIDE = "only what is inside is reported, not what enters, exits, crosses or is outside"
EVERY_INSIDE = "every object inside is reported, not only one that enters"
EXPIRES = "the time to its end counts from --ts"
IGNORED = "options that only change what a message looks like are left out"


class Untranslatable(ValueError):
    """A query has no exact counterpart: what it has instead, where, and what was got.

    `what` has no names or values in it, so that queries with the same trouble can be counted.
    """

    def __init__(self, what: str, where: str = "", got: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.got = got

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{where}{self.what}{f', got {self.got}' if self.got else ''}"


class Note(NamedTuple):
    """Something that differs in a translated query, and where."""

    what: str
    where: str


def shown(value: object) -> str:
    """A value for a message, short whatever it is."""
    if isinstance(value, dict):
        keys = ", ".join(map(str, list(value)[:4]))
        return shorten(f"an object with {keys or 'nothing'}")
    if isinstance(value, list):
        return f"a list of {len(value)}"
    try:
        return shorten(repr(value))
    except ValueError:
        return "a number too long to show"


def shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
