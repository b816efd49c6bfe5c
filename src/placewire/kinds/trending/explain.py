"""Explain pairs of the kind `trending`: the reports that count the object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewire.kinds.trending.rows import trending_columns
from placewire.model.subscriptions import NEVER_US
from placewire.model.times import format_timestamp

if TYPE_CHECKING:
    from placewire.explainer.context import ExplainContext
    from placewire.explainer.object import ExplainedObject
    from placewire.explainer.subscription import ExplainedSubscription

MAX_DUE_TIMES = 5  # due times listed


def explain_trending(
    context: ExplainContext, subscription: ExplainedSubscription, obj: ExplainedObject
) -> dict[str, Any]:
    """List the reports whose window contains the object's time, and the terms that it adds."""
    rows = subscription.rows
    begun_us, window_us, every_us = (int(column[0]) for column in trending_columns(rows))
    facts: dict[str, Any] = {
        "k": int(rows.k[0]),
        "adds_terms": sorted(obj.words.values()),
        "reports": None,
    }
    if obj.ts_us is None or (subscription.ts_us is None and subscription.location is None):
        return facts
    first = max(1, -((begun_us - obj.ts_us) // every_us))
    last = (obj.ts_us + window_us - 1 - begun_us) // every_us
    expires_us = int(rows.expires_us[0])
    if expires_us != NEVER_US:
        last = min(last, (expires_us - 1 - begun_us) // every_us)
    due = [begun_us + n * every_us for n in range(first, min(last, first + MAX_DUE_TIMES - 1) + 1)]
    facts["reports"] = max(0, last - first + 1)
    facts["first_due"] = [format_timestamp(at) for at in due]
    now_us = context.manifest.now_us if context.manifest is not None else None
    if now_us is not None and last >= first:
        past = min(last, (now_us - 1 - begun_us) // every_us)
        facts["past"] = max(0, past - first + 1)
        if last > past:
            facts["next_due"] = format_timestamp(begun_us + max(first, past + 1) * every_us)
    return facts


def add_trending_reasons(
    facts: dict[str, Any], counted: bool, good: list[str], bad: list[str]
) -> None:
    """Add reasons about the reports that count the object."""
    reports = facts["reports"]
    if reports == 0:
        bad.append("its time is in the window of no report")
    elif reports is not None:
        several = f"{reports} report{'s' if reports > 1 else ''}"
        good.append(f"its time is in the window of {several}, the first at {facts['first_due'][0]}")
    count = len(facts["adds_terms"])
    if counted:
        adds = f"it adds 1 to {count} term{'s' if count > 1 else ''}"
        good.append(adds if count else "it has no term, and counts as an object alone")
