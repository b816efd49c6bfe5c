"""The report of an import: what became of each query, and counts by reason.

`Untranslatable` says why a query has no exact counterpart, a note what differs in a translated one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
REPEATED = "its id is repeated: it replaces the earlier one"
OTHER_FIELDS = "other fields of the document are left out; --with-data keeps them"
META = "META is left out; --with-data keeps it"
ONLY_INSIDE = "only what is inside is reported, not what enters, exits, crosses or is outside"
EVERY_INSIDE = "every object inside is reported, not only one that enters"
EXPIRES = "the time to its end counts from --ts"
IGNORED = "options that only change what a message looks like are left out"
NO_COUNTERPART = "has no counterpart"
SAMPLES = 3
MOST_REASONS = 1_000  # a file of garbage may have one reason per line


class Untranslatable(ValueError):
    """A query has no exact counterpart: what is wrong, where, and what was given.

    `what` contains no names or values, so that queries with the same problem can be counted.
    """

    def __init__(self, what: str, where: str = "", got: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.got = got

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{where}{self.what}{f', got {self.got}' if self.got else ''}"


class ImportNote(NamedTuple):
    """A difference between a query and its translation, and where it is."""

    what: str
    where: str


def shown(value: object) -> str:
    """Format any value briefly for a message."""
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


class ImportOutcome(NamedTuple):
    """What became of one query of the file."""

    line: int
    id: str | None
    events: list[dict[str, Any]]
    notes: list[ImportNote]
    refusal: Untranslatable | None = None

    def as_entry(self) -> dict[str, Any] | None:
        """The entry of a refused or noted query in the report file; None for any other query."""
        entry: dict[str, Any] = {"line": self.line}
        if self.id is not None:
            entry["id"] = self.id
        if self.refusal is not None:
            entry["refused"] = self.refusal.what
            entry |= {
                name: value for name in ("where", "got") if (value := getattr(self.refusal, name))
            }
            return entry
        if not self.notes:
            return None
        entry["subscriptions"] = [e["id"] for e in self.events if e["type"] == "subscribe"]
        entry["notes"] = [
            {"what": note.what, "where": note.where} if note.where else {"what": note.what}
            for note in self.notes
        ]
        return entry


class ReasonCount(NamedTuple):
    """A reason, the number of queries it applies to, and the first few of them."""

    what: str
    queries: int
    samples: list[dict[str, Any]]


class ImportReport:
    """Counts the outcomes of an import by reason."""

    def __init__(self) -> None:
        self.queries = 0
        self.translated = 0
        self.noted = 0
        self.refused = 0
        self.subscriptions = 0
        self.unsubscribes = 0
        self.refusals: dict[str, ReasonCount] = {}
        self.notes: dict[str, ReasonCount] = {}

    def add(self, outcome: ImportOutcome) -> None:
        subscribed = sum(event["type"] == "subscribe" for event in outcome.events)
        self.subscriptions += subscribed
        self.unsubscribes += len(outcome.events) - subscribed
        if outcome.refusal is not None:
            self.queries += 1
            self.refused += 1
            refusal = outcome.refusal
            count(self.refusals, refusal.what, outcome, refusal.where, refusal.got)
        elif subscribed:
            self.queries += 1
            self.translated += 1
            self.noted += bool(outcome.notes)
            for note in outcome.notes:
                count(self.notes, note.what, outcome, note.where)

    def as_facts(self) -> dict[str, Any]:
        """The counts as one JSON object."""
        return {
            "queries": self.queries,
            "translated": self.translated,
            "with_notes": self.noted,
            "refused": self.refused,
            "subscriptions": self.subscriptions,
            "unsubscribes": self.unsubscribes,
            "refusals": [reason._asdict() for reason in most_frequent(self.refusals)],
            "notes": [reason._asdict() for reason in most_frequent(self.notes)],
        }


def count(
    reasons: dict[str, ReasonCount], what: str, outcome: ImportOutcome, where: str, got: str = ""
) -> None:
    if what not in reasons and len(reasons) >= MOST_REASONS:
        what = "other reasons"
    reason = reasons.get(what, ReasonCount(what, 0, []))
    if len(reason.samples) < SAMPLES:
        sample: dict[str, Any] = {"line": outcome.line}
        if outcome.id is not None:
            sample["id"] = outcome.id
        sample |= {key: value for key, value in (("where", where), ("got", got)) if value}
        reason.samples.append(sample)
    reasons[what] = reason._replace(queries=reason.queries + 1)


def most_frequent(reasons: dict[str, ReasonCount]) -> list[ReasonCount]:
    return sorted(reasons.values(), key=lambda reason: -reason.queries)
