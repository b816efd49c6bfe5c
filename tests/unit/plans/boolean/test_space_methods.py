"""Plans by place alone: they tile the world, follow their rule, and are level on smooth data."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from odd_samples import LAST, ODD_SAMPLES, graham, sample_of
from placewire.plans.allocation import share_heaviest_first
from placewire.plans.boolean.space_methods import (
    GRID_SIDE,
    TILES_PER_WORKER,
    best_cut,
    count_grid,
    edges_of_shares,
    loads_of_tiles,
    plan_grid,
    plan_kdtree,
    plan_rtree,
    plan_stripes,
)
from placewire.plans.boolean.subset import Box, halve_box, loads_of_halves, take_box, whole_sample
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import NOTHING, Leaves, check_leaves
from placewire.plans.sample.sample import SIDE, Sample
from profiles import examples

Planner = Callable[[Sample, int, LoadModel], Leaves]
COST = LoadModel()
# One in which every pair of an object and a subscription counts.
CHECKS = LoadModel(per_check=50.0)
PLANNERS: dict[str, Planner] = {"grid": plan_grid, "kdtree": plan_kdtree, "rtree": plan_rtree}
few = settings(max_examples=examples(40))


def smooth_sample(objects: int = 20_000, subscriptions: int = 10_000) -> Sample:
    """Objects and small subscriptions all over two broad hills."""
    rng = np.random.default_rng(5)

    def places(count: int) -> NDArray[np.int32]:
        centres = np.array([(3000, 5000), (5000, 3500)])[rng.integers(2, size=count)]
        return np.clip(rng.normal(centres, 900), 0, SIDE - 20).astype(np.int32)

    corners = places(subscriptions)
    spread = places(objects)
    return Sample(
        object_column=spread[:, 0],
        object_row=spread[:, 1],
        term_offsets=np.zeros(objects + 1, np.int64),
        terms=np.empty(0, np.int32),
        cell=np.hstack([corners, corners + rng.integers(0, 12, (subscriptions, 2))]).astype(
            np.int32
        ),
        post_offsets=np.arange(subscriptions + 1, dtype=np.int64),
        posts=np.zeros(subscriptions, np.int32),
        lexicon=np.ones(1, np.uint64),
        frequency=np.zeros(1, np.int64),
    )


def load_of_box(sample: Sample, box: Box, cost: LoadModel = COST) -> float:
    subset = take_box(sample, whole_sample(sample), box)
    return cost.of_counts(subset.objects.size, subset.subscriptions.size)


def box_of(leaves: Leaves, at: int) -> Box:
    west, south, east, north = leaves.box[at].tolist()
    return west, south, east, north


def loads_of_workers(sample: Sample, leaves: Leaves) -> list[float]:
    """What plans are levelled by: the loads of a worker's leaves, added up."""
    loads = [load_of_box(sample, box_of(leaves, at)) for at in range(leaves.total)]
    return np.bincount(leaves.part_worker, loads, leaves.workers).tolist()


def check_place_plan(leaves: Leaves, name: str, workers: int) -> None:
    """It is a plan, without overlaps, of leaves with one part."""
    check_leaves(leaves)
    assert (leaves.name, leaves.workers, leaves.summary) == (name, workers, NOTHING)
    assert leaves.part_offsets.tolist() == list(range(leaves.total + 1))
    assert leaves.terms.size == 0
    # The area is right; so no leaf may have a corner of another inside it.
    west, south, east, north = leaves.box.T
    for column, row in ((west, south), (east - 1, south), (west, north - 1), (east - 1, north - 1)):
        for at in range(0, leaves.total, 1 + leaves.total // 30):
            c, r = column[at], row[at]
            assert ((west <= c) & (c < east) & (south <= r) & (r < north)).sum() == 1


places = st.sampled_from([0, 1, 127, 128, 4096, LAST - 1, LAST]) | st.integers(0, LAST)
ranges = st.tuples(places, places, places, places).map(
    lambda r: (r[0], min(r[1], r[3]), r[2], max(r[1], r[3]))
)
samples = st.builds(
    sample_of,
    st.lists(st.tuples(places, places, st.just([0])), max_size=12),
    st.lists(st.tuples(ranges, st.just([0])), max_size=12),
)
boxes = st.tuples(places, places, places, places).map(
    lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]) + 1, max(b[1], b[3]) + 1)
)


# All of them


@pytest.mark.parametrize("workers", [1, 7, 150])
@pytest.mark.parametrize("odd", ODD_SAMPLES)
@pytest.mark.parametrize("name", PLANNERS)
def test_plans_of_odd_samples_tile_the_world(name: str, odd: str, workers: int) -> None:
    leaves = PLANNERS[name](ODD_SAMPLES[odd], workers, COST)
    check_place_plan(leaves, name, workers)
    if name == "kdtree":
        assert leaves.part_worker.tolist() == list(range(workers)), "one leaf a worker"


