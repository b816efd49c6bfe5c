"""The history of a subscription id: which subscription it named, from which event to which.

A state forgets subscriptions that were replaced or have ended; a server's ledger keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placewire.explainer.object import ExplainedObject
from placewire.model.kinds import kind_named
from placewire.model.subscriptions import SubscriptionRows, take_rows
from placewire.objects.sections import rows_of_id
from placewire.storage.arrays import open_arrays
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, committed_batches, read_manifest


class SubscriptionPeriod(NamedTuple):
    """One subscription of an id: its event, and the seq at which it ended, if it has."""

    begin_seq: int
    end_seq: int | None
    end_reason: str  # ended, replaced or expired
    body: dict[str, Any]


class SubscriptionHistory(NamedTuple):
    """The subscriptions of an id in order of begin, complete from seq `since` on."""

    periods: Sequence[SubscriptionPeriod]
    since: int


def choose_period(history: SubscriptionHistory, obj: ExplainedObject) -> SubscriptionPeriod:
    """Choose the subscription that applies to the object: the last before it, or else the first.

    A kind that looks back also takes objects from before its subscriptions.
    """
    periods = history.periods
    before = [one for one in periods if obj.seq is None or one.begin_seq < obj.seq]
    met = before[-1] if before else periods[0]
    pair = (met if before else periods[-1], periods[-1])
    back = all(kind_named(one.body["kind"]).looks_back for one in pair)
    return periods[-1] if back else met


def judge_period(period: SubscriptionPeriod, since: int, seq: int) -> tuple[bool | None, str]:
    """Decide whether a period covers an event, expiry aside, and why; None if that is forgotten."""
    begin, end = period.begin_seq, period.end_seq
    if seq <= begin:
        if seq < since:
            return None, describe_forgotten(begin, since)
        return False, f"it was not yet subscribed: it began at seq {begin}"
    if end is None:
        return True, f"it has been live since seq {begin}"
    did = "had expired" if period.end_reason == "expired" else f"was {period.end_reason}"
    if seq < end:
        if period.end_reason == "expired":
            return True, f"it was live from seq {begin} until it expired, before event {end}"
        return True, f"it was live from seq {begin} until event {end} {period.end_reason} it"
    if seq < since:
        return None, f"it {did} by event {end}; what came of the id until {since} is forgotten"
    return False, f"it {did} by event {end}"


def describe_forgotten(begin: int, since: int) -> str:
    """Say why an object from before a subscription may have matched another one of its id."""
    return (
        f"this one began at seq {begin}, and whether the id had another one at the object"
        f" is forgotten: changes are known from seq {since} on"
    )


class IdChange(NamedTuple):
    """An event that changed an id: its seq, and the subscription that it began, if any."""

    seq: int
    rows: SubscriptionRows | None


def read_manifests(state: StateDir) -> list[Manifest]:
    """Read the manifests that the state still has, oldest first."""
    return [read_manifest(state, batch) for batch in committed_batches(state)]


def find_changes(state: StateDir, manifests: Sequence[Manifest], name: str) -> list[IdChange]:
    """Find the changes of an id in the blocks of these manifests, in order of seq."""
    found: list[IdChange] = []
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
                found.append(IdChange(seq, made))
    return sorted(found, key=lambda change: change.seq)


def find_complete_from(manifests: Sequence[Manifest]) -> int:
    """Find the seq from which manifests have every change of an id: the oldest one's last event.

    Events before it may have ended subscriptions that no manifest has. Manifests that reach back
    to the beginning of the log are complete.
    """
    return 0 if not find_first_seq(manifests) else manifests[0].next_seq - 1


def find_first_seq(manifests: Sequence[Manifest]) -> int | None:
    """Find the first seq of the blocks of manifests; None for an empty log."""
    return min((block.first_seq for m in manifests for block in m.blocks), default=None)
