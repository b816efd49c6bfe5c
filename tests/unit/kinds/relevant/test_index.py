"""The contract of the index of `relevant` rows: whatever rows, objects and prunings, the scan."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from placewire.kernels.space.cells import points_to_codes
from placewire.kinds.relevant.index import build_groups
from placewire.kinds.relevant.kernels import groups as prunings
from placewire.kinds.relevant.kernels.groups import (
    ALL_PRUNINGS,
    COUNT_POSTINGS,
    COUNTER_NAMES,
    GroupIndex,
)
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.kinds.relevant.match import Relevance, find_relevant, scan_relevant
from placewire.kinds.relevant.rows import RelevantRows, relevant_columns
from placewire.model.kinds import RELEVANT
from placewire.model.subscriptions import (
    NEVER_US,
    SubscriptionRows,
    lengths_to_offsets,
    no_rows,
    take_slices,
)
from placewire.storage.arrays import open_arrays, write_arrays
from profiles import examples

VOCABULARY = 80
HASHES = np.sort(np.random.default_rng(1).integers(1, 1 << 63, VOCABULARY)).astype(np.uint64)
PRUNINGS = {
    name: getattr(prunings, name)
    for name in (
        "CELL_PRUNING",
        "GROUP_PRUNING",
        "EARLY_TERMINATION",
        "OUTER_BOUND",
        "INNER_BOUND",
        "PREFIX",
        "MAX_WEIGHT",
        "UNSEEN_BOUND",
        "HINTS",
    )
}
REACHES = (1e-300, 0.001, 1.0, 1e3, 3e5, 4e6, 20015114.35, 1e12)
CENTRES = ((0.0, 0.0), (180.0, 20.0), (-180.0, 20.0), (40.0, 90.0), (-100.0, -90.0), (-74.0, 40.7))


class World(NamedTuple):
    rows: SubscriptionRows
    theta: NDArray[np.int32]
    block: RelevanceBlock
    dead: NDArray[np.uint64]


def draw_places(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], ...]:
    """About some centres, poles and the antimeridian among them; many places come twice."""
    centre = np.array(CENTRES)[rng.integers(0, len(CENTRES), n)]
    spread = rng.choice([0.0, 1e-5, 0.01, 3.0, 60.0], n)
    lon = centre[:, 0] + rng.normal(0, 1, n) * spread
    lat = np.clip(centre[:, 1] + rng.normal(0, 1, n) * spread, -90.0, 90.0)
    lon = np.where(np.abs(lon) > 180.0, (lon + 180.0) % 360.0 - 180.0, lon)
    return np.round(lon, 6), np.round(lat, 6)


def draw_terms(
    rng: np.random.Generator, n: int, shortest: int, longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sets of words by Zipf's law as a CSR column, one in twenty with 64 of them."""
    share = 1.0 / np.arange(1, VOCABULARY + 1)
    lengths = rng.integers(shortest, longest + 1, n)
    lengths[rng.random(n) < 0.05] = 64
    sets = [
        rng.choice(VOCABULARY, length, replace=False, p=share / share.sum()) for length in lengths
    ]
    return lengths_to_offsets(lengths), np.concatenate([np.empty(0, np.int64), *sets])