@pytest.mark.parametrize("name", PLANNERS)
@given(sample=samples, workers=st.integers(1, 40))
@settings(max_examples=examples(10))
def test_plans_of_any_sample_tile_the_world(name: str, sample: Sample, workers: int) -> None:
    check_place_plan(PLANNERS[name](sample, workers, CHECKS), name, workers)


@pytest.mark.parametrize("workers", [3, 8, 13])
@pytest.mark.parametrize(("name", "bound"), [("grid", 1.02), ("kdtree", 1.1), ("rtree", 1.1)])
def test_smooth_data_are_levelled(name: str, bound: float, workers: int) -> None:
    sample = smooth_sample()
    loads = loads_of_workers(sample, PLANNERS[name](sample, workers, COST))
    assert len(loads) == workers
    assert max(loads) <= bound * min(loads)


@pytest.mark.parametrize("name", PLANNERS)
def test_the_same_sample_makes_the_same_plan(name: str) -> None:
    one, two = (PLANNERS[name](smooth_sample(2000, 1000), 9, COST) for _ in range(2))
    assert one.box.tolist() == two.box.tolist()
    assert one.part_worker.tolist() == two.part_worker.tolist()


# The grid and the stripes


@given(sample=samples)
@example(sample=sample_of([], [((130, 0, 129, 300), [0])]))  # all round, from a cell to itself
@example(sample=sample_of([], [((300, 0, 129, 300), [0])]))
@few
def test_the_grid_counts_what_its_cells_take(sample: Sample) -> None:
    objects, subscriptions = count_grid(sample)
    whole, width = whole_sample(sample), SIDE // GRID_SIDE
    for column in (0, 1, 2, 3, 31, 32, GRID_SIDE - 1):
        for row in (0, 1, 2, 3, 31, 32, GRID_SIDE - 1):
            box = (column * width, row * width, (column + 1) * width, (row + 1) * width)
            subset = take_box(sample, whole, box)
            assert objects[column, row] == subset.objects.size
            assert subscriptions[column, row] == subset.subscriptions.size
    assert objects.sum() == sample.objects


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_the_grid_is_grouped_by_grahams_rule(workers: int) -> None:
    sample = smooth_sample(3000, 1500)
    leaves, stripes = plan_grid(sample, workers, CHECKS), plan_stripes(workers)
    assert leaves.box.tolist() == stripes.box.tolist()
    loads = [load_of_box(sample, box_of(leaves, at), CHECKS) for at in range(leaves.total)]
    busy = [at for at in range(leaves.total) if loads[at] > 0]
    idle = [at for at in range(leaves.total) if loads[at] == 0]
    assert len(busy) > 50
    assert leaves.part_worker[busy].tolist() == graham([loads[at] for at in busy], workers)
    assert leaves.part_worker[idle].tolist() == stripes.part_worker[idle].tolist()


@given(
    loads=st.lists(st.integers(0, 9), max_size=30), taken=st.lists(st.integers(0, 9), min_size=1)
)
@few
def test_grouping_starts_from_what_is_taken(loads: list[int], taken: list[int]) -> None:
    group = share_heaviest_first(np.array(loads, np.float64), np.array(taken, np.float64))
    carried = list(taken)
    for at in sorted(range(len(loads)), key=lambda at: -loads[at]):
        assert carried[group[at]] == min(carried)
        carried[group[at]] += loads[at]


@pytest.mark.parametrize("workers", [1, 2, 7, 64, 5000])
def test_stripes_are_even_runs_of_the_curve(workers: int) -> None:
    leaves = plan_stripes(workers)
    check_place_plan(leaves, "stripes", workers)
    assert leaves.total == 4096
    assert (np.diff(leaves.part_worker) >= 0).all()
    sizes = np.bincount(leaves.part_worker, minlength=workers)
    assert sizes.max() - sizes.min() <= 1


