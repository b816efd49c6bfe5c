"""The account of an import: how much was translated, and what was not, by reason."""

from __future__ import annotations

from typing import Any, NamedTuple

from placewire.imports.reasons import Note, Untranslatable

SAMPLES = 3
MOST_REASONS = 1_000  # a file of nonsense may have a reason a line


class Outcome(NamedTuple):
    """What became of one query of the file."""

    line: int
    id: str | None
    events: list[dict[str, Any]]
    notes: list[Note]
    refusal: Untranslatable | None = None

    def as_entry(self) -> dict[str, Any] | None:
        """The query in the list of all that was refused or noted; None if nothing was."""
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


class Reason(NamedTuple):
    """A reason with the number of queries that have it, and the first of them."""

    what: str
    queries: int
    samples: list[dict[str, Any]]


class Ledger:
    """Counts outcomes."""

    def __init__(self) -> None:
        self.queries = 0
        self.translated = 0
        self.noted = 0
        self.refused = 0
        self.subscriptions = 0
        self.unsubscribes = 0
        self.refusals: dict[str, Reason] = {}
        self.notes: dict[str, Reason] = {}

    def add(self, outcome: Outcome) -> None:
        subscribed = sum(event["type"] == "subscribe" for event in outcome.events)
        self.subscriptions += subscribed
        self.unsubscribes += len(outcome.events) - subscribed
        if outcome.refusal is not None:
            self.queries += 1
            self.refused += 1
            count(
                self.refusals,
                outcome.refusal.what,
                outcome,
                outcome.refusal.where,
                outcome.refusal.got,
            )
        elif subscribed:
            self.queries += 1
            self.translated += 1
            self.noted += bool(outcome.notes)
            for note in outcome.notes:
                count(self.notes, note.what, outcome, note.where)

    def as_facts(self) -> dict[str, Any]:
        """All of it as one JSON object."""
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
    reasons: dict[str, Reason], what: str, outcome: Outcome, where: str, got: str = ""
) -> None:
    if what not in reasons and len(reasons) >= MOST_REASONS:
        what = "other reasons"
    reason = reasons.get(what, Reason(what, 0, []))
    if len(reason.samples) < SAMPLES:
        sample: dict[str, Any] = {"line": outcome.line}
        if outcome.id is not None:
            sample["id"] = outcome.id
        sample |= {key: value for key, value in (("where", where), ("got", got)) if value}
        reason.samples.append(sample)
    reasons[what] = reason._replace(queries=reason.queries + 1)


def most_frequent(reasons: dict[str, Reason]) -> list[Reason]:
    return sorted(reasons.values(), key=lambda reason: -reason.queries)
