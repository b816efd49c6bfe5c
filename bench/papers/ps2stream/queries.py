"""PS2Stream's query sets Q1, Q2 and Q3, and its stream of objects and changes.

All are drawn from the same even rows as the benchmark's workload: keywords and centre of one row.
The stream has five objects to one insert or delete, and lifetimes of N(mu, 0.2 mu) inserts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from bench.columns import KEY, probe_of, rows_of
from bench.harness import Setup
from bench.workload import KM_PER_DEG, Workload, object_lines, subscribe_events
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.model.expression import ACCEPT, COVER_ALL, COVER_ONE, REJECT
from placewire.model.subscriptions import (
    SubscriptionRows,
    concat_rows,
    lengths_to_offsets,
    take_rows,
)
from placewire.text.analyzer import Analyzer

FREQUENT_SHARE = 0.01
RARE_TOKENS = 0.9
SCALED_TOKENS = 0.93
REGIONS = 10  # a side: Q3 has 100
SURPLUS = 6  # one row in five has a rare keyword


class QuerySet(NamedTuple):
    """Objects ready for matching, and subscriptions."""

    name: str
    objects: Probe
    rows: SubscriptionRows


class Drawn(NamedTuple):
    """Objects and more subscriptions than needed, keywords as they come."""

    objects: Probe
    rows: SubscriptionRows


def draw_words(setup: Setup, objects: int, subscriptions: int) -> Workload:
    """What all query sets of so many subscriptions are made of, as words."""
    return setup.workload(objects, SURPLUS * subscriptions, skip=0)


def draw(setup: Setup, objects: int, subscriptions: int) -> Drawn:
    """Draw once what all query sets are made of."""
    workload = draw_words(setup, objects, subscriptions)
    analyzer = Analyzer(*KEY)
    return Drawn(probe_of(workload.objects.combine_chunks(), analyzer), rows_of(workload, analyzer))


def query_set(name: str, drawn: Drawn, count: int, seed: int = 11) -> QuerySet:
    """`count` subscriptions of the set `name`: Q1, Q2, Q3, and Q2 and Q3 in two other ways.

    PS2Stream's Q2 has at least one keyword beyond the 1% most frequent terms. In its 280 million
    posts these cover 93% of the tokens or more (`bench run hybrid`), so the others are rare; in
    153,000 posts they cover 65%. `Q2 at scale` has at least one keyword beyond the terms that cover
    93%. In both, an OR also asks for its other keywords, which every text has some of. `Q2 rare`
    keeps only keywords beyond the terms that cover nine tokens of ten.
    """
    random = np.random.default_rng(seed)
    rows = drawn.rows
    if name.endswith("rare"):
        rare_rows = without_keywords(rows, most_frequent(drawn, tokens=RARE_TOKENS))
    else:
        tokens = SCALED_TOKENS if name.endswith("at scale") else None
        rare_rows = take_rows(rows, has_other_keyword(rows, most_frequent(drawn, tokens=tokens)))
    if name == "Q1":
        return QuerySet(name, drawn.objects, with_sides(rows, np.arange(count), 50, random))
    if name.startswith("Q2"):
        picked = np.arange(min(count, rare_rows.total))
        return QuerySet(name, drawn.objects, with_sides(rare_rows, picked, 100, random))
    # Q3: each of 100 equal regions is of one kind or the other, and has the subscriptions that it
    # would have in Q1: as many as its rows, whichever kind they are.
    second = random.random((REGIONS, REGIONS)) < 0.5
    of_second = second[regions(drawn, rows)]
    many = int(np.count_nonzero(of_second[:count]))
    ones = np.flatnonzero(~of_second)[: count - many]
    twos = np.flatnonzero(second[regions(drawn, rare_rows)])[:many]
    both = concat_rows(
        [with_sides(rows, ones, 50, random), with_sides(rare_rows, twos, 100, random)]
    )
    return QuerySet(name, drawn.objects, both)


def as_workload(queries: QuerySet, drawn: Workload, seed: int = 13) -> Workload:
    """A set as it would be logged, keywords as words, in any order; not one of rare keywords."""
    rows = queries.rows
    ids = rows.id_bytes.tobytes()
    ends = rows.id_offsets.tolist()
    numbers = np.array([int(ids[start + 1 : end]) for start, end in pairwise(ends)])
    order = np.random.default_rng(seed).permutation(numbers.size)
    table = drawn.subscriptions.take(pa.array(numbers[order]))
    table = table.set_column(0, "id", drawn.subscriptions["id"].slice(0, order.size))
    for column, of_box in zip(("west", "south", "east", "north"), rows.box[order].T, strict=True):
        at = table.schema.get_field_index(column)
        table = table.set_column(at, column, pa.array(np.round(of_box, 6)))
    return Workload(drawn.objects, table.combine_chunks())


def regions(drawn: Drawn, rows: SubscriptionRows) -> tuple[np.ndarray, np.ndarray]:
    """The column and row of each subscription's region, of the box that most objects are in."""
    lon, lat = centres(rows)
    o = drawn.objects
    column, row = (
        np.clip((at - low) / (high - low) * REGIONS, 0, REGIONS - 1).astype(np.int64)
        for at, (low, high) in (
            (lon, np.percentile(o.lon, [1, 99])),
            (lat, np.percentile(o.lat, [1, 99])),
        )
    )
    return column, row


