"""Queries: questions of the same people that are answered once, from what was posted lately."""

from __future__ import annotations

import numpy as np

from placewire.city.ground import ground
from placewire.city.objects import draw_posts
from placewire.city.urns import choose
from placewire.city.wishes import (
    boolean_wishes,
    nearest_wishes,
    relevant_wishes,
    scatter_wishes,
    trending_wishes,
)

DRAWERS = (boolean_wishes, nearest_wishes, relevant_wishes, trending_wishes)
KIND_WEIGHTS = np.array([3.0, 3.0, 2.0, 2.0])
LAST = ("PT5M", "PT10M", "PT15M", "PT30M", "PT1H")


def query_lines(numbers: range, stamps: list[str], random: np.random.Generator) -> list[str]:
    """The lines of the queries of the given numbers, each at its time."""
    size = len(numbers)
    posts = draw_posts(size, ground().weight, random)
    kinds = choose(KIND_WEIGHTS, random.random(size))
    wishes = scatter_wishes(kinds, DRAWERS, posts, random)
    lasts = random.integers(0, len(LAST), size).tolist()
    return [
        f'{{"type":"query","id":"query-{number:06d}","ts":"{ts}",{wish},"last":"{LAST[last]}"}}'
        for number, ts, wish, last in zip(numbers, stamps, wishes, lasts, strict=True)
    ]
