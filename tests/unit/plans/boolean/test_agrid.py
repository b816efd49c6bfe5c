"""Plan `agrid`: Tornado's fine grid, its cost, and the cuts of its partitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.plans.boolean.space_methods import cut_partitions, find_cut, plan_agrid
from placewire.plans.boolean.subset import halve_box, take_box, whole_sample
from placewire.plans.cost.tornado import (
    FineGrid,
    TornadoCost,
    fit_grid,
    make_grid,
    sum_box,
    sum_prefixes,
    sum_sides,
)
from placewire.plans.leaves import BY_WORKER, check_leaves
from placewire.plans.route.live_terms import make_leaf_map
from placewire.plans.sample.sample import ANY, SIDE, Sample
from profiles import examples

Objects = list[tuple[int, int, list[int]]]
Subscriptions = list[tuple[tuple[int, int, int, int], list[int]]]
TERMS = 6
LAST = SIDE - 1


def sample_of(objects: Objects, subscriptions: Subscriptions) -> Sample:
    """A sample of (column, row, terms) and (cell range, posts)."""
    terms = [t for o in objects for t in o[2]]
    return Sample(
        object_column=np.array([o[0] for o in objects], np.int32),
        object_row=np.array([o[1] for o in objects], np.int32),
        term_offsets=np.cumsum([0, *(len(o[2]) for o in objects)], dtype=np.int64),
        terms=np.array(terms, np.int32),
        cell=np.array([s[0] for s in subscriptions], np.int32).reshape(-1, 4),
        post_offsets=np.cumsum([0, *(len(s[1]) for s in subscriptions)], dtype=np.int64),
        posts=np.array([p for s in subscriptions for p in s[1]], np.int32),
        lexicon=np.arange(TERMS, dtype=np.uint64),
        frequency=np.bincount(np.array(terms, np.int64), minlength=TERMS),
    )


def scattered(objects: int, subscriptions: int, seed: int = 1) -> Sample:
    """Objects and small subscriptions in two towns and in between."""
    rng = np.random.default_rng(seed)

    def place() -> tuple[int, int]:
        centre = [(1000, 5000), (1900, 4400)][rng.integers(2)]
        x, y = rng.normal(centre, rng.choice([20, 20, 200])).astype(int).tolist()
        return x, y

    made: Subscriptions = []
    for _ in range(subscriptions):
        x, y = place()
        w, h = rng.integers(0, 12, 2).tolist()
        made.append(((x, y, x + w, y + h), rng.choice(TERMS, rng.integers(1, 4), False).tolist()))
    return sample_of(
        [(*place(), rng.choice(TERMS, rng.integers(0, 5), False).tolist()) for _ in range(objects)],
        made,
    )


ODD_SAMPLES = {
    "nothing": sample_of([], []),
    "no objects": sample_of([], [((5, 5, 9, 9), [1]), ((700, 5, 709, 9), [ANY])]),
    "no objects, over the antimeridian": sample_of([], [((8000, 5, 9, 9), [1])]),
    "no subscriptions": sample_of([(3, 3, [1]), (500, 90, [])], []),
    "one cell": sample_of([(77, 88, [1, 2])] * 50, [((70, 80, 90, 90), [1])] * 20),
    "one column": sample_of([(77, k, [1]) for k in range(40)], [((0, 0, 99, 20), [1])] * 20),
    "corners": sample_of([(0, 0, [1]), (LAST, LAST, [1])], [((LAST, 0, 0, LAST), [1])]),
    "over the antimeridian": sample_of(
        [(k % 7, k, [k % 3]) for k in range(90)], [((8190, k, 3, k + 9), [1]) for k in range(80)]
    ),
    "world": sample_of([(k * 80, k * 9, [0]) for k in range(100)], [((0, 0, LAST, LAST), [0])] * 9),
    "no term": sample_of(
        [(k, k, []) for k in range(100)], [((k, k, k, k), [ANY]) for k in range(99)]
    ),
    "never met": sample_of([(k, k, [0]) for k in range(100)], [((0, 0, 200, 200), [1])]),
    "no posts": sample_of([(k, k, [0]) for k in range(100)], [((0, 0, 200, 200), [])]),
    "towns": scattered(400, 300),
}


@pytest.mark.parametrize("workers", [1, 2, 7, 32, 300])
@pytest.mark.parametrize("name", ODD_SAMPLES)
def test_plans_of_odd_samples_tile_the_world(name: str, workers: int) -> None:
    sample = ODD_SAMPLES[name]
    leaves = plan_agrid(sample, workers)
    check_leaves(leaves)
    assert (leaves.name, leaves.workers, leaves.summary) == ("agrid", workers, BY_WORKER)
    grid = TornadoCost().grid(sample)
    assert leaves.total == min(workers, grid.columns * grid.rows)
    assert leaves.part_worker.tolist() == list(range(leaves.total))
    # Area and count alone would allow overlaps: every object has one leaf, the one that holds it.
    at = make_leaf_map(leaves).leaves_of_points(sample.object_column, sample.object_row)
    box = leaves.box[at]
    assert (box[:, 0] <= sample.object_column).all()
    assert (box[:, 2] > sample.object_column).all()
    assert (box[:, 1] <= sample.object_row).all()
    assert (box[:, 3] > sample.object_row).all()


def test_the_same_sample_makes_the_same_plan() -> None:
    one, two = plan_agrid(scattered(300, 200), 9), plan_agrid(scattered(300, 200), 9)
    assert one.box.tolist() == two.box.tolist()


def test_partitions_of_towns_are_balanced() -> None:
    """No leaf of four has more than a cut allows, and none is idle."""
    sample, cost = scattered(2000, 500), TornadoCost()
    leaves = plan_agrid(sample, 4)
    costs = [
        cost.cost(sample, p.objects, p.subscriptions)
        for p in (take_box(sample, whole_sample(sample), tuple(b)) for b in leaves.box.tolist())
    ]
    assert max(costs) < 0.4 * sum(costs)
    assert min(costs) > 0


@pytest.mark.parametrize("name", ["world", "over the antimeridian", "no objects", "towns"])
def test_ranges_find_the_leaves_of_a_plan(name: str) -> None:
    leaves = plan_agrid(ODD_SAMPLES[name], 40)
    rng = np.random.default_rng(3)
    lines = np.unique(leaves.box).tolist()
    ends = np.unique([0, LAST, *(x + k for x in lines for k in (-1, 0) if 0 <= x + k < SIDE)])
    cells = rng.choice(ends, (3000, 4)).astype(np.int32)
    cells[:, 1::2].sort(axis=1)
    west, south, east, north = (cells[:, k, None] for k in range(4))
    begins, finishes = west < leaves.box[:, 2], east >= leaves.box[:, 0]
    overlap = np.where(west <= east, begins & finishes, begins | finishes)
    overlap &= (south < leaves.box[:, 3]) & (north >= leaves.box[:, 1])
    offsets, leaf, steps = make_leaf_map(leaves).search(cells)
    found = np.zeros_like(overlap)
    found[np.repeat(np.arange(3000), np.diff(offsets)), leaf] = True
    assert (found == overlap).all()
    assert leaf.size == overlap.sum()
    assert steps <= (1 + (west > east)).sum() + 4 * leaf.size


# The fine grid


def check_grid(grid: FineGrid) -> None:
    for line, of in ((grid.column_line, grid.column_of), (grid.row_line, grid.row_of)):
        assert (line[0], line[-1]) == (0, SIDE)
        assert (np.diff(line) > 0).all()
        cells = np.arange(SIDE)
        assert ((line[of] <= cells) & (cells < line[of + 1])).all()


@pytest.mark.parametrize("name", ODD_SAMPLES)
def test_fine_grids_tile_the_world(name: str) -> None:
    check_grid(fit_grid(ODD_SAMPLES[name], 64, 1024))


def test_fine_cells_are_as_large_as_the_mean_subscription() -> None:
    objects: Objects = [(1000, 2000, []), (1999, 3999, [])]
    subscriptions: Subscriptions = [((5, 5, 10, 13), [0]), ((8189, 5, 2, 17), [0])]
    grid = fit_grid(sample_of(objects, subscriptions), 64, 1024)
    assert (grid.columns, grid.rows) == (200, 200)  # 1000 by 5 and 2000 by 10
    assert set(np.diff(grid.column_line)[1:-1].tolist()) == {5}
    assert set(np.diff(grid.row_line)[1:-1].tolist()) == {10}
    assert grid.column_line[[1, -2]].tolist() == [1005, 1995]


def test_fine_grids_are_clipped() -> None:
    objects: Objects = [(0, 0, []), (LAST, 39, [])]
    wide = fit_grid(sample_of(objects, [((0, 0, LAST, LAST), [0])]), 64, 1024)
    assert (wide.columns, wide.rows) == (64, 40)
    small = fit_grid(sample_of(objects, [((4, 4, 4, 4), [0])]), 64, 1024)
    assert (small.columns, small.rows) == (1024, 40)


def test_ranges_in_fine_cells() -> None:
    grid = make_grid(np.array([0, 100, 200, SIDE]), np.array([0, 10, SIDE]))
    cells = np.array([[0, 0, 99, 9], [100, 9, 250, 10], [199, 0, 100, 0], [300, 0, 5, 3]], np.int32)
    # Round the world from one fine column back to it is every column.
    assert grid.ranges(cells).tolist() == [[0, 0, 0, 0], [1, 0, 2, 1], [0, 0, 2, 0], [2, 0, 0, 0]]


# The cost


def met_by_force(sample: Sample, grid: FineGrid) -> np.ndarray:
    """The cost of each fine cell, object by object and subscription by subscription."""
    cells = np.zeros((grid.columns, grid.rows), np.int64)
    for o in range(sample.objects):
        x, y = sample.object_column[o], sample.object_row[o]
        i, j = grid.column_of[x], grid.row_of[y]
        west, east = grid.column_line[i], grid.column_line[i + 1] - 1
        south, north = grid.row_line[j], grid.row_line[j + 1] - 1
        terms = sample.terms[sample.term_offsets[o] : sample.term_offsets[o + 1]].tolist()
        for s in range(sample.subscriptions):
            c = sample.cell[s]
            after, before = c[0] <= east, c[2] >= west
            across = (after and before) if c[0] <= c[2] else (after or before)
            if across and c[1] <= north and c[3] >= south:
                posts = sample.posts[sample.post_offsets[s] : sample.post_offsets[s + 1]]
                cells[i, j] += sum(p in terms or p == ANY for p in posts.tolist())
    return cells


places = st.integers(0, 30) | st.integers(0, LAST) | st.integers(LAST - 9, LAST)
term_sets = st.lists(st.integers(0, TERMS - 1), max_size=4, unique=True)
post_sets = st.just([ANY]) | term_sets


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    objects = draw(st.lists(st.tuples(places, places, term_sets), max_size=12))
    ranges = st.tuples(places, places, places, places).map(
        lambda c: (c[0], min(c[1], c[3]), c[2], max(c[1], c[3]))
    )
    return sample_of(objects, draw(st.lists(st.tuples(ranges, post_sets), max_size=12)))


@given(samples(), st.integers(1, 9))
@settings(max_examples=examples(150))
def test_the_cost_counts_the_postings_of_the_objects_cell(sample: Sample, most: int) -> None:
    cost = TornadoCost(1, most)
    grid = cost.grid(sample)
    check_grid(grid)
    wanted = met_by_force(sample, grid)
    assert cost.of_cells(sample, grid).tolist() == wanted.tolist()
    whole = whole_sample(sample)
    assert cost.cost(sample, whole.objects, whole.subscriptions) == wanted.sum()


@given(samples(), st.integers(2, 9), st.integers(1, 6))
@settings(max_examples=examples(60))
def test_a_leaf_costs_what_its_cells_cost(sample: Sample, most: int, workers: int) -> None:
    """The cost of a worker's objects and subscriptions is the sum over its fine cells."""
    cost = TornadoCost(1, most)
    grid = cost.grid(sample)
    sums = sum_prefixes(cost.of_cells(sample, grid))
    for fine in cut_partitions(sums, workers):
        subset = take_box(sample, whole_sample(sample), grid.in_plan_cells(fine))
        charged = cost.cost(sample, subset.objects, subset.subscriptions)
        assert charged == sum_box(sums, fine)


