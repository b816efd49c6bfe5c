"""Text similarity: how alike the words of a portion's objects and of its subscriptions are."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.parts import terms_counted
from placewire.plan.portion import Portion
from placewire.plan.sample import Sample

MOST_ROWS = 50_000  # of each side are compared: an angle needs no more
NOTHING_TO_COMPARE = 1.0


def text_similarity(sample: Sample, portion: Portion) -> float:
    """The cosine between the term counts of objects and the post counts of subscriptions.

    Posts stand for keywords: they are the terms by which a text split would send a subscription.
    A portion without objects or without posts says nothing for text: it is as similar as can be.
    Of a large portion rows at even steps are counted.
    """
    size = sample.lexicon.size
    objects = terms_counted(sample.term_offsets, sample.terms, _thin(portion.objects), size)
    posts = terms_counted(sample.post_offsets, sample.posts, _thin(portion.subscriptions), size)
    lengths = math.sqrt(_dot(objects, objects) * _dot(posts, posts))
    return _dot(objects, posts) / lengths if lengths > 0.0 else NOTHING_TO_COMPARE


def _dot(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    return float(np.dot(one.astype(np.float64), other.astype(np.float64)))


def _thin(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows[:: -(-rows.size // MOST_ROWS) or 1]
