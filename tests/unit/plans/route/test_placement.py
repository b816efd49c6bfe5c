"""Placement and reach: every object is in one part, and queries find all parts that may have it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.papers.sstd.cluster import nearest_part, parts_overlapping
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL, codes_to_columns_rows, points_to_codes
from placewire.model.subscriptions import take_slices
from placewire.plans.boolean.methods import METHODS
from placewire.plans.boolean.space_methods import plan_stripes
from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import NO_SPLIT, NOTHING, Leaves, TextSplit, make_leaves
from placewire.plans.route.leaf_route import make_tables, place_objects
from placewire.plans.sample.sample import PLAN_LEVEL, SIDE, make_sample
from profiles import examples
from routes import city, objects_of, placed, places, single_leaf, tilings

HALF = SIDE // 2
NO_TERMS = np.empty(0, np.uint64)
A, B, C, D = (np.uint64(part << 32 | 7) for part in range(4))  # hashed, each goes to its part of 4


def leaf_of_code(leaves: Leaves, code: int) -> int:
    """The only leaf whose box contains a code's cell."""
    columns, rows = codes_to_columns_rows(np.array([code], np.uint32))
    column, row = (int(at[0]) >> (MAX_LEVEL - PLAN_LEVEL) for at in (columns, rows))
    (leaf,) = (
        at
        for at, (west, south, east, north) in enumerate(leaves.box.tolist())
        if west <= column < east and south <= row < north
    )
    return leaf


def place_plainly(leaves: Leaves, objects: Objects) -> list[int]:
    """The rule as it is told."""
    found = []
    for at, code in enumerate(objects.codes.tolist()):
        leaf = leaf_of_code(leaves, code)
        first, end = leaves.part_offsets[leaf : leaf + 2].tolist()
        listed = slice(*leaves.term_offsets[leaf : leaf + 2].tolist())
        part_of = dict(
            zip(leaves.terms[listed].tolist(), leaves.term_part[listed].tolist(), strict=True)
        )
        terms = objects.terms[objects.term_offsets[at] : objects.term_offsets[at + 1]].tolist()
        votes = Counter(part_of[term] for term in terms if term in part_of)
        votes = votes or Counter((term >> 32) % (end - first) for term in terms)
        best = min(votes, key=lambda part: (-votes[part], part)) if votes else 0
        found.append(first + best)
    return found


def divided(parts: int = 4, **listed: int) -> Leaves:
    """A west that is divided by text and an east that is not."""
    names = {"A": A, "B": B, "C": C, "D": D}
    terms = np.array([names[name] for name in listed], np.uint64)
    split = TextSplit(parts, terms, np.array(list(listed.values()), np.int32))
    boxes = [(0, 0, HALF, SIDE), (HALF, 0, SIDE, SIDE)]
    return make_leaves("any", 1, NOTHING, boxes, [split, NO_SPLIT], [0] * (parts + 1))


def place_one(leaves: Leaves, terms: list[np.uint64], lon: float = -100.0) -> int:
    codes = points_to_codes(np.array([lon]), np.array([10.0]))
    offsets = np.array([0, len(terms)], np.int64)
    return int(place_objects(make_tables(leaves), codes, offsets, np.array(terms, np.uint64))[0])


# Placement


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_every_plan_places_by_the_rule(name: str, workers: int) -> None:
    (objects, _, _), rows = city(200, 150)
    leaves = METHODS[name](make_sample(*objects, rows), workers, LoadModel())
    parts = place_objects(make_tables(leaves), *objects)
    assert parts.dtype == np.int32
    assert parts.tolist() == place_plainly(leaves, objects)


@settings(max_examples=examples(60))
@given(tilings(), placed, st.randoms())
def test_any_tiling_any_order(leaves: Leaves, some: list, random) -> None:
    objects, _, _ = objects_of(some)
    parts = place_objects(make_tables(leaves), *objects)
    assert parts.tolist() == place_plainly(leaves, objects)
    # What an object is placed by is itself: not its neighbours, nor their order, nor the memory.
    order = np.array(random.sample(range(parts.size), parts.size))
    offsets, at = take_slices(objects.term_offsets, order)
    shuffled = map(read_only, (objects.codes[order], offsets, objects.terms[at]))
    assert place_objects(make_tables(leaves), *shuffled).tolist() == parts[order].tolist()
    # And it is in the leaf that contains it.
    leaf = np.searchsorted(leaves.part_offsets, parts, side="right") - 1
    assert leaf.tolist() == [leaf_of_code(leaves, code) for code in objects.codes.tolist()]


def test_no_objects() -> None:
    nothing = np.empty(0, np.uint32), np.zeros(1, np.int64), np.empty(0, np.uint64)
    assert place_objects(make_tables(single_leaf()), *nothing).size == 0
    assert place_objects(make_tables(divided(A=1)), *nothing).size == 0