def test_any_and_all_and_no_term() -> None:
    """An `any` counts for each keyword found, an `all` for its one post, no term always."""
    here = (5, 5, 5, 5)
    objects: Objects = [(5, 5, [0, 1, 2]), (5, 5, []), (9, 9, [0, 1, 2])]
    sample = sample_of(objects, [(here, [0, 1, 4]), (here, [2]), (here, [3]), (here, [ANY])])
    cost = TornadoCost()
    met = cost.of_objects(sample, cost.grid(sample), np.arange(3), np.arange(4))
    assert met.tolist() == [2 + 1 + 0 + 1, 1, 0]


# Cuts


grids = st.integers(1, 6).flatmap(
    lambda columns: st.integers(1, 6).flatmap(
        lambda rows: st.lists(
            st.sampled_from([0, 0, 1, 2, 5, 40]), min_size=columns * rows, max_size=columns * rows
        ).map(lambda flat: np.array(flat, np.int64).reshape(columns, rows))
    )
)


@given(grids, st.data())
@settings(max_examples=examples(200))
def test_a_cut_makes_the_larger_side_least(cells: np.ndarray, data: st.DataObject) -> None:
    sums = sum_prefixes(cells)
    west = data.draw(st.integers(0, cells.shape[0] - 1))
    south = data.draw(st.integers(0, cells.shape[1] - 1))
    east = data.draw(st.integers(west + 1, cells.shape[0]))
    north = data.draw(st.integers(south + 1, cells.shape[1]))

    def cost(box: tuple[int, int, int, int]) -> int:
        return int(cells[box[0] : box[2], box[1] : box[3]].sum())

    box = (west, south, east, north)
    cuts = [(0, at) for at in range(west + 1, east)] + [(1, at) for at in range(south + 1, north)]
    larger = [max(map(cost, halve_box(box, *cut))) for cut in cuts]
    assert sum_box(sums, box) == cost(box)
    low = [cost(halve_box(box, *cut)[0]) for cut in cuts]
    assert [*sum_sides(sums, box, 0), *sum_sides(sums, box, 1)] == low
    found = find_cut(sums, box)
    if found is None:
        assert not cuts
        return
    assert found.worst == min(larger)
    assert max(map(cost, halve_box(box, found.axis, found.at))) == min(larger)


