"""Hard cases: what an index by place and word can least help with."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.engine import KEY, probe_of, rows_of
from bench.settings import Choice
from bench.tables import save_table
from placewire.kinds.boolean.match import match_segment
from placewire.model.expression import COVER_ANY, COVER_ONE
from placewire.model.regions import EVERYWHERE
from placewire.model.subscriptions import SubscriptionRows
from placewire.segments.segment import make_segment
from placewire.text.analyzer import Analyzer

WORLD = np.array([-180.0, -90.0, 180.0, 90.0])


def world_sized(rows: SubscriptionRows) -> SubscriptionRows:
    """Every region is nearly the whole world."""
    jitter = np.random.default_rng(1).random(rows.box.shape) * np.array([1, 1, -1, -1])
    return rows._replace(box=WORLD + jitter)


def absent(rows: SubscriptionRows) -> SubscriptionRows:
    """No region at all."""
    return rows._replace(
        region_kind=np.full(rows.total, EVERYWHERE, np.uint8), box=np.tile(WORLD, (rows.total, 1))
    )


def negative(rows: SubscriptionRows) -> SubscriptionRows:
    """None of the words: every object in the region is a candidate."""
    following = np.arange(rows.literal_term.size) - np.repeat(
        rows.literal_offsets[:-1], np.diff(rows.literal_offsets)
    )
    last = np.zeros(rows.literal_term.size, np.bool_)
    last[rows.literal_offsets[1:] - 1] = True
    return rows._replace(
        cover_mode=np.full(rows.total, COVER_ANY, np.uint8),
        literal_cover=np.zeros(rows.literal_term.size, np.uint8),
        literal_true=np.full(rows.literal_term.size, -2, np.int16),
        literal_false=np.where(last, -1, following + 1).astype(np.int16),
    )


def one_word(rows: SubscriptionRows) -> SubscriptionRows:
    """All subscriptions ask for the most frequent keyword alone."""
    terms, counts = np.unique(rows.literal_term, return_counts=True)
    n = rows.total
    return rows._replace(
        cover_mode=np.full(n, COVER_ONE, np.uint8),
        literal_offsets=np.arange(n + 1, dtype=np.int64),
        literal_term=np.full(n, terms[counts.argmax()]),
        literal_true=np.full(n, -1, np.int16),
        literal_false=np.full(n, -2, np.int16),
        literal_cover=np.ones(n, np.uint8),
    )


def hot_cell(rows: SubscriptionRows) -> SubscriptionRows:
    """Every region is moved to one city."""
    centre = np.median(rows.box, axis=0)
    width = (rows.box[:, 2:] - rows.box[:, :2]) / 2
    middle = (centre[:2] + centre[2:]) / 2
    return rows._replace(box=np.concatenate([middle - width, middle + width], axis=1))


CASES: tuple[tuple[str, Callable[[SubscriptionRows], SubscriptionRows], int, int], ...] = (
    ("as drawn", lambda rows: rows, 1_000_000, 65_536),
    ("world-sized regions", world_sized, 100_000, 8_192),
    ("absent regions", absent, 100_000, 8_192),
    ("purely negative expressions", negative, 100_000, 8_192),
    ("one keyword shared by a million", one_word, 1_000_000, 65_536),
    ("a hot cell", hot_cell, 1_000_000, 65_536),
)


def run(choice: Choice) -> None:
    """One row a case, kernel on one core."""
    analyzer = Analyzer(*KEY)
    rows = []
    for name, change, subscriptions, objects in CASES:
        workload = choice.workload(objects, subscriptions)
        segment = make_segment(change(rows_of(workload, analyzer)))
        probe = probe_of(workload.objects.combine_chunks(), analyzer)
        match_segment(probe, segment)
        started = time.perf_counter()
        found = match_segment(probe, segment)
        seconds = time.perf_counter() - started
        matches = int(found.object.size)
        rows.append(
            (
                name,
                subscriptions,
                objects / seconds,
                matches / objects,
                matches / seconds,
                found.candidates / max(matches, 1),
                segment.boolean.postings.shape[0] / subscriptions,
            )
        )
    save_table(
        "hard",
        (
            "case",
            "subscriptions",
            "objects/s",
            "matches an object",
            "matches/s",
            "candidates a match",
            "postings a subscription",
        ),
        rows,
    )
