"""What a translated query becomes: events for the log, each with an id of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

from placewire.imports.areas import EVERYWHERE, has_loose_edges, to_region
from placewire.imports.meaning import Meaning, to_where
from placewire.imports.reasons import EDGE, REPEATED, SPLIT, Note, Untranslatable, shown
from placewire.model.errors import InvalidEvent
from placewire.model.events import MOST_ID_CHARACTERS, UNSET, compact_data
from placewire.model.regions import read_region
from placewire.text.query import Tokens, parse_where

NOTHING_FITS = "it matches nothing"
TAKEN = "its id is taken by a query of another index"
TAKEN_BY_PART = "its id is taken by a part of a query that was split"


class Wish(NamedTuple):
    """A query that was read: whose it is, what it means and what goes with it."""

    id: str
    index_name: str
    meaning: Meaning
    expires: str | None = None
    data: Any = UNSET


class Claim(NamedTuple):
    """What stands under an id: the number of its index, and how many parts it was split into."""

    owner: int
    parts: int  # 0 if it was not split, -1 if nothing stands there, -2 if it is a part itself


class SubscriptionWriter:
    """Makes events of wishes, and keeps ids apart.

    A query with an id that came before replaces the earlier one, as it did where it comes from.
    Ids are kept as hashes: some 100 bytes each.
    """

    def __init__(self, ts: str, tokens: Tokens) -> None:
        self.ts = ts
        self.tokens = tokens
        self.claims: dict[int, Claim] = {}
        self.indexes: dict[str, int] = {}

    def subscribe(self, wish: Wish, notes: list[Note]) -> list[dict[str, Any]]:
        """The events that a query becomes; raises Untranslatable and changes nothing."""
        if not wish.meaning:
            raise Untranslatable(NOTHING_FITS)
        split = len(wish.meaning) > 1
        ids = [f"{wish.id}#{n + 1}" for n in range(len(wish.meaning))] if split else [wish.id]
        check_id(wish.id if not split else ids[-1])
        before = self.look_up(wish)
        if split:
            kept = before.parts if before is not None else 0
            for name in ids[max(kept, 0) :]:
                if hash(name) in self.claims:
                    raise Untranslatable("an id of its parts is taken", got=shown(name))
        events = []
        for name, (area, text) in zip(ids, wish.meaning, strict=True):
            event: dict[str, Any] = {"type": "subscribe", "id": name, "ts": self.ts}
            event["kind"] = "boolean"
            if text is None or area != EVERYWHERE:
                event["region"] = to_region(area)
            if text is not None:
                event["where"] = to_where(text)
            if wish.expires is not None:
                event["expires"] = wish.expires
            if wish.data is not UNSET:
                event["data"] = wish.data
            self.check(event)
            events.append(event)
        if split:
            notes.append(Note(SPLIT, ""))
        if any(has_loose_edges(area) for area, _ in wish.meaning):
            notes.append(Note(EDGE, ""))
        if before is not None and before.parts != -1:
            notes.append(Note(REPEATED, ""))
        stale = self.stale_ids(wish.id, before, set(ids))
        self.claim(wish, len(ids) if split else 0)
        return [self.end(name) for name in stale] + events

    def unsubscribe(self, name: str, index: str) -> list[dict[str, Any]]:
        """The events that end a query, if it is there."""
        wish = Wish(name, index, ())
        before = self.claims.get(hash(name))
        if before is None or before.parts < 0 or before.owner != self.number(index):
            return []
        self.claim(wish, -1)
        return [self.end(each) for each in self.stale_ids(name, before, set())]

    def stands(self, name: str) -> bool:
        """Whether a query stands under the id."""
        before = self.claims.get(hash(name))
        return before is not None and before.parts >= 0

    def look_up(self, wish: Wish) -> Claim | None:
        """What stands under the wish's id; raises Untranslatable if it is another's."""
        before = self.claims.get(hash(wish.id))
        if before is not None and before.parts == -2:
            raise Untranslatable(TAKEN_BY_PART)
        if (
            before is not None
            and before.parts != -1
            and before.owner != self.number(wish.index_name)
        ):
            raise Untranslatable(TAKEN, got=shown(wish.index_name))
        return before

    def claim(self, wish: Wish, parts: int) -> None:
        index = self.number(wish.index_name)
        before = self.claims.get(hash(wish.id))
        for n in range(before.parts if before is not None else 0):
            self.claims.pop(hash(f"{wish.id}#{n + 1}"), None)
        self.claims[hash(wish.id)] = Claim(index, parts)
        for n in range(parts):
            self.claims[hash(f"{wish.id}#{n + 1}")] = Claim(index, -2)

    def number(self, index: str) -> int:
        return self.indexes.setdefault(index, len(self.indexes))

    def stale_ids(self, name: str, before: Claim | None, kept: set[str]) -> list[str]:
        """The ids under which an earlier query stands that nothing replaces."""
        if before is None or before.parts < 0:
            return []
        parts = [f"{name}#{n + 1}" for n in range(before.parts)] or [name]
        return [each for each in parts if each not in kept]

    def end(self, name: str) -> dict[str, Any]:
        return {"type": "unsubscribe", "id": name, "ts": self.ts}

    def check(self, event: dict[str, Any]) -> None:
        """Read the event as a replay will; raises Untranslatable."""
        try:
            if "region" in event:
                read_region(event["region"])
            if "where" in event:
                parse_where(event["where"], self.tokens)
            compact_data(event.get("data", UNSET))
        except InvalidEvent as error:
            what, _, got = str(error).partition(", got ")
            raise Untranslatable(f"beyond what a subscription can have: {what}", got=got) from None


def check_id(name: str) -> None:
    if not 1 <= len(name) <= MOST_ID_CHARACTERS:
        raise Untranslatable(
            f"an id must have 1 to {MOST_ID_CHARACTERS} characters", got=str(len(name))
        )
