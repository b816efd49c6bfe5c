"""Holders: who has which subscription just now, and what of it a request may change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from placewire.serve.errors import Refused
from placewire.serve.ledger import Change, Held


class Holder(NamedTuple):
    """Who has an id, and until when."""

    owner: str
    expires_us: int | None
    ended: bool


class Holders:
    """Ids as the ledger has them, then as requests that are being written leave them.

    The clock is that of the events: who is expired is decided as the pipeline will decide it.
    """

    def __init__(self, held: Iterable[Held], now_us: int | None) -> None:
        self.now_us = now_us
        self._by_id = {
            one.id: Holder(one.owner, one.expires_us, one.ended_seq is not None) for one in held
        }

    def advance(self, ts_us: int) -> None:
        """Set the clock on by an event that is written."""
        self.now_us = ts_us if self.now_us is None else max(self.now_us, ts_us)

    def apply(self, change: Change) -> None:
        """Take in a change that is written."""
        former = self._by_id.get(change.id)
        if not change.ends:
            self._by_id[change.id] = Holder(change.owner, change.expires_us, False)
        elif former is not None:
            self._by_id[change.id] = former._replace(ended=True)

    def live(self, change: Change) -> Holder | None:
        """Who has the id at this event, if anybody does."""
        holder = self._by_id.get(change.id)
        if holder is None or holder.ended:
            return None
        now_us = max(change.since_us, self.now_us or change.since_us)
        expired = holder.expires_us is not None and holder.expires_us <= now_us
        return None if expired else holder

    def allow(self, changes: Sequence[Change], owner: str, every: bool) -> list[Change]:
        """Changes of one request with whose they are; raises Refused.

        Who may change `every` one changes it in its owner's name.
        """
        return [
            change._replace(owner=self._end(change, owner, every))
            if change.ends
            else change._replace(owner=self._begin(change, owner, every))
            for change in changes
        ]

    def _begin(self, change: Change, owner: str, every: bool) -> str:
        holder = self.live(change)
        if holder is None or holder.owner == owner:
            return owner
        if not every:
            raise Refused(409, f"subscription {change.id!r}: the id is taken, choose another")
        return holder.owner

    def _end(self, change: Change, owner: str, every: bool) -> str:
        holder = self._by_id.get(change.id)
        if holder is None:
            raise Refused(404, f"subscription {change.id!r}: is not known")
        if holder.ended or not (every or holder.owner == owner):
            raise Refused(404, f"subscription {change.id!r}: has ended")
        return holder.owner
