"""Routing of ranges: by neighbours, by scanning, by a tree: all equal to looking at every leaf."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.papers.tornado.routes import make_scan_route, make_tree_route
from placewire.plans.cost.tornado import make_grid
from placewire.plans.leaves import NO_SPLIT, NOTHING, Leaves, check_leaves, make_leaves
from placewire.plans.route.live_terms import make_leaf_map
from placewire.plans.sample.sample import SIDE
from profiles import examples
from routes import single_leaf

WORLD_RANGE = (0, 0, SIDE - 1, SIDE - 1)


def leaves_of_boxes(boxes: list[tuple[int, int, int, int]]) -> Leaves:
    leaves = make_leaves(
        "tiling", len(boxes), NOTHING, boxes, [NO_SPLIT] * len(boxes), list(range(len(boxes)))
    )
    check_leaves(leaves)
    return leaves


def uniform_lines(side: int) -> np.ndarray:
    return np.arange(side + 1, dtype=np.int32) * (SIDE // side)


def routes_of(leaves: Leaves) -> dict[str, Any]:
    lines = uniform_lines(16)
    return {
        "dominant": make_leaf_map(leaves),
        "scan": make_scan_route(leaves, make_grid(lines, lines)),
        "tree": make_tree_route(leaves, 3),
    }


def overlap_by_force(box: np.ndarray, cells: np.ndarray) -> list[list[int]]:
    """Every range against every leaf, without a word about cells or neighbours."""
    west, south, east, north = (cells[:, k, None] for k in range(4))
    rows = (south < box[:, 3]) & (north >= box[:, 1])
    begins, ends = west < box[:, 2], east >= box[:, 0]
    columns = np.where(west <= east, begins & ends, begins | ends)
    return [np.flatnonzero(row).tolist() for row in rows & columns]


def listed(offsets: np.ndarray, leaf: np.ndarray) -> list[list[int]]:
    assert offsets.dtype == np.int64
    assert leaf.dtype == np.int32
    return [sorted(leaf[a:b].tolist()) for a, b in pairwise(offsets.tolist())]


@st.composite
def tilings(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """The world cut through boxes, or around the middle of one where no line goes through."""
    boxes = [(0, 0, SIDE, SIDE)]
    share = st.integers(1, 999)
    for _ in range(draw(st.integers(0, 14))):
        west, south, east, north = boxes.pop(draw(st.integers(0, len(boxes) - 1)))
        how = draw(st.sampled_from(["column", "row", "wheel"]))
        x = west + (east - west) * draw(share) // 1000
        y = south + (north - south) * draw(share) // 1000
        x2, y2 = (x + east + 1) // 2, (y + north + 1) // 2
        if how == "column" and west < x < east:
            boxes += [(west, south, x, north), (x, south, east, north)]
        elif how == "row" and south < y < north:
            boxes += [(west, south, east, y), (west, y, east, north)]
        elif how == "wheel" and west < x < x2 < east and south < y < y2 < north:
            boxes += [
                (west, south, x2, y),
                (x2, south, east, y2),
                (x, y2, east, north),
                (west, y, x, north),
                (x, y, x2, y2),
            ]
        else:
            boxes.append((west, south, east, north))
    return boxes


@st.composite
def tilings_and_ranges(draw: st.DrawFn) -> tuple[Leaves, np.ndarray]:
    """A tiling and ranges, many of whose ends lie at the lines of the tiling."""
    boxes = draw(tilings())
    lines = sorted({edge + k for box in boxes for edge in box for k in (-1, 0) if edge + k >= 0})
    places = st.sampled_from([p for p in lines if p < SIDE]) | st.integers(0, SIDE - 1)
    ranges = [WORLD_RANGE, (7, 7, 7, 7), (SIDE - 1, 0, 0, SIDE - 1), (100, 5, 99, 5)]
    for _ in range(draw(st.integers(0, 8))):
        south, north = sorted([draw(places), draw(places)])
        ranges.append((draw(places), south, draw(places), north))
    return leaves_of_boxes(boxes), np.array(ranges, np.int32)


@given(tilings_and_ranges())
@settings(max_examples=examples(300))
def test_all_routes_find_the_leaves_of_any_tiling(case: tuple[Leaves, np.ndarray]) -> None:
    leaves, cells = case
    wanted = overlap_by_force(leaves.box, cells)
    for name, route in routes_of(leaves).items():
        assert listed(*route.leaves_of_ranges(cells)) == wanted, name


@given(tilings_and_ranges())
def test_a_step_or_two_a_leaf(case: tuple[Leaves, np.ndarray]) -> None:
    leaves, cells = case
    route = make_leaf_map(leaves)
    for cell in cells:
        _, leaf, steps = route.search(cell[None])
        sides = 1 if cell[0] <= cell[2] else 2
        # A leaf that reaches to both sides of a range over the antimeridian is walked twice.
        assert leaf.size <= steps <= sides * (1 + 2 * leaf.size)


@pytest.mark.parametrize("side", [16, 64])
def test_steps_do_not_grow_with_the_grid(side: int) -> None:
    """Four leaves with thousands of others beside them: the walk sees only the four."""
    half, step = SIDE // 2, SIDE // 2 // side
    boxes = [
        (half + i * step, j * step, half + (i + 1) * step, (j + 1) * step)
        for i in range(side)
        for j in range(2 * side)
    ]
    quarter = half // 2
    boxes += [
        (k * quarter, h * half, (k + 1) * quarter, (h + 1) * half) for k in (0, 1) for h in (0, 1)
    ]
    leaves = leaves_of_boxes(boxes)
    cells = np.array([[10, 10, half - 1, SIDE - 10]], np.int32)
    _, leaf, steps = make_leaf_map(leaves).search(cells)
    assert sorted(leaf.tolist()) == list(range(len(boxes) - 4, len(boxes)))
    assert steps <= 9
    lines = uniform_lines(2 * side)
    _, scanned, scan_steps = make_scan_route(leaves, make_grid(lines, lines)).search(cells)
    assert sorted(scanned.tolist()) == sorted(leaf.tolist())
    assert scan_steps == 2 * side * side


def test_points_have_the_leaf_that_contains_them() -> None:
    boxes = [(0, 0, 5000, SIDE), (5000, 0, SIDE, 77), (5000, 77, SIDE, SIDE)]
    route = make_leaf_map(leaves_of_boxes(boxes))
    columns = np.array([0, 4999, 5000, 5000, SIDE - 1], np.int32)
    rows = np.array([0, SIDE - 1, 76, 77, SIDE - 1], np.int32)
    assert route.leaves_of_points(columns, rows).tolist() == [0, 0, 1, 2, 2]


def test_a_range_round_the_world_within_one_column_of_the_map() -> None:
    """Both ends in one leaf, which is found once, and so is everything on the way round."""
    boxes = [(0, 0, 100, SIDE), (100, 0, 300, SIDE), (300, 0, SIDE, SIDE)]
    for name, route in routes_of(leaves_of_boxes(boxes)).items():
        cells = np.array([[200, 3, 199, 3], [250, 3, 150, 3], [99, 0, 98, 0]], np.int32)
        assert listed(*route.leaves_of_ranges(cells)) == [[0, 1, 2]] * 3, name


@pytest.mark.parametrize("name", ["dominant", "scan", "tree"])
def test_no_ranges_one_leaf_and_pickles(name: str) -> None:
    route = routes_of(single_leaf())[name]
    offsets, leaf = route.leaves_of_ranges(np.empty((0, 4), np.int32))
    assert (offsets.tolist(), leaf.size) == ([0], 0)
    again = pickle.loads(pickle.dumps(route))
    cells = np.array([WORLD_RANGE, (5, 5, 5, 5), (9, 0, 3, 4)], np.int32)
    assert listed(*again.leaves_of_ranges(cells)) == [[0], [0], [0]]


def test_found_leaves_outgrow_the_first_guess() -> None:
    lines = uniform_lines(32).tolist()
    boxes = [(x, y, x + SIDE // 32, y + SIDE // 32) for x in lines[:-1] for y in lines[:-1]]
    cells = np.array([WORLD_RANGE] * 3, np.int32)
    for name, route in routes_of(leaves_of_boxes(boxes)).items():
        assert listed(*route.leaves_of_ranges(cells)) == [list(range(1024))] * 3, name
