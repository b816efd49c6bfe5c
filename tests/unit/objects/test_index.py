"""Retained objects: indexes, nodes and merges find and count what a plain look at all rows does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.ingest.queries import Query
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.space.regions import region_containing_points
from placewire.kinds.trending.answer import count_section, top_terms
from placewire.model.regions import Region, read_region
from placewire.model.subscriptions import lengths_to_offsets
from placewire.objects import index as module
from placewire.objects.index import (
    NO_BYTES,
    NO_OFFSETS,
    Retained,
    Rows,
    build_retained,
    join_retained,
    rows_of,
    take_retained,
    used_words,
)
from placewire.objects.kernels.cell_ranges import region_to_stretches
from placewire.objects.sections import Span, region_of
from placewire.queries.answer import answer_query
from placewire.text.words import Words
from profiles import examples
from retained import section_of

VOCABULARY = sorted(["coffee", "tea", "free", "sale", "café", "東京"])
SPAN = Span(-1, 1_000)


@pytest.fixture(autouse=True)
def small_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few rows, so that small sets have many."""
    monkeypatch.setattr(module, "TABLE_ROWS", 4)


def make_rows(seed: int, count: int, parts: int = 1) -> Rows:
    """Random objects, many of them in one place."""
    choose = np.random.default_rng(seed)
    spots = choose.uniform(-1, 1, (5, 2)) * (180, 90)
    points = np.where(
        choose.random((count, 1)) < 0.6,
        spots[choose.integers(0, 5, count)],
        choose.uniform(-1, 1, (count, 2)) * (180, 90),
    )
    lon, lat = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
    terms = [
        np.sort(choose.choice(len(VOCABULARY), choose.integers(0, 4), replace=False))
        for _ in range(count)
    ]
    ids = [f"o{n}".encode() for n in range(count)]
    return Rows(
        seq=np.arange(count),
        ts_us=choose.integers(0, 1_000, count),
        lon=lon,
        lat=lat,
        code=points_to_codes(lon, lat),
        part=choose.integers(0, parts, count).astype(np.int32),
        id_offsets=lengths_to_offsets(np.array([len(name) for name in ids], np.int64)),
        id_bytes=np.frombuffer(b"".join(ids), np.uint8),
        data_offsets=NO_OFFSETS,
        data_bytes=NO_BYTES,
        text_offsets=NO_OFFSETS,
        text_bytes=NO_BYTES,
        term_offsets=lengths_to_offsets(np.array([t.size for t in terms], np.int64)),
        terms=np.concatenate([*terms, np.empty(0, np.int64)]).astype(np.uint32),
    )


def make_words() -> Words:
    encoded = [word.encode() for word in VOCABULARY]
    return Words(
        np.arange(len(encoded), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15),
        lengths_to_offsets(np.array([len(word) for word in encoded], np.int64)),
        np.frombuffer(b"".join(encoded), np.uint8),
    )


regions: list[Any] = [
    {"box": [-180, -90, 180, 90]},
    {"box": [-180, -90, 0, 0]},
    {"box": [-60, -20, 130, 71]},
    {"box": [150, -90, -150, 45]},
    {"circle": {"lon": 10, "lat": 5, "radius_m": 4e6}},
    {"circle": {"lon": 170, "lat": 85, "radius_m": 9e6}},
    {"circle": {"lon": 0, "lat": 0, "radius_m": 1.9e7}},
    {"polygon": [[[-170, -80], [170, -60], [100, 80], [-90, 70], [-170, -80]],
                 [[-20, -20], [20, -20], [20, 20], [-20, -20]]]},
]  # fmt: skip


def inside(retained: Retained, region: Region) -> np.ndarray:
    ground = region_of(region)
    return region_containing_points(
        ground.kind, ground.box, ground.shape, read_only(retained.lon), read_only(retained.lat)
    )


@pytest.mark.parametrize("region", regions)
@settings(max_examples=examples(15))
@given(seed=st.integers(0, 1000), count=st.integers(1, 400), parts=st.sampled_from([1, 5]))
def test_stretches_hold_a_region_and_the_sure_ones_nothing_else(
    region: Any, seed: int, count: int, parts: int
) -> None:
    retained = build_retained(make_rows(seed, count, parts), make_words())
    section = section_of(retained)
    ground = region_of(read_region(region))
    wanted = inside(retained, read_region(region))
    for few in (1, 24):
        found = region_to_stretches(ground, section.retained.code, section.rows, few)
        seen = np.zeros(count, np.int64)
        for begin, end, sure in found.tolist():
            seen[begin:end] += 1
            assert not sure or wanted[begin:end].all()
        assert seen.max() <= 1
        assert (seen[wanted] == 1).all()


@pytest.mark.parametrize("region", regions)
@settings(max_examples=examples(15))
@given(seed=st.integers(0, 1000), count=st.integers(1, 400), parts=st.sampled_from([1, 5]))
def test_counts_by_nodes_are_those_of_rows(region: Any, seed: int, count: int, parts: int) -> None:
    retained = build_retained(make_rows(seed, count, parts), make_words())
    nodes = [tuple(node) for node in retained.nodes.tolist()]
    assert nodes == sorted(nodes, key=lambda node: (node[0], -node[1]))
    section = section_of(retained)
    ground = region_of(read_region(region))
    wanted = inside(retained, read_region(region))
    for span in (SPAN, Span(300, 800), Span(-1, 1_000, after_seq=count // 2)):
        counts = (
            wanted
            & (retained.ts_us > span.after_us)
            & (retained.ts_us <= span.until_us)
            & (retained.seq > span.after_seq)
        )
        expected: Counter[str] = Counter()
        for row in np.flatnonzero(counts):
            begin, end = retained.term_offsets[row], retained.term_offsets[row + 1]
            expected.update(VOCABULARY[term] for term in retained.terms[begin:end])
        counted = count_section(section, ground, span)
        assert counted.objects == counts.sum()
        ranked = sorted(expected.items(), key=lambda pair: (-pair[1], pair[0]))
        assert top_terms([counted], 1000) == [list(pair) for pair in ranked]
        assert top_terms([counted], 2) == [list(pair) for pair in ranked[:2]]


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1000), count=st.integers(2, 300), parts=st.sampled_from([1, 3]))
def test_a_merge_of_cut_rows_is_the_whole(seed: int, count: int, parts: int) -> None:
    rows, words = make_rows(seed, count, parts), make_words()
    whole = build_retained(rows, words)
    cut = count // 3 + 1
    pieces = [np.arange(cut), np.arange(cut, count)]
    built = [build_retained(*used_words(take_retained(rows, p), words)) for p in pieces if p.size]
    joined, shared = join_retained([(rows_of(one), one.words) for one in built])
    again = build_retained(*used_words(joined, shared))
    before, after = section_of(whole), section_of(again)
    for query in (
        Query("q", "trending", 1, k=1000),
        Query("q", "nearest", 1, lon=3, lat=4, terms=("coffee", "東京"), k=7),
        Query("q", "relevant", 1, lon=3, lat=4, terms=("tea",), k=7, alpha=0.5, reach_m=1e7),
    ):
        assert answer_query(query, SPAN, [after]) == answer_query(query, SPAN, [before])
        split = [section_of(one) for one in built]
        assert answer_query(query, SPAN, split) == answer_query(query, SPAN, [before])
