"""Spells: from which event to which an id was which subscription, where somebody has kept it.

A state forgets what was replaced or has ended. Whoever wrote the log may know it better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from placewire.engine.seen import Seen


class Spell(NamedTuple):
    """One subscription of an id: its event, and the seq at which it was over if it is."""

    begin_seq: int
    end_seq: int | None
    how: str  # what the event at its end did: ended it, replaced it, or found it expired
    body: dict[str, Any]


class History(NamedTuple):
    """What an id was, in order of begin; nothing is missing of what was so at `since` or later."""

    spells: Sequence[Spell]
    since: int


def choose_spell(history: History, seen: Seen) -> Spell:
    """The subscription that the object met: the last that began before it, or else the first.

    A `relevant` one looks back over the window: it meets objects that came before it too.
    """
    spells = history.spells
    before = [one for one in spells if seen.seq is None or one.begin_seq < seen.seq]
    met = before[-1] if before else spells[0]
    kinds = {one.body["kind"] for one in (met if before else spells[-1], spells[-1])}
    return spells[-1] if kinds == {"relevant"} else met


def judge_spell(spell: Spell, since: int, seq: int) -> tuple[bool | None, str]:
    """Whether it was live at an event, its expiry apart, and why."""
    begin, end = spell.begin_seq, spell.end_seq
    if seq <= begin:
        if seq < since:
            return None, say_forgotten(begin, since)
        return False, f"it was not yet subscribed: it began at seq {begin}"
    if end is None:
        return True, f"it has been live since seq {begin}"
    did = "had expired" if spell.how == "expired" else f"was {spell.how}"
    if seq < end:
        if spell.how == "expired":
            return True, f"it was live from seq {begin} until it expired, before event {end}"
        return True, f"it was live from seq {begin} until event {end} {spell.how} it"
    if seq < since:
        return None, f"it {did} by event {end}; what came of the id until {since} is forgotten"
    return False, f"it {did} by event {end}"


def say_forgotten(begin: int, since: int) -> str:
    """Why an object from before a subscription may have met another one of its id."""
    return (
        f"this one began at seq {begin}, and whether the id had another one at the object"
        f" is forgotten: changes are known from seq {since} on"
    )
