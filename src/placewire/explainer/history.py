"""Spells: from which event to which an id was which subscription, where somebody has kept it.

A state forgets what was replaced or has ended. Whoever wrote the log may know it better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.explainer.object import Seen
from placewire.model.subscriptions import SubscriptionRows, take_rows
from placewire.objects.sections import rows_of_id
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, committed_batches, read_manifest


class IdPeriod(NamedTuple):
    """One subscription of an id: its event, and the seq at which it was over if it is."""

    begin_seq: int
    end_seq: int | None
    how: str  # what the event at its end did: ended it, replaced it, or found it expired
    body: dict[str, Any]


class History(NamedTuple):
    """What an id was, in order of begin; nothing is missing of what was so at `since` or later."""

    spells: Sequence[IdPeriod]
    since: int


def choose_period(history: History, seen: Seen) -> IdPeriod:
    """The subscription that the object met: the last that began before it, or else the first.

    A `relevant` one looks back over the window: it meets objects that came before it too.
    """
    spells = history.spells
    before = [one for one in spells if seen.seq is None or one.begin_seq < seen.seq]
    met = before[-1] if before else spells[0]
    kinds = {one.body["kind"] for one in (met if before else spells[-1], spells[-1])}
    return spells[-1] if kinds == {"relevant"} else met


def judge_period(spell: IdPeriod, since: int, seq: int) -> tuple[bool | None, str]:
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


class Change(NamedTuple):
    """An event that changed an id: its seq, and the subscription that it made, if it made one."""

    seq: int
    rows: SubscriptionRows | None


def last_manifests(state: StateDir) -> list[Manifest]:
    """The manifests that are there, oldest first: at least the last few."""
    return [read_manifest(state, batch) for batch in committed_batches(state)]


def changes_of_id(state: StateDir, manifests: Sequence[Manifest], name: str) -> list[Change]:
    """The changes of an id that these manifests' blocks have, in order of seq."""
    found: list[Change] = []
    for manifest in manifests:
        refused: set[int] = set()
        if manifest.late_dead is not None:
            late = open_arrays(state.file(manifest.late_dead)).arrays
            refused = set(late["dead.event"].tolist())
        for block in manifest.blocks:
            arrays = open_arrays(state.file(block.file)).arrays
            if "change.event" not in arrays:
                continue
            for at in rows_of_id(arrays["change.id_offsets"], arrays["change.id_bytes"], name):
                seq = block.first_seq + int(arrays["change.event"][at])
                if seq in refused:
                    continue
                row, made = int(arrays["change.row"][at]), None
                if row >= 0:
                    columns = {n: arrays[f"rows.{n}"] for n in SubscriptionRows._fields}
                    made = take_rows(SubscriptionRows(**columns), np.array([row]))
                found.append(Change(seq, made))
    return sorted(found, key=lambda change: change.seq)


def known_since(manifests: Sequence[Manifest]) -> int:
    """From which event on they tell all that an id was: the last one of the oldest of them.

    Its blocks may have ended what was there before. Of a log's beginning nothing was before.
    """
    return 0 if not first_seq_of(manifests) else manifests[0].next_seq - 1


def first_seq_of(manifests: Sequence[Manifest]) -> int | None:
    """How far back their blocks go; there are none of an empty log."""
    return min((block.first_seq for m in manifests for block in m.blocks), default=None)