def most_frequent(
    drawn: Drawn, share: float = FREQUENT_SHARE, tokens: float | None = None
) -> np.ndarray:
    """The most frequent share of the objects' terms, or those that cover a share of the tokens."""
    terms, counts = np.unique(drawn.objects.terms, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    if tokens is None:
        return terms[order[: int(share * terms.size)]]
    covered = np.cumsum(counts[order]) / counts.sum()
    return terms[order[: int(np.searchsorted(covered, tokens)) + 1]]


def has_other_keyword(rows: SubscriptionRows, frequent: np.ndarray) -> np.ndarray:
    """The subscriptions that have a keyword beyond the frequent terms."""
    rare = ~np.isin(rows.literal_term, frequent)
    return np.flatnonzero(np.add.reduceat(rare.astype(np.int64), rows.literal_offsets[:-1]))


def without_keywords(rows: SubscriptionRows, frequent: np.ndarray) -> SubscriptionRows:
    """The subscriptions with their frequent keywords left out, those that have others."""
    kept = ~np.isin(rows.literal_term, frequent)
    counts = np.add.reduceat(kept.astype(np.int64), rows.literal_offsets[:-1])
    picked = np.flatnonzero(counts)
    lengths = counts[picked]
    offsets = lengths_to_offsets(lengths)
    is_any = np.repeat(rows.cover_mode[picked] == COVER_ALL, lengths)
    last = np.zeros(int(offsets[-1]), np.bool_)
    last[offsets[1:] - 1] = True
    following = (np.arange(last.size) - np.repeat(offsets[:-1], lengths) + 1).astype(np.int16)
    alike = take_rows(rows, picked)
    return alike._replace(
        cover_mode=np.where(
            (alike.cover_mode == COVER_ALL) & (lengths > 1), COVER_ALL, COVER_ONE
        ).astype(np.uint8),
        literal_offsets=offsets,
        literal_term=rows.literal_term[kept],
        literal_true=np.where(is_any | last, ACCEPT, following).astype(np.int16),
        literal_false=np.where(is_any & ~last, following, REJECT).astype(np.int16),
        literal_cover=np.ones(last.size, np.uint8),
    )


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


OBJECTS_A_CHANGE = 5
TS = "2026-01-01T00:00:00Z"


class TupleStream(NamedTuple):
    """Lines of a log: the subscriptions that stand at the start, then objects and changes."""

    standing: list[bytes]
    tuples: list[bytes]


def draw_streams(
    setup: Setup, names: tuple[str, ...], objects: int, standing: int
) -> dict[str, TupleStream]:
    """A stream for each query set, all of the same objects."""
    count = standing + objects // (2 * OBJECTS_A_CHANGE) + 1
    drawn, words = draw(setup, objects, count), draw_words(setup, objects, count)
    return {
        name: make_stream(as_workload(query_set(name, drawn, count), words), standing)
        for name in names
    }


def make_stream(workload: Workload, standing: int, seed: int = 3) -> TupleStream:
    """The first subscriptions stand; the others come as the oldest go."""
    random = np.random.default_rng(seed)
    lines = [
        msgspec.json.encode(event)
        for batch in workload.subscriptions.to_batches(max_chunksize=50_000)
        for event in subscribe_events(batch, TS)
    ]
    objects = [line for block in object_lines(workload) for line in block.splitlines()]
    # How many inserts each one lives; those that stand at the start are anywhere in their lives.
    lives = np.maximum(random.normal(standing, 0.2 * standing, len(lines)), 1)
    ages = np.where(np.arange(len(lines)) < standing, random.random(len(lines)) * lives, 0)
    born = np.maximum(np.arange(len(lines)) - standing, 0)
    leaving = iter(np.argsort(born + lives - ages, kind="stable").tolist())
    coming = iter(lines[standing:])
    tuples = []
    for number, line in enumerate(objects):
        tuples.append(line)
        if number % (2 * OBJECTS_A_CHANGE) == OBJECTS_A_CHANGE:
            tuples.extend(line for line in [next(coming, None)] if line is not None)
        elif number % (2 * OBJECTS_A_CHANGE) == 0:
            gone = f"s{next(leaving)}".encode()
            tuples.append(b'{"type":"unsubscribe","id":"%b","ts":"%b"}' % (gone, TS.encode()))
    return TupleStream(lines[:standing], tuples)
