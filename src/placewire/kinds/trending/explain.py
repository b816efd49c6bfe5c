"""Explain pairs of the kind `trending`: the reports that an object counts in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewire.kinds.trending.rows import read_times
from placewire.model.subscriptions import NEVER_US
from placewire.model.times import format_timestamp

if TYPE_CHECKING:
    from placewire.explain.context import ExplainContext
    from placewire.explain.object import Seen
    from placewire.explain.subscription import Subscribed

MOST_NAMED = 5  # due times


def explain_trending(ground: ExplainContext, subscribed: Subscribed, seen: Seen) -> dict[str, Any]:
    """The reports whose window the object's time is in, and what it adds to them."""
    rows = subscribed.rows
    begun_us, window_us, every_us = (int(column[0]) for column in read_times(rows))
    told: dict[str, Any] = {
        "k": int(rows.k[0]),
        "adds_terms": sorted(seen.words.values()),
        "reports": None,
    }
    if seen.ts_us is None or (subscribed.ts_us is None and subscribed.place is None):
        return told
    first = max(1, -((begun_us - seen.ts_us) // every_us))
    last = (seen.ts_us + window_us - 1 - begun_us) // every_us
    expires_us = int(rows.expires_us[0])
    if expires_us != NEVER_US:
        last = min(last, (expires_us - 1 - begun_us) // every_us)
    due = [begun_us + n * every_us for n in range(first, min(last, first + MOST_NAMED - 1) + 1)]
    told["reports"] = max(0, last - first + 1)
    told["first_due"] = [format_timestamp(at) for at in due]
    now_us = ground.manifest.now_us if ground.manifest is not None else None
    if now_us is not None and last >= first:
        past = min(last, (now_us - 1 - begun_us) // every_us)
        told["past"] = max(0, past - first + 1)
        if last > past:
            told["next_due"] = format_timestamp(begun_us + max(first, past + 1) * every_us)
    return told