@given(grids, st.integers(1, 40))
@settings(max_examples=examples(150))
def test_partitions_cover_every_cell_once(cells: np.ndarray, partitions: int) -> None:
    boxes = cut_partitions(sum_prefixes(cells), partitions)
    covered = np.zeros_like(cells)
    for west, south, east, north in boxes:
        assert west < east
        assert south < north
        covered[west:east, south:north] += 1
    assert (covered == 1).all()
    assert len(boxes) == min(partitions, cells.size)


@given(grids, st.integers(1, 12))
@settings(max_examples=examples(150))
def test_one_more_partition_is_a_cut_of_the_costliest(cells: np.ndarray, partitions: int) -> None:
    """Unless no cut makes the costliest lighter: then of the costliest that a cut makes lighter."""
    sums = sum_prefixes(cells)
    before, after = (set(cut_partitions(sums, n)) for n in (partitions, partitions + 1))
    if len(before) < partitions or before == after:
        assert len(before) == min(partitions, cells.size)
        return
    (parent,), halves = before - after, after - before
    cut = find_cut(sums, parent)
    assert cut is not None
    assert halves == set(halve_box(parent, cut.axis, cut.at))
    for other in before:
        other_cut = find_cut(sums, other)
        if other_cut is not None and other_cut.worst < sum_box(sums, other):
            assert cut.worst < sum_box(sums, parent)
            assert sum_box(sums, other) <= sum_box(sums, parent)


def test_equal_costs_are_cut_in_the_middle() -> None:
    sums = sum_prefixes(np.zeros((8, 4), np.int64))
    assert cut_partitions(sums, 2) == [(0, 0, 4, 4), (4, 0, 8, 4)]


def test_a_hot_cell_keeps_no_workers_from_the_rest() -> None:
    """One cell has most of the cost; cutting what lies around it away would waste the workers."""
    cells = np.ones((8, 8), np.int64)
    cells[1, 1] = 1000
    costs = sorted(sum_box(sum_prefixes(cells), b) for b in cut_partitions(sum_prefixes(cells), 12))
    assert costs[-1] == 1000
    assert costs[-2] <= 12
