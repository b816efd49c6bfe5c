"""Searches by page_layers and by walking lists find exactly what a look at every object finds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.ingest.queries import Query
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.space.regions import distance_m
from placewire.kinds.relevant.answer import answer_relevant
from placewire.kinds.relevant.refill import WindowFile, WindowSearch
from placewire.kinds.relevant.rows import RelevantRows
from placewire.model.kinds import RELEVANT
from placewire.model.subscriptions import lengths_to_offsets, no_rows
from placewire.objects import score_layers as module
from placewire.objects.index import NO_BYTES, NO_OFFSETS, Retained, Rows, build_retained
from placewire.objects.kernels.best_of_rows import (
    ScoredRows,
    SearchWindows,
    best_objects_of_rows,
    make_best_objects,
    objects_above_rows,
)
from placewire.objects.kernels.score import score_nano
from placewire.objects.score_layers import NO_PAGE_LAYERS, Layers, build_page_layers, columns_of
from placewire.objects.sections import Span
from placewire.objects.store import describe
from placewire.storage.layout import StateDir
from placewire.text.words import Lexicon, Words, weigh_terms
from profiles import examples
from retained import section_of

OFTEN, SELDOM = 9, 150
VOCABULARY = sorted([f"often{i}" for i in range(OFTEN)] + [f"seldom{i}" for i in range(SELDOM)])
FIRST, LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
PLACES = [(0.0, 0.0), (180.0, 10.0), (-180.0, 10.0), (179.99, -40.0), (13.0, 90.0), (-77.0, -90.0)]
LEXICONS = [
    None,
    Lexicon(0, {}),
    Lexicon(5_000, {word: 1 + 37 * i for i, word in enumerate(VOCABULARY)}),
]


@pytest.fixture(autouse=True)
def thin_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several layers of a page each."""
    monkeypatch.setattr(module, "LAYER_PAGES", 1)


