"""Samples with clustered and scattered words, and plans made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from placewire.plans.sample.sample import ANY, Sample

Object = tuple[int, int, Sequence[int]]  # column, row, terms
Subscription = tuple[tuple[int, int, int, int], Sequence[int]]  # cells, posts


def make(objects: Sequence[Object], subscriptions: Sequence[Subscription]) -> Sample:
    """A sample of literal rows; term t of the lexicon has the hash 1000 + t."""
    terms = [sorted(set(terms)) for _, _, terms in objects]
    posts = [sorted(set(posts)) or [ANY] for _, posts in subscriptions]
    flat = np.array([t for row in terms for t in row], np.int32)
    size = max([*flat.tolist(), *(t for row in posts for t in row), -1]) + 1
    return Sample(
        object_column=np.array([o[0] for o in objects], np.int32),
        object_row=np.array([o[1] for o in objects], np.int32),
        term_offsets=np.cumsum([0, *map(len, terms)], dtype=np.int64),
        terms=flat,
        cell=np.array([s[0] for s in subscriptions], np.int32).reshape(-1, 4),
        post_offsets=np.cumsum([0, *map(len, posts)], dtype=np.int64),
        posts=np.array([t for row in posts for t in row], np.int32),
        lexicon=np.arange(size, dtype=np.uint64) + np.uint64(1000),
        frequency=np.bincount(flat, minlength=size).astype(np.int64),
    )


def clustered(west: int, words: int, seed: int) -> tuple[list[Object], list[Subscription]]:
    """A region for text: every subscription covers it, each for a rare word of its own."""
    rng = np.random.default_rng(seed)
    objects = [
        (west + int(x), int(y), [0, 1, 2, 100 + i % words])
        for i, (x, y) in enumerate(rng.integers(0, 1000, (1000, 2)))
    ]
    return objects, [((west, 0, west + 999, 999), [100 + i]) for i in range(words)]


def scattered(west: int, seed: int) -> tuple[list[Object], list[Subscription]]:
    """A region for space: small subscriptions everywhere, for words that most objects have."""
    rng = np.random.default_rng(seed)
    objects = [
        (west + int(x), int(y), 10 + rng.permutation(12)[:6])
        for x, y in rng.integers(0, 1000, (1000, 2))
    ]
    subscriptions = [
        ((west + int(x), int(y), west + int(x) + 3, int(y) + 3), [10 + i % 12])
        for i, (x, y) in enumerate(rng.integers(0, 990, (200, 2)))
    ]
    return objects, subscriptions


words = st.lists(st.integers(0, 9), max_size=4)