def test_the_part_with_most_terms_wins() -> None:
    leaves = divided(A=1, B=2, C=2, D=1)
    assert place_one(leaves, [A]) == 1
    assert place_one(leaves, [A, B, C]) == 2
    assert place_one(leaves, [B, C, A]) == 2
    assert place_one(leaves, [A, B]) == 1, "the first of equal ones"
    assert place_one(leaves, [C, B, D, A]) == 1
    assert place_one(leaves, [A, B, C], lon=100.0) == 4, "the east has one part"


def test_terms_that_nobody_asked_for_have_no_say_beside_others() -> None:
    leaves = divided(A=3)
    assert place_one(leaves, [A, B, B + np.uint64(1), C]) == 3
    assert place_one(leaves, [D, C, C + np.uint64(1)]) == 2, "by their hashes, most of them"
    assert place_one(leaves, [C, B]) == 1
    assert place_one(leaves, []) == 0


# Reach


def test_a_box_reaches_all_parts_of_the_leaves_it_touches() -> None:
    leaves = divided(A=3)
    assert parts_overlapping(leaves, (-100.0, 0.0, -90.0, 10.0)).tolist() == [0, 1, 2, 3]
    assert parts_overlapping(leaves, (90.0, 0.0, 100.0, 10.0)).tolist() == [4]
    assert parts_overlapping(leaves, (-180.0, -90.0, 180.0, 90.0)).tolist() == [0, 1, 2, 3, 4]
    assert parts_overlapping(leaves, (-100.0, 0.0, 0.0, 10.0)).size == 5, "closed: 0 is in the east"
    assert parts_overlapping(leaves, (5.0, 5.0, 5.0, 5.0)).tolist() == [4], "a point"


def test_across_the_antimeridian() -> None:
    stripes = make_leaves(
        "any",
        1,
        NOTHING,
        [(at * SIDE // 4, 0, (at + 1) * SIDE // 4, SIDE) for at in range(4)],
        [NO_SPLIT] * 4,
        [0] * 4,
    )
    assert parts_overlapping(stripes, (170.0, 0.0, -170.0, 10.0)).tolist() == [0, 3]
    assert parts_overlapping(stripes, (80.0, 0.0, -100.0, 10.0)).tolist() == [0, 2, 3]
    assert parts_overlapping(stripes, (180.0, 0.0, -180.0, 10.0)).tolist() == [0, 3]
    assert parts_overlapping(stripes, (20.0, 0.0, 10.0, 10.0)).tolist() == [0, 1, 2, 3]
    # All the way round, from a cell to that same cell.
    assert parts_overlapping(stripes, (10.001, 0.0, 10.0, 10.0)).tolist() == [0, 1, 2, 3]


@settings(max_examples=examples(60))
@given(tilings(), placed, places, places)
def test_a_query_reaches_every_object_in_its_box(
    leaves: Leaves, some: list, one: tuple[float, float], other: tuple[float, float]
) -> None:
    objects, lon, lat = objects_of(some)
    parts = place_objects(make_tables(leaves), *objects)
    west, east = one[0], other[0]
    south, north = sorted((one[1], other[1]))
    reached = parts_overlapping(leaves, (west, south, east, north))
    assert reached.dtype == np.int32
    assert (np.diff(reached) > 0).all()
    between = (lon >= west) & (lon <= east) if west <= east else (lon >= west) | (lon <= east)
    inside = between & (lat >= south) & (lat <= north)
    assert set(parts[inside].tolist()) <= set(reached.tolist())


# The first phase of a nearest query


def test_the_nearest_part_is_where_the_point_is() -> None:
    grid = plan_stripes(3)
    for lon, lat in [(0.0, 0.0), (-180.0, -90.0), (180.0, 90.0), (13.4, 52.5)]:
        part = nearest_part(make_tables(grid), lon, lat, NO_TERMS)
        assert part in parts_overlapping(grid, (lon, lat, lon, lat))
        code = points_to_codes(np.array([lon]), np.array([lat]))[0]
        assert part == leaf_of_code(grid, int(code))


def test_of_a_divided_leaf_the_part_of_the_keywords_is_nearest() -> None:
    leaves = make_tables(divided(A=3, B=2, C=2))
    assert nearest_part(leaves, -100.0, 10.0, NO_TERMS) == 0
    assert nearest_part(leaves, -100.0, 10.0, np.array([A])) == 3
    assert nearest_part(leaves, -100.0, 10.0, np.array([A, B, C])) == 2
    assert nearest_part(leaves, 100.0, 10.0, np.array([A])) == 4