def make_file(seed: int, count: int, lexicon: Lexicon | None, parts: int = 1) -> Retained:
    """Objects on a coarse grid and at odd places, many alike but for their seq."""
    choose = np.random.default_rng(seed)
    odd = np.array(PLACES)[choose.integers(0, len(PLACES), count)]
    grid = np.round(choose.uniform(-1, 1, (count, 2)) * (18, 9)) * 10
    near = np.array([170.0, 60.0]) + choose.normal(0, 1, (count, 2)) * (4, 3)
    kind = choose.random((count, 1))
    points = np.where(kind < 0.1, odd, np.where(kind < 0.5, grid, near))
    lon, lat = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
    terms = []
    for _ in range(count):
        often = choose.choice(OFTEN, choose.integers(0, OFTEN // 2), replace=False)
        seldom = OFTEN + choose.choice(SELDOM, choose.integers(0, 3), replace=False)
        terms.append(np.sort(np.concatenate([often, seldom])))
    encoded = [word.encode() for word in VOCABULARY]
    words = Words(
        (np.arange(len(encoded), dtype=np.uint64) + np.uint64(7)) * np.uint64(0x9E3779B97F4A7C15),
        lengths_to_offsets(np.array([len(word) for word in encoded], np.int64)),
        np.frombuffer(b"".join(encoded), np.uint8),
    )
    rows = Rows(
        seq=choose.permutation(count),
        ts_us=choose.integers(0, 1_000, count),
        lon=lon,
        lat=lat,
        code=points_to_codes(lon, lat),
        part=choose.integers(0, parts, count).astype(np.int32),
        id_offsets=lengths_to_offsets(np.full(count, 1, np.int64)),
        id_bytes=np.zeros(count, np.uint8),
        data_offsets=NO_OFFSETS,
        data_bytes=NO_BYTES,
        text_offsets=NO_OFFSETS,
        text_bytes=NO_BYTES,
        term_offsets=lengths_to_offsets(np.array([t.size for t in terms], np.int64)),
        terms=np.concatenate([*terms, np.empty(0, np.int64)]).astype(np.uint32),
    )
    return build_retained(rows, words, lexicon)


class Asking(NamedTuple):
    lon: float
    lat: float
    alpha: float
    reach_m: float
    terms: list[int]
    after_us: int = FIRST
    after_seq: int = FIRST
    before_seq: int = LAST


def make_asking(seed: int, count: int) -> Asking:
    choose = np.random.default_rng([seed, 1])
    lon, lat = PLACES[choose.integers(0, len(PLACES))]
    if choose.random() < 0.5:
        lon, lat = choose.normal(170, 2), choose.normal(60, 2)
    often = choose.choice(OFTEN, choose.choice([0, 1, 2, 8]), replace=False)
    seldom = OFTEN + choose.choice(SELDOM, choose.integers(0 if often.size else 1, 4))
    asking = Asking(
        float(lon),
        float(lat),
        float(choose.choice([0.0, 0.2, 0.6, 0.97, 1.0])),
        float(choose.choice([1.0, 3e5, 4e6, 20015114.35, 1e9])),
        np.unique(np.concatenate([often, seldom])).astype(int).tolist(),
    )
    window = choose.integers(0, 4)
    if window == 1:
        asking = asking._replace(after_us=970)
    elif window == 2:
        asking = asking._replace(after_seq=count // 3, before_seq=count // 3 + 60)
    return asking


def rows_of_askings(file: Retained, askings: list[Asking], lexicon: Lexicon | None) -> ScoredRows:
    weights, idfs, hashes = [], [], []
    for asking in askings:
        idf, norm = weigh_terms([VOCABULARY[term] for term in asking.terms], lexicon)
        weights.append([*asking[:4], norm])
        idfs.append(idf)
        hashes.append(file.word_hash[asking.terms])
    columns = (
        lengths_to_offsets(np.array([h.size for h in hashes], np.int64)),
        np.concatenate(hashes),
        np.array(weights),
        np.concatenate(idfs),
    )
    return ScoredRows(*map(read_only, columns))


def look_at_all(
    file: Retained, asking: Asking, lexicon: Lexicon | None
) -> list[tuple[int, int, int]]:
    """Every candidate as score, seq and time, by rank: the null form of a search."""
    idf, norm = weigh_terms([VOCABULARY[term] for term in asking.terms], lexicon)
    weights = dict(zip(asking.terms, idf, strict=True))
    found = []
    for row in range(file.total):
        seq, ts_us = int(file.seq[row]), int(file.ts_us[row])
        if ts_us <= asking.after_us or not asking.after_seq < seq < asking.before_seq:
            continue
        terms = file.terms[file.term_offsets[row] : file.term_offsets[row + 1]].tolist()
        shared = [term for term in terms if term in weights]
        if not shared:
            continue
        own = file.norm[row] if lexicon is not None else np.sqrt(float(len(terms)))
        textual = 0.0
        if norm != 0 and own != 0:
            for term in shared:
                textual += (weights[term] / norm) * (weights[term] / own)
        distance = distance_m(asking.lon, asking.lat, file.lon[row], file.lat[row])
        nano = score_nano(distance, textual, asking.alpha, asking.reach_m)
        found.append((int(nano), seq, ts_us))
    return sorted(found, reverse=True)


def windows_of(askings: list[Asking]) -> SearchWindows:
    return SearchWindows(
        *(
            read_only(np.array([getattr(a, name) for a in askings], np.int64))
            for name in SearchWindows._fields
        )
    )


def search(
    file: Retained, askings: list[Asking], lexicon: Lexicon | None, room: int, layered: bool
) -> list[list[tuple[int, int, int]]]:
    """The best of each, from one file."""
    page_layers = build_page_layers(file) if layered else NO_PAGE_LAYERS
    count = len(askings)
    best = make_best_objects(np.full(count, room, np.int64))
    best_objects_of_rows(
        read_only(np.arange(count)),
        windows_of(askings),
        rows_of_askings(file, askings, lexicon),
        columns_of(file, np.argsort(file.word_hash, kind="stable")),
        page_layers,
        layered,
        True,
        best,
    )
    assert (best.looked >= best.counts).all()
    return [
        list(
            zip(
                *(column[room * i : room * i + best.counts[i]].tolist() for column in best[3:]),
                strict=True,
            )
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("layered", [True, False])
@pytest.mark.parametrize("lexicon", LEXICONS)
@settings(max_examples=examples(8))
@given(
    seed=st.integers(0, 10_000),
    count=st.sampled_from([1, 60, 300, 5_000]),
    room=st.sampled_from([1, 7, 40, 6_000]),
)
def test_the_best_are_those_of_a_look_at_all(
    lexicon: Lexicon | None, layered: bool, seed: int, count: int, room: int
) -> None:
    file = make_file(seed, count, lexicon, parts=1 + seed % 3)
    askings = [make_asking(7 * seed + i, count) for i in range(6)]
    found = search(file, askings, lexicon, room, layered)
    for asking, best in zip(askings, found, strict=True):
        assert best == look_at_all(file, asking, lexicon)[:room]


@pytest.mark.parametrize("layered", [True, False])
@pytest.mark.parametrize("lexicon", LEXICONS)
@settings(max_examples=examples(6))
@given(seed=st.integers(0, 10_000), count=st.sampled_from([1, 300, 4_000]))
def test_all_above_a_score_are_found(
    lexicon: Lexicon | None, layered: bool, seed: int, count: int
) -> None:
    file = make_file(seed, count, lexicon)
    askings = [
        make_asking(7 * seed + i, count)._replace(after_us=FIRST, before_seq=LAST) for i in range(6)
    ]
    everything = [look_at_all(file, asking, lexicon) for asking in askings]
    # At a score that some have, and so low that nothing is left out.
    theta = [every[len(every) // 9][0] if every and i % 3 else -1
             for i, every in enumerate(everything)]  # fmt: skip
    of, *columns = objects_above_rows(
        read_only(np.arange(len(askings))),
        windows_of(askings),
        read_only(np.array(theta, np.int32)),
        rows_of_askings(file, askings, lexicon),
        columns_of(file, np.argsort(file.word_hash, kind="stable")),
        build_page_layers(file) if layered else NO_PAGE_LAYERS,
        layered,
        True,
    )
    assert (np.diff(of) >= 0).all()
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    for i, every in enumerate(everything):
        mine = sorted((f for f, o in zip(found, of.tolist(), strict=True) if o == i), reverse=True)
        assert mine == [one for one in every if one[0] >= theta[i]]


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 10_000), parts=st.sampled_from([1, 4]))
def test_queries_are_answered_alike_with_layers_and_by_lists(seed: int, parts: int) -> None:
    whole = section_of(make_file(seed, 3_000, None, parts))
    asking = make_asking(seed, 3_000)
    query = Query(
        "q",
        "relevant",
        1,
        lon=asking.lon,
        lat=asking.lat,
        terms=tuple(VOCABULARY[term] for term in asking.terms),
        k=30,
        alpha=asking.alpha,
        reach_m=asking.reach_m,
    )
    layers = Layers()
    layers.page_layers = build_page_layers(whole.retained)
    for rows in (whole.rows, whole.rows[::2]):
        section = whole.of_parts(rows)
        for span in (Span(-1, 1_000), Span(200, 260)):
            plain = answer_relevant(query, span, [section], None, False)
            deep = answer_relevant(query, span, [section._replace(layers=layers)], None, False)
            assert deep == plain


def test_threads_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count, total = 2_000, 300
    state = StateDir(tmp_path)
    search = WindowSearch(state, by_time=True)
    entries = []
    for seed in (1, 2):
        file = make_file(seed, count, None)
        file = file._replace(seq=read_only(file.seq + seed * count))
        entry = describe(f"file{seed}", file)
        search.files[entry.name] = WindowFile(
            file,
            np.argsort(file.word_hash, kind="stable"),
            np.argsort(file.seq, kind="stable"),
            entry,
            Layers(),
        )
        entries.append(entry)
    search.use_files(entries)
    askings = [
        make_asking(i, count)._replace(after_seq=FIRST, before_seq=LAST) for i in range(total)
    ]
    asked = rows_of_askings(file, askings, None)
    rows = no_rows()._replace(
        literal_offsets=asked.literal_offsets,
        literal_term=asked.literal_term,
        own={RELEVANT: RelevantRows(*asked[2:])},
    )
    wanted = SearchWindows(*(np.array([a[i] for a in askings], np.int64) for i in (5, 6, 7)))
    sizes = np.full(total, 25)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        best = search.find_best(rows, np.arange(total), wanted, sizes)
        stays = np.arange(25) < best.counts[:, None]
        found.append([best.counts, *(c.reshape(total, 25)[stays] for c in best[3:])])
    assert all(file.layers.page_layers is not None for file in search.files.values())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
