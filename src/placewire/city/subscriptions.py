"""Subscriptions: standing questions of the same people, about the same places and words."""

from __future__ import annotations

import numpy as np

from placewire.city.ground import ground
from placewire.city.hour import Hour
from placewire.city.objects import Posts, draw_posts
from placewire.city.urns import Floats
from placewire.city.wishes import (
    boolean_wishes,
    nearest_wishes,
    relevant_wishes,
    scatter_wishes,
    trending_wishes,
)

NEAREST_SHARE = 1 / 8
RELEVANT_SHARE = 1 / 40
TRENDING_SHARE = 1 / 40
EVERY = ("PT5M", "PT10M")
WINDOWS = ("PT10M", "PT20M", "PT30M")
EXPIRES_SHARE = 0.10
EXPIRES_AFTER_HOURS = (0.1, 2.0)  # of the log, from its own beginning


def subscribe_lines(
    numbers: list[int],
    stamps: list[str],
    begins: Floats,
    hour: Hour,
    random: np.random.Generator,
) -> list[str]:
    """The lines that subscribe (or replace) the given numbers, at second `begins` of the hour."""
    size = len(numbers)
    posts = draw_posts(size, ground().weight, random)
    kinds = np.searchsorted(_EDGES, random.random(size), side="right")
    wishes = scatter_wishes(kinds, _DRAWERS, posts, random)
    expiring = np.flatnonzero(random.random(size) < EXPIRES_SHARE)
    shortest, longest = EXPIRES_AFTER_HOURS
    lasting = hour.seconds * (shortest + (longest - shortest) * random.random(len(expiring)))
    expiries = hour.stamps(begins[expiring] + lasting)
    for row, expiry in zip(expiring.tolist(), expiries, strict=True):
        wishes[row] += f',"expires":"{expiry}"'
    return [
        f'{{"type":"subscribe","id":"sub-{number:06d}","ts":"{ts}",{wish}}}'
        for number, ts, wish in zip(numbers, stamps, wishes, strict=True)
    ]


def unsubscribe_line(number: int, stamp: str) -> str:
    """The line that ends a subscription."""
    return f'{{"type":"unsubscribe","id":"sub-{number:06d}","ts":"{stamp}"}}'


def _paced_wishes(posts: Posts, random: np.random.Generator) -> list[str]:
    """What is talked about around each post, every few minutes."""
    size = len(posts.lon)
    windows = random.integers(0, len(WINDOWS), size).tolist()
    every = random.integers(0, len(EVERY), size).tolist()
    return [
        f'{wish},"window":"{WINDOWS[window]}","every":"{EVERY[pace]}"'
        for wish, window, pace in zip(trending_wishes(posts, random), windows, every, strict=True)
    ]


_DRAWERS = (boolean_wishes, nearest_wishes, relevant_wishes, _paced_wishes)
_EDGES = 1 - np.cumsum([TRENDING_SHARE, RELEVANT_SHARE, NEAREST_SHARE])[::-1]
