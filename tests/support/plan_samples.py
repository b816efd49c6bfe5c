"""Samples of objects, subscriptions and queries for tests of plans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from placewire.plans.sample.questions import Questions, assume_kind
from placewire.plans.sample.sample import ANY, CRQ, KINDS, SIDE, Sample, Traits

TERMS = 12


def sample_of(
    objects: Sequence[tuple[int, int, Sequence[int]]],
    subscriptions: Sequence[tuple[tuple[int, int, int, int], Sequence[int]]],
) -> Sample:
    """Objects as (column, row, terms), subscriptions as (cell, posts)."""
    terms = np.array([t for o in objects for t in o[2]], np.int32)
    return Sample(
        object_column=np.array([o[0] for o in objects], np.int32),
        object_row=np.array([o[1] for o in objects], np.int32),
        term_offsets=np.cumsum([0, *(len(o[2]) for o in objects)], dtype=np.int64),
        terms=terms,
        cell=np.array([s[0] for s in subscriptions], np.int32).reshape(-1, 4),
        post_offsets=np.cumsum([0, *(len(s[1]) for s in subscriptions)], dtype=np.int64),
        posts=np.array([t for s in subscriptions for t in s[1]], np.int32),
        lexicon=np.arange(1, TERMS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C),
        frequency=np.bincount(terms, minlength=TERMS).astype(np.int64),
    )


places = st.one_of(st.integers(0, SIDE - 1), st.integers(4090, 4100))
term_sets = st.lists(st.integers(0, TERMS - 1), max_size=4, unique=True)
objects_drawn = st.lists(st.tuples(places, places, term_sets), max_size=30)
cells = st.tuples(places, places, places, places).map(
    lambda c: (c[0], min(c[1], c[3]), c[2], max(c[1], c[3]))
)
posts_drawn = st.one_of(st.just([ANY]), term_sets.filter(bool))
samples = st.builds(sample_of, objects_drawn, st.lists(st.tuples(cells, posts_drawn), max_size=30))


def traits_drawn(sample: Sample, seed: int) -> Traits:
    random = np.random.default_rng(seed)
    assumed = assume_kind(sample, CRQ)
    rows = sample.subscriptions
    return assumed._replace(
        kind=random.integers(0, KINDS, rows).astype(np.int8),
        length=(assumed.length * random.integers(1, 4, rows)).astype(np.int8),
        duration=random.exponential(50.0, rows),
        span=24.0,
    )


Asked = tuple[int, tuple[float, float, float, float], Sequence[int], bool, float]


def questions_of(asked: Sequence[Asked], lexicon: np.ndarray) -> Questions:
    """Questions as (kind, box, terms, every, duration), terms as places in a lexicon."""
    return Questions(
        kind=np.array([a[0] for a in asked], np.int8),
        box=np.array([a[1] for a in asked], np.float64).reshape(-1, 4),
        term_offsets=np.cumsum([0, *(len(a[2]) for a in asked)], dtype=np.int64),
        terms=lexicon[[t for a in asked for t in a[2]]].astype(np.uint64),
        every=np.array([a[3] for a in asked], np.bool_),
        duration=np.array([a[4] for a in asked], np.float64),
    )