def norms_of(offsets: NDArray[np.int64], idf: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([np.sqrt((idf[a:b] ** 2).sum()) for a, b in pairwise(offsets)])


def draw_world(seed: int, subscriptions: int = 300, objects: int = 40) -> World:
    """Rows and objects with everything that is at an edge."""
    rng = np.random.default_rng(seed)
    idf = np.ones(VOCABULARY) if rng.random() < 0.3 else rng.uniform(0.1, 9.0, VOCABULARY)
    idf[rng.random(VOCABULARY) < rng.choice([0.0, 0.2])] = 0.0
    n = subscriptions
    offsets, words = draw_terms(rng, n, 1, 5)
    lon, lat = draw_places(rng, n)
    alpha = np.where(rng.random(n) < 0.4, rng.choice([0.0, 0.5, 1.0], n), rng.random(n))
    reach = rng.choice(REACHES, n)
    weights = np.column_stack([lon, lat, alpha, reach, norms_of(offsets, idf[words])])
    rows = no_rows()._replace(
        kind=np.full(n, RELEVANT, np.uint8),
        k=np.ones(n, np.uint16),
        begin_seq=np.zeros(n, np.int64),
        expires_us=np.where(rng.random(n) < 0.2, rng.integers(0, 100, n), NEVER_US),
        shape_offsets=np.zeros(n + 1, np.int64),
        literal_offsets=offsets,
        literal_term=HASHES[words],
        own={RELEVANT: RelevantRows(weights, idf[words])},
    )
    lon, lat = draw_places(rng, objects)
    codes = points_to_codes(lon, lat)
    order = np.argsort(codes, kind="stable")
    term_offsets, words = draw_terms(rng, objects, 0, 12)
    words = np.concatenate(
        [np.empty(0, np.int64)] + [np.sort(words[a:b]) for a, b in pairwise(term_offsets)]
    )
    block = RelevanceBlock(
        codes[order],
        lon[order],
        lat[order],
        rng.integers(0, 100, objects),
        term_offsets,
        HASHES[words],
        norms_of(term_offsets, idf[words]),
    )
    dead = np.empty(0, np.uint64)
    if rng.random() < 0.5:
        dead = rng.integers(0, 1 << 63, n // 64 + 1).astype(np.uint64) & rng.integers(
            0, 1 << 63, n // 64 + 1
        ).astype(np.uint64)
    return World(rows, draw_theta(rng, rows, block), block, dead)


def draw_theta(
    rng: np.random.Generator, rows: SubscriptionRows, block: RelevanceBlock
) -> NDArray[np.int32]:
    """Thresholds of all sorts, among them scores of objects exactly and just missed."""
    n = rows.total
    theta = rng.integers(0, 1_000_000_001, n).astype(np.int32)
    every = scan_relevant(block, rows, np.full(n, -1, np.int32))
    pick = rng.permutation(every.row.size)
    tied = np.full(n, -1, np.int32)
    tied[every.row[pick]] = every.nano[pick]
    sort = rng.integers(0, 10, n)
    theta = np.where(sort < 4, tied, theta)
    theta = np.where(sort == 4, tied + 1, theta)
    theta = np.where(sort == 5, -1, theta)
    theta = np.where(sort == 6, 0, theta)
    return np.where(sort == 7, 1_000_000_001, theta).astype(np.int32)


def sorted_pairs(found: Relevance) -> NDArray[np.int64]:
    pairs = np.column_stack([found.object, found.row, found.nano]).astype(np.int64)
    return pairs[np.lexsort(pairs.T[::-1])]


def assert_same(found: Relevance, wanted: Relevance) -> None:
    np.testing.assert_array_equal(sorted_pairs(found), sorted_pairs(wanted))


def sized(seed: int) -> dict[str, int]:
    """Sizes of cells and groups, from the smallest on."""
    rng = np.random.default_rng([seed, 1])
    return {"leaf_rows": int(rng.choice([1, 7, 70, 1_000])), "groups": int(rng.integers(1, 12))}


seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(60))
@given(seed=seeds)
def test_finds_what_the_scan_finds(seed: int) -> None:
    world = draw_world(seed)
    index = build_groups(world.rows, world.theta, **sized(seed))
    found = find_relevant(world.block, world.rows, index, world.theta, world.dead)
    assert_same(found, scan_relevant(world.block, world.rows, world.theta, world.dead))


@settings(max_examples=examples(15))
@given(seed=seeds)
def test_finds_the_same_without_any_one_pruning(seed: int) -> None:
    world = draw_world(seed)
    wanted = scan_relevant(world.block, world.rows, world.theta, world.dead)
    for dropping in (True, False):
        index = build_groups(world.rows, world.theta, dropping=dropping, **sized(seed))
        for off in (*PRUNINGS.values(), ALL_PRUNINGS, 0):
            for counted in (0, COUNT_POSTINGS):
                found = find_relevant(
                    world.block,
                    world.rows,
                    index,
                    world.theta,
                    world.dead,
                    ALL_PRUNINGS & ~off | counted,
                )
                assert_same(found, wanted)


@settings(max_examples=examples(15))
@given(seed=seeds)
def test_thresholds_may_rise_after_the_index_is_made(seed: int) -> None:
    world = draw_world(seed)
    index = build_groups(world.rows, world.theta, **sized(seed))
    rng = np.random.default_rng(seed)
    later = np.maximum(world.theta, draw_theta(rng, world.rows, world.block))
    # Of dead rows they may do what they like.
    if world.dead.size:
        row = np.arange(world.rows.total)
        is_dead = (world.dead[row >> 6] >> (row & 63).astype(np.uint64)) & np.uint64(1)
        later = np.where(is_dead == 1, -1, later).astype(np.int32)
    found = find_relevant(world.block, world.rows, index, later, world.dead)
    assert_same(found, scan_relevant(world.block, world.rows, later, world.dead))


@settings(max_examples=examples(15))
@given(seed=seeds)
def test_a_small_room_is_filled_again_and_again(seed: int) -> None:
    world = draw_world(seed)
    index = build_groups(world.rows, world.theta, leaf_rows=5)
    found = find_relevant(world.block, world.rows, index, world.theta, world.dead, room=1)
    assert_same(found, scan_relevant(world.block, world.rows, world.theta, world.dead))