def test_quarters_of_the_curve_are_quarters_of_the_world() -> None:
    leaves = plan_stripes(4)
    for worker in range(4):
        box = leaves.box[leaves.part_worker == worker]
        width, height = box[:, 2].max() - box[:, 0].min(), box[:, 3].max() - box[:, 1].min()
        assert (width, height) == (SIDE // 2, SIDE // 2)


# The kd-tree


@given(sample=samples, box=boxes, axis=st.integers(0, 1))
@few
def test_loads_beside_cuts_are_those_of_the_halves(sample: Sample, box: Box, axis: int) -> None:
    subset = take_box(sample, whole_sample(sample), box)
    low, high, whole = loads_of_halves(sample, subset, axis, CHECKS)
    assert whole == load_of_box(sample, box, CHECKS)
    length = box[axis + 2] - box[axis]
    assert low.size == high.size == length - 1
    for at in range(1, length, 1 + length // 20):
        halves = halve_box(box, axis, box[axis] + at)
        assert low[at - 1] == load_of_box(sample, halves[0], CHECKS)
        assert high[at - 1] == load_of_box(sample, halves[1], CHECKS)


@given(width=st.integers(1, 6), height=st.integers(1, 6), data=st.data())
@few
def test_a_cut_leaves_each_worker_a_cell(width: int, height: int, data: st.DataObject) -> None:
    workers = data.draw(st.integers(min(2, width * height), width * height))
    if workers < 2:
        return
    sample = sample_of([(3, 3, [0])] * 5, [((0, 0, 4, 4), [0])])
    subset = take_box(sample, whole_sample(sample), (0, 0, width, height))
    cut = min(best_cut(sample, subset, workers, axis, COST) for axis in (0, 1))
    low, high = halve_box(subset.box, cut.axis, cut.at)
    for box, share in ((low, cut.low_workers), (high, workers - cut.low_workers)):
        assert 1 <= share <= (box[2] - box[0]) * (box[3] - box[1])


def test_an_empty_world_is_shared_out_evenly() -> None:
    leaves = plan_kdtree(ODD_SAMPLES["nothing"], 4, COST)
    assert sorted(map(tuple, leaves.box.tolist())) == [
        (0, 0, 4096, 4096),
        (0, 4096, 4096, 8192),
        (4096, 0, 8192, 4096),
        (4096, 4096, 8192, 8192),
    ]


def test_a_cut_avoids_copies_of_subscriptions() -> None:
    """Broad subscriptions, one above another: cut between rows, not through all of them."""
    sample = sample_of(
        [(k * 80, k * 80, [0]) for k in range(100)],
        [((0, k * 80, LAST, k * 80), [0]) for k in range(100)],
    )
    leaves = plan_kdtree(sample, 2, COST)
    assert leaves.box[:, [0, 2]].tolist() == [[0, SIDE], [0, SIDE]]


# The R-tree


@pytest.mark.parametrize("workers", [1, 3, 8, 30])
def test_tiles_hold_equally_many_objects(workers: int) -> None:
    sample = smooth_sample()
    leaves = plan_rtree(sample, workers, COST)
    assert leaves.total == TILES_PER_WORKER * workers > workers
    whole = whole_sample(sample)
    sizes = [take_box(sample, whole, box_of(leaves, at)).objects.size for at in range(leaves.total)]
    assert max(sizes) < 1.2 * min(sizes)


def test_tiles_are_grouped_by_grahams_rule() -> None:
    sample = smooth_sample(3000, 2000)
    leaves = plan_rtree(sample, 5, CHECKS)
    loads = [load_of_box(sample, box_of(leaves, at), CHECKS) for at in range(leaves.total)]
    assert leaves.part_worker.tolist() == graham(loads, 5)


@given(sample=samples, sides=st.tuples(places, places), cuts=st.sets(st.integers(1, LAST)))
@few
def test_loads_of_tiles_are_those_of_their_boxes(
    sample: Sample, sides: tuple[int, int], cuts: set[int]
) -> None:
    west, east = min(sides), max(sides) + 1
    edges = [0, *sorted(cuts), SIDE]
    subset = take_box(sample, whole_sample(sample), (west, 0, east, SIDE))
    loads = loads_of_tiles(sample, subset, edges, CHECKS).tolist()
    tiles = [(west, south, east, north) for south, north in pairwise(edges)]
    assert loads == [load_of_box(sample, tile, CHECKS) for tile in tiles]


@given(
    rows=st.lists(places, max_size=40),
    steps=st.lists(st.integers(1, 3), min_size=1, max_size=50),
)
@few
def test_edges_rise_and_share_out(rows: list[int], steps: list[int]) -> None:
    shares = np.cumsum([0, *steps])
    edges, last = edges_of_shares(np.array(rows, np.int32), shares)
    assert (edges[0], edges[-1], last[-1]) == (0, SIDE, len(steps))
    assert (np.diff(edges) > 0).all()
    assert (np.diff(last) > 0).all()
    inside = np.histogram(rows, [*edges[:-1], SIDE])[0]
    heaviest_cell = max((rows.count(row) for row in rows), default=0)
    allowed = len(rows) * np.diff(shares[last]) / shares[-1] + heaviest_cell
    assert (inside <= allowed).all()


def test_a_crowded_column_gets_the_tiles_of_all_its_shares() -> None:
    sample = sample_of([(77, row * 100, [0]) for row in range(80)], [])
    leaves = plan_rtree(sample, 8, COST)
    assert leaves.box[leaves.box[:, 0] <= 77].shape[0] >= TILES_PER_WORKER * 8 * 3 // 4
    assert len(set(leaves.part_worker.tolist())) == 8
