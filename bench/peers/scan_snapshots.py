"""Answer snapshot queries by scanning every column: the reference for all engines.

It is numpy over arrays in memory, without any index; also what an index has to be faster than.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.papers.sstd.data import RetainedObjects
from bench.papers.sstd.queries import (
    ALPHA,
    BOOLEAN,
    KINDS,
    NEAREST,
    TRENDING,
    Answer,
    Query,
    boolean_answer,
    distances_m,
    nearest_answer,
    read_query,
    relevant_answer,
    take_nearest,
    trending_answer,
)

REACH_M = 20_015_114.35  # the setting `reach_m` as it is by default


class Scan:
    """Objects as columns: places, times, and a (row, term) pair for each term of each."""

    name = "scan"
    kinds = KINDS

    def __init__(self, retained: RetainedObjects) -> None:
        objects = retained.objects
        self.now_us = retained.now_us
        self.lon, self.lat = objects["lon"].to_numpy(), objects["lat"].to_numpy()
        self.ts = objects["ts"].cast(pa.int64()).to_numpy()
        terms = objects["terms"].combine_chunks()
        self.lengths = pc.list_value_length(terms).to_numpy()
        self.rows = np.repeat(np.arange(self.lon.size), self.lengths)
        encoded = pc.list_flatten(terms).dictionary_encode()
        self.terms = encoded.indices.to_numpy()
        self.words = encoded.dictionary.to_pylist()
        self.code_of = {word: code for code, word in enumerate(self.words)}

    def answer(self, query: Query) -> Answer:
        asked = read_query(query, self.now_us)
        west, south, east, north = asked.box
        kept = (self.ts > asked.after_us) & (self.lon >= west) & (self.lon <= east)
        kept &= (self.lat >= south) & (self.lat <= north)
        if asked.kind == TRENDING:
            return self.count_terms(kept, asked.k)
        shared = np.zeros(self.lon.size, np.int64)
        for term in asked.terms:
            shared[self.rows[self.terms == self.code_of.get(term, -1)]] += 1
        wanted = len(asked.terms) if asked.kind in (BOOLEAN, NEAREST) else 1
        found = np.flatnonzero(kept & (shared >= wanted))
        if asked.kind == BOOLEAN:
            return boolean_answer(found.size, found[::-1][: asked.limit].tolist())
        distances = distances_m(asked.lon, asked.lat, self.lon[found], self.lat[found])
        if asked.kind == NEAREST:
            seqs, distances = take_nearest(found, distances, asked.k)
            return nearest_answer(seqs.tolist(), distances.tolist())
        likeness = shared[found] / np.sqrt(len(asked.terms) * self.lengths[found])
        nearness = np.maximum(0.0, 1 - distances / REACH_M)
        scores = np.rint(1e9 * (ALPHA * nearness + (1 - ALPHA) * likeness)) / 1e9
        best = np.lexsort((-found, -scores))[: asked.k]
        return relevant_answer(found[best].tolist(), scores[best].tolist())

    def count_terms(self, kept: np.ndarray, k: int) -> Answer:
        counts = np.bincount(self.terms[kept[self.rows]], minlength=len(self.words))
        present = np.flatnonzero(counts)
        enough = np.partition(counts[present], -k)[-k] if present.size > k else 1
        first = present[counts[present] >= enough].tolist()
        ranked = sorted((-int(counts[code]), self.words[code]) for code in first)
        return trending_answer((word, -count) for count, word in ranked[:k])

    def close(self) -> None:
        """Nothing is open."""