@settings(max_examples=examples(25))
@given(seed=seeds)
def test_parts_of_rows_and_of_their_terms(seed: int) -> None:
    """Found are the pairs of picked rows in which the object has a posted term."""
    world = draw_world(seed)
    rows, block = world.rows, world.block
    rng = np.random.default_rng([seed, 2])
    posted = rng.random(rows.literal_term.size) < 0.5
    picked = np.flatnonzero(rng.random(rows.total) < 0.7)
    index = build_groups(rows, world.theta, picked=picked, posted=posted, **sized(seed))
    found = find_relevant(block, rows, index, world.theta, world.dead)
    every = scan_relevant(block, rows, world.theta, world.dead)
    has = [
        bool(
            np.isin(
                rows.literal_term[rows.literal_offsets[r] : rows.literal_offsets[r + 1]][
                    posted[rows.literal_offsets[r] : rows.literal_offsets[r + 1]]
                ],
                block.terms[block.term_offsets[o] : block.term_offsets[o + 1]],
            ).any()
        )
        for o, r in zip(every.object, every.row, strict=True)
    ]
    keep = np.array(has, bool) & np.isin(every.row, picked)
    assert_same(found, Relevance(*(column[keep] for column in every[:3]), every.counters))
    # Two indexes with half of the terms each find everything.
    other = build_groups(rows, world.theta, picked=picked, posted=~posted, **sized(seed))
    both = [found, find_relevant(block, rows, other, world.theta, world.dead)]
    pairs = np.unique(np.concatenate([sorted_pairs(one) for one in both]), axis=0)
    keep = np.isin(every.row, picked)
    wanted = Relevance(*(column[keep] for column in every[:3]), every.counters)
    np.testing.assert_array_equal(pairs, sorted_pairs(wanted))


@pytest.mark.parametrize(("subscriptions", "objects"), [(0, 0), (0, 9), (30, 0), (1, 1)])
def test_nothing_and_little(subscriptions: int, objects: int) -> None:
    world = draw_world(3, subscriptions, objects)
    index = build_groups(world.rows, world.theta)
    found = find_relevant(world.block, world.rows, index, world.theta, world.dead)
    assert_same(found, scan_relevant(world.block, world.rows, world.theta, world.dead))


def test_many_rows_in_one_place_want_the_same() -> None:
    """A cell that cannot be divided, however small cells should be."""
    world = draw_world(11, 700, 20)
    own = relevant_columns(world.rows)
    weights = own.weights.copy()
    weights[:, :2] = -74.0, 40.7
    rows = world.rows._replace(own={RELEVANT: own._replace(weights=weights)})
    index = build_groups(rows, world.theta, leaf_rows=10)
    assert int(np.diff(index.cell_offsets).max()) > 100
    found = find_relevant(world.block, rows, index, world.theta, world.dead, room=10)
    assert_same(found, scan_relevant(world.block, rows, world.theta, world.dead))


def test_rows_without_results_get_all_that_shares_a_term() -> None:
    world = draw_world(5)
    theta = np.full(world.rows.total, -1, np.int32)
    found = find_relevant(world.block, world.rows, build_groups(world.rows, theta), theta)
    pairs = set(zip(found.object.tolist(), found.row.tolist(), strict=True))
    assert len(pairs) == found.object.size
    for o in range(world.block.lon.size):
        terms = world.block.terms[world.block.term_offsets[o] : world.block.term_offsets[o + 1]]
        for r in range(world.rows.total):
            _, at = take_slices(world.rows.literal_offsets, np.array([r]))
            shares = np.isin(world.rows.literal_term[at], terms).any()
            shares &= world.rows.expires_us[r] > world.block.now_us[o]
            assert ((o, r) in pairs) == shares


def test_counters_add_up() -> None:
    """Every posting that a pair of object and term leads to is skipped by something or scored."""
    world = draw_world(7, 4_000, 60)
    world = world._replace(theta=np.maximum(world.theta, 600_000_000))
    index = build_groups(world.rows, world.theta, leaf_rows=100, dropping=False)
    counted = find_relevant(
        world.block,
        world.rows,
        index,
        world.theta,
        world.dead,
        ALL_PRUNINGS | COUNT_POSTINGS,
    ).counters
    c = dict(zip(COUNTER_NAMES, counted.tolist(), strict=True))
    nothing = find_relevant(world.block, world.rows, index, world.theta, world.dead, 0).counters
    every = dict(zip(COUNTER_NAMES, nothing.tolist(), strict=True))["looked"]
    assert c["in_cells"] + c["in_groups"] + c["cut"] + c["looked"] == every
    one_by_one = c["by_prefix"] + c["by_inner"] + c["by_unseen"] + c["by_hints"]
    assert one_by_one + c["raised"] + c["verified"] == c["looked"]
    skipping = ("cells_skipped", "groups_skipped", "cut", "by_prefix", "by_inner", "by_unseen")
    assert [name for name in (*skipping, "by_hints") if c[name] == 0] == []


def test_the_index_is_kept_in_a_file(tmp_path: Path) -> None:
    world = draw_world(9)
    index = build_groups(world.rows, world.theta)
    write_arrays(tmp_path / "groups", index._asdict())
    kept = GroupIndex(**open_arrays(tmp_path / "groups").arrays)
    wanted = scan_relevant(world.block, world.rows, world.theta, world.dead)
    for same in (kept, pickle.loads(pickle.dumps(index))):
        assert_same(find_relevant(world.block, world.rows, same, world.theta, world.dead), wanted)
