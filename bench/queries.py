"""The papers' query sets as columns: PS2Stream's Q1, Q2 and Q3, and Tornado's variations.

All are drawn from the same even rows as the benchmark's workload: keywords and centre of one row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.engine import KEY, probe_of, rows_of
from bench.settings import Choice
from bench.workload import KM_PER_DEG
from placewire.engine.worker import Probe
from placewire.model.subscriptions import SubscriptionRows, take_rows
from placewire.text.analyzer import Analyzer

FREQUENT_SHARE = 0.01
REGIONS = 10  # a side: Q3 has 100
SURPLUS = 3  # Q2 leaves out what has frequent keywords only


class QuerySet(NamedTuple):
    """Objects ready for matching, and subscriptions."""

    name: str
    objects: Probe
    rows: SubscriptionRows


class Drawn(NamedTuple):
    """Objects and more subscriptions than needed, keywords as they come."""

    objects: Probe
    rows: SubscriptionRows


def draw(choice: Choice, objects: int, subscriptions: int) -> Drawn:
    """Draw once what all query sets are made of."""
    workload = choice.workload(objects, SURPLUS * subscriptions, skip=0)
    analyzer = Analyzer(*KEY)
    return Drawn(probe_of(workload.objects.combine_chunks(), analyzer), rows_of(workload, analyzer))


def query_set(name: str, drawn: Drawn, count: int, seed: int = 11) -> QuerySet:
    """`count` subscriptions of the set `name`: Q1, Q2 or Q3."""
    random = np.random.default_rng(seed)
    rare = np.flatnonzero(has_rare_keyword(drawn))
    if name == "Q1":
        return QuerySet(name, drawn.objects, with_sides(drawn.rows, np.arange(count), 50, random))
    if name == "Q2":
        return QuerySet(name, drawn.objects, with_sides(drawn.rows, rare[:count], 100, random))
    # Q3: each of 100 equal regions is of one kind or the other.
    lon, lat = centres(drawn.rows)
    box = np.percentile(drawn.objects.lon, [1, 99]), np.percentile(drawn.objects.lat, [1, 99])
    column, row = (
        np.clip((at - low) / (high - low) * REGIONS, 0, REGIONS - 1).astype(np.int64)
        for at, (low, high) in ((lon, box[0]), (lat, box[1]))
    )
    second = (random.random((REGIONS, REGIONS)) < 0.5)[column, row]
    fits = ~second
    fits[rare] = True
    picked = np.flatnonzero(fits)[:count]
    sides = np.where(second[picked], 100.0, 50.0)
    return QuerySet(name, drawn.objects, with_sides(drawn.rows, picked, sides, random))


def has_rare_keyword(drawn: Drawn) -> np.ndarray:
    """Which subscriptions have a keyword that is not among the 1% most frequent terms."""
    terms, counts = np.unique(drawn.objects.terms, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    frequent = terms[order[: int(FREQUENT_SHARE * terms.size)]]
    rare = ~np.isin(drawn.rows.literal_term, frequent)
    return np.add.reduceat(rare.astype(np.int64), drawn.rows.literal_offsets[:-1]) > 0


def centres(rows: SubscriptionRows) -> tuple[np.ndarray, np.ndarray]:
    return (rows.box[:, 0] + rows.box[:, 2]) / 2, (rows.box[:, 1] + rows.box[:, 3]) / 2


def with_sides(
    rows: SubscriptionRows,
    picked: np.ndarray,
    longest_km: float | np.ndarray,
    random: np.random.Generator,
    shortest_km: float | np.ndarray = 1.0,
) -> SubscriptionRows:
    """The picked subscriptions as squares of sides drawn between two lengths."""
    rows = take_rows(rows, picked)
    lon, lat = centres(rows)
    half = random.uniform(shortest_km, longest_km, rows.total) / 2 / KM_PER_DEG
    wide = half / np.maximum(np.cos(np.radians(lat)), 0.01)
    box = np.column_stack([lon - wide, lat - half, lon + wide, lat + half])
    box[:, 0::2] = np.clip(box[:, 0::2], -180, 180)
    box[:, 1::2] = np.clip(box[:, 1::2], -90, 90)
    return rows._replace(box=box)
