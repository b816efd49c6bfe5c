"""Dividing `nearest` subscriptions: costs, subsets, assignments and the rule for new ones."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from placewire.kernels.space.circles import circles_to_rectangles, rectangles_overlapping_most
from placewire.kernels.space.regions import distance_m
from placewire.model.regions import WORLD, circle_bounds
from placewire.plans.allocation import share_costs, share_heaviest_first
from placewire.plans.kernels.parts import rows_least_frequent
from placewire.plans.nearest.assignment import (
    LEAST_COST,
    Assignment,
    Rule,
    release,
)
from placewire.plans.nearest.baselines import plan_sop, split_space
from placewire.plans.nearest.methods import (
    NEAREST_METHODS,
    Subset,
    assign_new,
    plan_dkm,
    split_by_cost,
    split_subscriptions,
    split_subset,
)
from placewire.plans.nearest.sample import (
    CircleSample,
    RowObjectCounter,
    count_inside,
    count_objects_by_term,
    enclose_circles,
    find_radii,
    find_terms,
    list_object_terms,
    place_circles,
    quarter_rows,
    rows_on_curve,
)
from placewire.storage.arrays import map_arrays, write_arrays
from profiles import examples

Place = tuple[float, float, list[int]]


class Wish(NamedTuple):
    lon: float
    lat: float
    terms: list[int]
    k: int = 1
    radius_m: float = np.inf


def columns_of(
    wishes: list[Wish],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """lon, lat, k, term_offsets, terms."""
    return (
        np.array([w.lon for w in wishes], np.float64),
        np.array([w.lat for w in wishes], np.float64),
        np.array([w.k for w in wishes], np.int32),
        np.cumsum([0, *(len(w.terms) for w in wishes)], dtype=np.int64),
        np.array([t for w in wishes for t in w.terms], np.uint64),
    )


def sample_of(wishes: list[Wish], objects: list[Place]) -> CircleSample:
    lon, lat, k, offsets, terms = columns_of(wishes)
    return CircleSample(
        lon,
        lat,
        k,
        np.array([w.radius_m for w in wishes], np.float64),
        offsets,
        terms,
        np.array([o[0] for o in objects], np.float64),
        np.array([o[1] for o in objects], np.float64),
        np.cumsum([0, *(len(o[2]) for o in objects)], dtype=np.int64),
        np.array([t for o in objects for t in o[2]], np.uint64),
    )


# Plain statements of what the paper says, a loop each.


def radius_of(wish: Wish, objects: list[Place]) -> float:
    """The k-th distance among the objects that share a term."""
    near = sorted(
        distance_m(wish.lon, wish.lat, lon, lat)
        for lon, lat, terms in objects
        if set(terms) & set(wish.terms)
    )
    return near[wish.k - 1] if len(near) >= wish.k else np.inf


def rectangle_around(wishes: list[Wish]) -> tuple[float, float, float, float]:
    boxes = []
    for wish in wishes:
        box = circle_bounds(wish.lon, wish.lat, wish.radius_m)
        boxes.append((-180.0, box[1], 180.0, box[3]) if box[0] > box[2] else box)
    west, south, east, north = zip(*boxes, strict=True)
    return min(west), min(south), max(east), max(north)


def objects_in(rectangle: tuple[float, float, float, float], objects: list[Place]) -> list[Place]:
    west, south, east, north = rectangle
    return [o for o in objects if west <= o[0] <= east and south <= o[1] <= north]


def sum_of_terms(wish: Wish, objects: list[Place]) -> int:
    return sum(term in o[2] for term in wish.terms for o in objects)


def priced(count: int, objects: list[Place]) -> float:
    return max(count / max(len(objects), 1), LEAST_COST)


def share_naively(costs: list[float], loads: list[float]) -> tuple[list[int], list[float]]:
    loads = list(loads)
    chosen = []
    for cost in costs:
        worker = loads.index(min(loads))
        loads[worker] += cost
        chosen.append(worker)
    return chosen, loads


coarse = st.integers(-6, 6)  # few places, so that they coincide and lie on edges
lons = st.one_of(coarse.map(float), st.floats(-180, 180), st.sampled_from([-180.0, 180.0, 179.9]))
lats = st.one_of(coarse.map(float), st.floats(-90, 90), st.sampled_from([-90.0, 90.0, 89.5]))
term_sets = st.lists(st.integers(0, 6), max_size=4, unique=True)
radii = st.one_of(
    st.just(np.inf), st.just(0.0), st.floats(0, 3e5), st.floats(0, 2.1e7), st.just(111_195.08)
)
object_lists = st.lists(st.tuples(lons, lats, term_sets), max_size=40)
wish_lists = st.lists(
    st.builds(Wish, lons, lats, term_sets, st.integers(1, 4), radii), min_size=1, max_size=30
)


def scattered(wishes: int, objects: int, seed: int = 3) -> tuple[list[Wish], list[Place]]:
    """Two towns and what lies between them, with circles that the objects make."""
    rng = np.random.default_rng(seed)

    def place() -> tuple[float, float]:
        centre = [(2.0, 48.0), (9.0, 52.0)][rng.integers(2)]
        lon, lat = rng.normal(centre, rng.choice([0.05, 0.05, 2.0])).tolist()
        return lon, lat

    def terms() -> list[int]:
        return np.unique(rng.zipf(1.6, rng.integers(1, 5)).clip(0, 30)).tolist()

    there = [(*place(), terms()) for _ in range(objects)]
    made = []
    for _ in range(wishes):
        wish = Wish(*place(), terms(), int(rng.integers(1, 4)))
        made.append(wish._replace(radius_m=radius_of(wish, there)))
    return made, there


# A toy that can be followed by hand. Two towns, ten degrees apart; ten objects.
#   west, around (0, 0): o1 {a}, o2 {a}, o3 {a, b}, o4 {b}, o5 {c}, o6 {}
#   east, around (10, 0): o7 {a}, o8 {b}, o9 {b}, o10 {d}
A, B, C, D, UNSEEN = 1, 2, 3, 4, 9
TOY_OBJECTS: list[Place] = [
    (0.0, 0.0, [A]),
    (0.1, 0.0, [A]),
    (0.0, 0.1, [A, B]),
    (0.1, 0.1, [B]),
    (0.2, 0.2, [C]),
    (0.3, 0.3, []),
    (10.0, 0.0, [A]),
    (10.1, 0.0, [B]),
    (10.0, 0.1, [B]),
    (10.1, 0.1, [D]),
]
# Circles of 1 km hold what is at their centre, of 13 km also what is a tenth of a degree away
# (11.1 km) on either axis; their rectangles hold the corner between the two as well.
TOY_WISHES = [
    Wish(0.0, 0.0, [A], 1, 1_000.0),
    Wish(0.1, 0.1, [A, B], 1, 13_000.0),
    Wish(10.0, 0.0, [B], 2, 13_000.0),
    Wish(10.0, 0.0, [UNSEEN], 1, 1_000.0),
]
TOY = sample_of(TOY_WISHES, TOY_OBJECTS)


def test_kop_of_the_toy_is_equation_1() -> None:
    made = NEAREST_METHODS["kop"](TOY, 2)
    # |O_a| = 4 and |O_b| = 4 of 10; nobody has the last one's term.
    assert made.cost.tolist() == [0.4, 0.8, 0.4, LEAST_COST]
    # 0.8 to worker 0; 0.4 and 0.4 to worker 1; 0.8 each, and what is left goes to the first.
    assert made.worker.tolist() == [1, 0, 1, 0]
    assert made.loads.tolist() == [0.8 + LEAST_COST, 0.8]


def test_sop_of_the_toy_is_equations_2_and_3() -> None:
    # All places lie in one quarter of the world, and fall apart, as soon as it is cut finely
    # enough, into {s0, s1} and {s2, s3}.
    pair = split_space(count_objects_by_term(TOY), place_circles(TOY), 2)
    assert sorted((sorted(q.rows.tolist()), q.objects) for q in pair) == [
        ([0, 1], 5),  # from 0 (less 1 km) to 0.1 + 13 km = 0.217 degrees: o1 to o5
        ([2, 3], 4),
    ]
    made = plan_sop(TOY, 2, theta=1)
    assert made.cost.tolist() == [0.5, 0.5, 0.4, 0.4]
    assert made.worker.tolist() == [0, 0, 1, 1]  # 2 x 0.5 before 2 x 0.4
    assert made.loads.tolist() == [1.0, 0.8]


def test_dkm_of_the_toy_is_equations_4_to_6() -> None:
    made = plan_dkm(TOY, 2, gamma1=1)
    # One split. By space: R of {s0, s1} holds |O_R,a| = 3 and |O_R,b| = 2, so C = 0.3 and 0.5; that
    # of {s2, s3} holds |O_R,b| = 2, so 0.2 and nothing: C_s = 1.0. By cost: everybody alone, and
    # s0 meets o1 in 1 km (0.1), the others what they met: C_h = 0.8, the lesser.
    assert made.cost.tolist() == [0.1, 0.5, 0.2, LEAST_COST]
    # s1 first, to worker 0; s2 to worker 1, s0 too, and s3 as well, at 0.3 against 0.5.
    assert made.worker.tolist() == [1, 0, 1, 1]
    assert made.rule.rectangles.shape == (4, 4)


def test_dkm_of_the_toy_by_space_only() -> None:
    made = plan_dkm(TOY, 2, gamma1=1, gamma2=3)
    assert made.cost.tolist() == [0.3, 0.5, 0.2, LEAST_COST]
    # {s0, s1} costs 0.8, {s2, s3} 0.2: s1, s0, s2, s3 in turn.
    assert made.worker.tolist() == [1, 0, 1, 0]


def test_new_ones_of_the_toy() -> None:
    new = [Wish(10.2, 0.0, [B], 1), Wish(0.0, 0.0, [A, C], 1)]
    loads = np.array([1.0, 1.2])
    # Equation 1: 0.4; then 0.4 + 0.1. The second finds 1.4 against 1.2.
    worker, cost, after = assign_new(plan_kop_rule(), loads, *columns_of(new), 2)
    assert (worker.tolist(), cost.tolist()) == ([0, 1], [0.4, 0.5])
    assert after.tolist() == [1.4, 1.7]
    # o8 is nearest, 0.1 degrees west: the rectangle has o8, o10 and nothing at 10.0. The second is
    # at o1, with a circle of no size.
    sop = plan_sop(TOY, 2, theta=1).rule
    assert assign_new(sop, loads, *columns_of(new), 2)[1].tolist() == [0.2, 0.1]
    # By space only, its subset is {s2, s3}, where |O_R,b| = 2; then {s0, s1}: 3 of a, 1 of c.
    dkm = plan_dkm(TOY, 2, gamma1=1, gamma2=3).rule
    assert assign_new(dkm, loads, *columns_of(new), 2)[1].tolist() == [0.2, 0.4]


def plan_kop_rule() -> Rule:
    return NEAREST_METHODS["kop"](TOY, 2).rule


# The parts against their plain statements.


@given(lons, lats, radii)
def test_a_rectangle_is_that_of_the_circle(lon: float, lat: float, radius_m: float) -> None:
    made = circles_to_rectangles(np.array([lon]), np.array([lat]), np.array([radius_m]))[0]
    assert made == pytest.approx(rectangle_around([Wish(lon, lat, [], 1, radius_m)]), abs=1e-9)


@given(lons, lats, radii, lons, lats)
def test_a_rectangle_holds_its_ball(
    lon: float, lat: float, radius_m: float, x: float, y: float
) -> None:
    made = circles_to_rectangles(np.array([lon]), np.array([lat]), np.array([radius_m]))[0]
    if distance_m(lon, lat, x, y) <= radius_m:
        assert made[0] <= x <= made[2]
        assert made[1] <= y <= made[3]


def test_an_endless_ball_is_the_world() -> None:
    made = circles_to_rectangles(np.array([3.0]), np.array([4.0]), np.array([np.inf]))
    assert made.tolist() == [list(WORLD)]


@settings(max_examples=examples(300))
@given(wish_lists, object_lists, st.data())
def test_counts_in_rectangles(
    wishes: list[Wish], objects: list[Place], data: st.DataObject
) -> None:
    sample = sample_of(wishes, objects)
    object_counts, circles = count_objects_by_term(sample), place_circles(sample)
    rows = np.array(data.draw(st.lists(st.sampled_from(range(len(wishes))), min_size=1)), np.int64)
    rectangle = enclose_circles(circles, rows)
    plain = rectangle_around([wishes[r] for r in rows])
    assert rectangle == pytest.approx(plain, abs=1e-9)
    inside = objects_in(tuple(rectangle.tolist()), objects)
    assert count_inside(object_counts, rectangle[None]).tolist() == [len(inside)]
    lists = find_terms(object_counts, sample.terms)
    met = [sum_of_terms(wishes[r], inside) for r in rows]
    looked_up = RowObjectCounter(object_counts, sample.term_offsets, lists)
    assert looked_up.count(rows, rectangle).tolist() == met
    assert looked_up.count(rows, rectangle).tolist() == met  # nothing is left from before
    looked_through = RowObjectCounter(
        object_counts, sample.term_offsets, lists, list_object_terms(object_counts)
    )
    assert looked_through.count(rows, rectangle).tolist() == met
    everywhere = [sum_of_terms(wish, objects) for wish in wishes]
    assert looked_up.count_everywhere().tolist() == everywhere


@pytest.mark.parametrize("seed", range(3))
def test_counts_among_many_objects(seed: int) -> None:
    """Enough of them for cells that are taken whole, and rectangles with objects on their edges."""
    wishes, objects = scattered(20, 3000, seed)
    sample = sample_of(wishes, objects)
    object_counts = count_objects_by_term(sample)
    rng = np.random.default_rng(seed)
    picked = rng.choice(len(objects), (50, 2))
    corner = np.array([[objects[a][:2], objects[b][:2]] for a, b in picked])
    rectangles = np.concatenate([corner.min(axis=1), corner.max(axis=1)], axis=1)
    inside = [objects_in(tuple(r), objects) for r in rectangles.tolist()]
    assert count_inside(object_counts, rectangles).tolist() == [len(found) for found in inside]
    lists = find_terms(object_counts, sample.terms)
    for pairs in (None, list_object_terms(object_counts)):
        counter = RowObjectCounter(object_counts, sample.term_offsets, lists, pairs)
        for rectangle, found in zip(rectangles, inside, strict=True):
            met = [sum_of_terms(wish, found) for wish in wishes]
            assert counter.count(np.arange(len(wishes)), rectangle).tolist() == met


@pytest.mark.parametrize("step", [1e-9, -1e-9])
@pytest.mark.parametrize("axis", [0, 1])
def test_objects_nearer_than_the_curve_is_fine(axis: int, step: float) -> None:
    """Forty in the outermost column or row of a large cell, parted by an edge of the rectangle."""
    places = np.full((40, 2), 0.5)
    places[:, axis] = np.arange(1, 41) * step
    objects: list[Place] = [(lon, lat, [1]) for lon, lat in places.tolist()]
    object_counts = count_objects_by_term(sample_of([], objects))
    for edge in places[::10, axis].tolist():
        for side in (axis, axis + 2):
            rectangle = np.array([-100.0, -80.0, 100.0, 80.0])
            rectangle[side] = edge
            inside = objects_in(tuple(rectangle.tolist()), objects)
            assert count_inside(object_counts, rectangle[None]).tolist() == [len(inside)]


@settings(max_examples=examples(300))
@given(wish_lists, object_lists)
def test_radii(wishes: list[Wish], objects: list[Place]) -> None:
    object_counts = count_objects_by_term(sample_of([], objects))
    lon, lat, k, offsets, terms = columns_of(wishes)
    found = find_radii(object_counts, lon, lat, k, offsets, find_terms(object_counts, terms))
    assert found.tolist() == [radius_of(wish, objects) for wish in wishes]


@pytest.mark.parametrize("k", [1, 7, 400, 2000])
def test_radii_among_many_objects(k: int) -> None:
    wishes, objects = scattered(60, 1500)
    wishes = [w._replace(k=k) for w in wishes] + [Wish(-179.99, -80.0, [1, 2], k)]
    object_counts = count_objects_by_term(sample_of([], objects))
    lon, lat, ks, offsets, terms = columns_of(wishes)
    found = find_radii(object_counts, lon, lat, ks, offsets, find_terms(object_counts, terms))
    assert found.tolist() == [radius_of(wish, objects) for wish in wishes]


@given(
    st.lists(st.floats(0, 10) | st.integers(0, 3).map(float), max_size=60),
    st.lists(st.integers(0, 5).map(float), min_size=1, max_size=9),
)
def test_greedy_is_the_naive_one(costs: list[float], loads: list[float]) -> None:
    before = np.array(loads)
    worker, after = share_costs(np.array(costs), before)
    assert (worker.tolist(), after.tolist()) == share_naively(costs, loads)
    assert before.tolist() == loads


def test_heaviest_first() -> None:
    costs = np.array([1.0, 5.0, 2.0, 5.0, 4.0])
    assert share_heaviest_first(costs, np.zeros(2)).tolist() == [1, 0, 1, 1, 0]


@settings(max_examples=examples(200))
@given(wish_lists)
def test_quarters(wishes: list[Wish]) -> None:
    """They part the rows in order, are those of one cell, and are one only at one place."""
    circles = place_circles(sample_of(wishes, []))
    rows = rows_on_curve(circles)
    parts = quarter_rows(circles, rows)
    assert np.concatenate([rows[p] for p in parts]).tolist() == rows.tolist()
    assert sorted(rows.tolist()) == list(range(len(wishes)))
    codes = circles.code[rows]
    assert (len(parts) == 1) == (codes[0] == codes[-1])
    if len(parts) > 1:
        low = min(b for b in range(0, 64, 2) if codes[0] >> b + 2 == codes[-1] >> b + 2)
        assert [set((codes[p] >> low).tolist()) for p in parts] == [
            {q} for q in sorted(set((codes >> low).tolist()))
        ]


def overlaps(one: list[float], other: list[float]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    south, north = max(one[1], other[1]), min(one[3], other[3])
    if width <= 0 or south >= north:
        return 0.0
    return width * float(np.sin(np.radians(north)) - np.sin(np.radians(south)))


@given(wish_lists, wish_lists)
def test_most_overlap_is_equation_7(wishes: list[Wish], others: list[Wish]) -> None:
    rectangles = place_circles(sample_of(wishes, [])).rectangle
    asked = place_circles(sample_of(others, [])).rectangle
    for own, chosen in zip(asked, rectangles_overlapping_most(rectangles, asked), strict=True):
        shared = [overlaps(r, own.tolist()) for r in rectangles.tolist()]
        if chosen < 0:
            assert max(shared) == 0.0
            continue
        assert shared[chosen] == pytest.approx(max(shared), rel=1e-9)
        # Of those that hold all of it, the smallest.
        held = [r for r in rectangles.tolist() if overlaps(r, own.tolist()) == shared[chosen]]
        sizes = [overlaps(r, list(WORLD)) for r in held]
        taken = overlaps(rectangles[chosen].tolist(), list(WORLD))
        assert taken == pytest.approx(min(sizes), rel=1e-9)


# Algorithm 2.


@settings(max_examples=examples(200))
@given(wish_lists, object_lists, st.integers(1, 40), st.sampled_from([0, 3, 10, 1000]))
def test_subsets_part_the_subscriptions(
    wishes: list[Wish], objects: list[Place], least: int, gamma2: int
) -> None:
    sample = sample_of(wishes, objects)
    circles, object_counts = place_circles(sample), count_objects_by_term(sample)
    counter = RowObjectCounter(
        object_counts, sample.term_offsets, find_terms(object_counts, sample.terms)
    )
    subsets = split_subscriptions(circles, counter, least, gamma2)
    rows = np.concatenate([s.rows for s in subsets])
    assert sorted(rows.tolist()) == list(range(len(wishes)))
    # Any two subscriptions can be parted, so that there are fewer only if all are single; a split
    # makes four of one, so that there are not many more.
    assert len(subsets) >= min(least, len(wishes))
    assert len(subsets) < least + 4
    for subset in subsets:
        assert (subset.rectangle == enclose_circles(circles, subset.rows)).all()
        inside = objects_in(tuple(subset.rectangle.tolist()), objects)
        assert subset.met.tolist() == [sum_of_terms(wishes[r], inside) for r in subset.rows]


def test_split_takes_the_lesser_cost() -> None:
    wishes, objects = scattered(200, 300)
    sample = sample_of(wishes, objects)
    circles, object_counts = place_circles(sample), count_objects_by_term(sample)
    counter = RowObjectCounter(
        object_counts, sample.term_offsets, find_terms(object_counts, sample.terms)
    )
    taken = set()
    for subset in split_subscriptions(circles, counter, 12, 1000):
        ways = []
        for parts in (quarter_rows(circles, subset.rows), split_by_cost(subset)):
            total = 0
            for part in parts:
                rows = subset.rows[part]
                rectangle = enclose_circles(circles, rows)
                total += int(counter.count(rows, rectangle).sum())
            ways.append(total)
        made = split_subset(circles, counter, subset, 1000)
        assert sum(part.total for part in made) == min(ways)
        taken.add(ways[0] < ways[1])
        if ways[0] != ways[1] and len(quarter_rows(circles, subset.rows)) > 1:
            by_space = split_subset(circles, counter, subset, subset.rows.size - 1)
            assert sum(part.total for part in by_space) == ways[0]
    assert taken == {True, False}


def test_hybrid_partition_is_algorithm_1_over_four() -> None:
    met = np.array([9, 1, 7, 7, 2, 0, 30])
    subset = Subset(np.arange(10, 17), np.array(WORLD), met)
    # 30 | 9 | 7 | 7, then 2 and 1 to the two sevens in turn, and nothing to the lesser, 8.
    assert sorted(p.tolist() for p in split_by_cost(subset)) == [[0], [1, 3, 5], [2, 4], [6]]


def test_dkm_order_is_algorithm_3() -> None:
    wishes, objects = scattered(300, 200)
    sample = sample_of(wishes, objects)
    circles, object_counts = place_circles(sample), count_objects_by_term(sample)
    counter = RowObjectCounter(
        object_counts, sample.term_offsets, find_terms(object_counts, sample.terms)
    )
    subsets = split_subscriptions(circles, counter, 3 * 5, 50)
    order: list[int] = []
    for subset in sorted(subsets, key=lambda s: -s.total):
        rows = sorted(zip((-subset.met).tolist(), subset.rows.tolist(), strict=True))
        order += [row for _, row in rows]
    made = plan_dkm(sample, 3, gamma1=5, gamma2=50)
    chosen, loads = share_naively(made.cost[order].tolist(), [0.0] * 3)
    assert made.worker[order].tolist() == chosen
    assert made.loads == pytest.approx(loads)
    assert len(made.rule.rectangles) == len(subsets)


@given(wish_lists, object_lists, st.integers(1, 5))
def test_sop_quarters(wishes: list[Wish], objects: list[Place], workers: int) -> None:
    sample = sample_of(wishes, objects)
    circles = place_circles(sample)
    quarters = split_space(count_objects_by_term(sample), circles, 4 * workers)
    rows = np.concatenate([q.rows for q in quarters])
    assert sorted(rows.tolist()) == list(range(len(wishes)))
    places = np.unique(circles.code).size
    assert min(4 * workers, places) <= len(quarters) < 4 * workers + 4
    made = plan_sop(sample, workers, theta=4)
    for quarter in quarters:
        around = rectangle_around([wishes[r] for r in quarter.rows])
        found = objects_in(tuple(enclose_circles(circles, quarter.rows).tolist()), objects)
        assert enclose_circles(circles, quarter.rows) == pytest.approx(around, abs=1e-9)
        assert set(made.cost[quarter.rows].tolist()) == {priced(len(found), objects)}
        assert np.unique(made.worker[quarter.rows]).size == 1  # subsets are given whole


def test_sop_gives_the_costliest_subset_first() -> None:
    """Costs are 4 x 1, 2 x 10 and 3 x 2, over 13: the fewest subscriptions are the costliest."""
    corners = [(-100.0, -40.0, 4, 1), (100.0, -40.0, 2, 10), (100.0, 40.0, 3, 2)]
    sample = sample_of(
        [Wish(x, y, [1], 1, 1_000.0) for x, y, wishes, _ in corners for _ in range(wishes)],
        [(x, y, [1]) for x, y, _, objects in corners for _ in range(objects)],
    )
    made = plan_sop(sample, 2, theta=1)
    assert made.worker.tolist() == [1] * 4 + [0] * 2 + [1] * 3
    assert made.loads == pytest.approx([20 / 13, 10 / 13])


# Every method x every check.

METHODS = sorted(NEAREST_METHODS)
WISHES, OBJECTS = scattered(120, 150)
ODD_SAMPLES: dict[str, tuple[list[Wish], list[Place]]] = {
    "nothing": ([], []),
    "no subscriptions": ([], OBJECTS),
    "no objects": (WISHES, []),
    "one subscription": (WISHES[:1], OBJECTS),
    "one place": ([Wish(5.0, 5.0, [1, 2], 1, 50.0)] * 70, [(5.0, 5.0, [1])] * 9),
    "one place, endless": ([Wish(5.0, 5.0, [1], 3)] * 70, [(5.0, 5.0, [1])]),
    "unseen terms": ([w._replace(terms=[77]) for w in WISHES], OBJECTS),
    "no terms": ([w._replace(terms=[]) for w in WISHES], [(x, y, []) for x, y, _ in OBJECTS]),
    "corners": (
        [Wish(x, y, [1], 1, 1e5) for x in (-180.0, 180.0) for y in (-90.0, 90.0)],
        [(x, y, [1]) for x in (-180.0, 180.0) for y in (-90.0, 90.0)],
    ),
    "towns": (WISHES, OBJECTS),
}


def check_assignment(made: Assignment, sample: CircleSample, workers: int) -> None:
    assert made.workers == workers
    assert made.worker.dtype == np.int32
    assert made.worker.shape == made.cost.shape == (sample.subscriptions,)
    assert ((made.worker >= 0) & (made.worker < workers)).all()
    assert (made.cost > 0).all()
    sums = [float(made.cost[made.worker == w].sum()) for w in range(workers)]
    assert made.loads == pytest.approx(sums)


@pytest.mark.parametrize("workers", [1, 2, 7, 300])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("odd", ODD_SAMPLES)
def test_every_subscription_has_one_worker(odd: str, method: str, workers: int) -> None:
    sample = sample_of(*ODD_SAMPLES[odd])
    made = NEAREST_METHODS[method](sample, workers)
    assert made.name == made.rule.name == method
    check_assignment(made, sample, workers)
    new = [*WISHES[:20], Wish(0.0, 0.0, [99], 3), Wish(180.0, 90.0, [], 1)]
    worker, cost, after = assign_new(made.rule, made.loads, *columns_of(new), workers)
    chosen, loads = share_naively(cost.tolist(), made.loads.tolist())
    assert worker.tolist() == chosen
    assert after == pytest.approx(loads)
    assert (cost > 0).all()
    assert release(after, worker, cost) == pytest.approx(made.loads, abs=1e-12)


@pytest.mark.parametrize("method", ["kop", "dkm"])
@pytest.mark.parametrize("odd", ["no objects", "unseen terms", "one place, endless"])
def test_equal_costs_are_spread_by_number(odd: str, method: str) -> None:
    made = NEAREST_METHODS[method](sample_of(*ODD_SAMPLES[odd]), 7)
    held = np.bincount(made.worker, minlength=7)
    assert held.max() - held.min() <= 1


@pytest.mark.parametrize("method", METHODS)
def test_unseen_ones_are_spread_from_call_to_call(method: str) -> None:
    made = NEAREST_METHODS[method](sample_of([], []), 3)
    loads, chosen = made.loads, []
    for _ in range(6):
        worker, _, loads = assign_new(made.rule, loads, *columns_of([Wish(1.0, 1.0, [5], 1)]), 3)
        chosen += worker.tolist()
    assert chosen == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("method", METHODS)
def test_no_new_ones(method: str) -> None:
    made = NEAREST_METHODS[method](sample_of(WISHES, OBJECTS), 3)
    worker, cost, after = assign_new(made.rule, made.loads, *columns_of([]), 3)
    assert (worker.size, cost.size) == (0, 0)
    assert after.tolist() == made.loads.tolist()


def test_loads_of_other_workers_are_refused() -> None:
    made = NEAREST_METHODS["kop"](TOY, 2)
    with pytest.raises(ValueError, match="must be of 3 workers, got 2"):
        assign_new(made.rule, made.loads, *columns_of(WISHES), 3)


@settings(max_examples=examples(150))
@given(wish_lists, object_lists, wish_lists)
def test_new_ones_by_the_equations(
    wishes: list[Wish], objects: list[Place], new: list[Wish]
) -> None:
    sample = sample_of(wishes, objects)
    around = [w._replace(radius_m=radius_of(w, objects)) for w in new]
    own = place_circles(sample_of(around, [])).rectangle
    columns = columns_of(new)
    loads = np.zeros(2)

    kop = assign_new(NEAREST_METHODS["kop"](sample, 2).rule, loads, *columns, 2)[1]
    assert kop.tolist() == [priced(sum_of_terms(w, objects), objects) for w in new]

    sop = assign_new(plan_sop(sample, 2, theta=2).rule, loads, *columns, 2)[1]
    inside = [objects_in(tuple(r), objects) for r in own.tolist()]
    assert sop.tolist() == [priced(len(found), objects) for found in inside]

    rule = plan_dkm(sample, 2, gamma1=2).rule
    best = rectangles_overlapping_most(rule.rectangles, own)
    dkm = assign_new(rule, loads, *columns, 2)[1]
    for at, wish in enumerate(new):
        rectangle = rule.rectangles[best[at]] if best[at] >= 0 else own[at]
        met = sum_of_terms(wish, objects_in(tuple(rectangle.tolist()), objects))
        assert dkm[at] == priced(met, objects)


@settings(max_examples=examples(60))
@given(wish_lists, object_lists, st.integers(1, 4))
def test_ps2_goes_by_leaf_and_least_frequent_term(
    wishes: list[Wish], objects: list[Place], workers: int
) -> None:
    sample = sample_of(wishes, objects)
    made = NEAREST_METHODS["ps2"](sample, workers)
    check_assignment(made, sample, workers)
    # Who is at one place with the same least frequent term has the same worker and cost.
    together: dict[tuple[float, float, int | None], tuple[int, float]] = {}
    for wish, worker, cost in zip(wishes, made.worker, made.cost, strict=True):
        counts = {t: sum_of_terms(wish._replace(terms=[t]), objects) for t in wish.terms}
        least = min(wish.terms, key=lambda t: (counts[t], t), default=None)
        place = (wish.lon, wish.lat, least)
        assert together.setdefault(place, (worker, cost)) == (worker, cost)
    # A new one at an old one's place costs what that does.
    cost = assign_new(made.rule, made.loads, *columns_of(wishes), workers)[1]
    assert cost.tolist() == made.cost.tolist()


@given(wish_lists, object_lists)
def test_least_frequent_terms(wishes: list[Wish], objects: list[Place]) -> None:
    sample = sample_of(wishes, objects)
    object_counts = count_objects_by_term(sample)
    lists = find_terms(object_counts, sample.terms)
    found = rows_least_frequent(sample.term_offsets, lists, sample.terms, object_counts.frequency)
    for wish, at in zip(wishes, found.tolist(), strict=True):
        if not wish.terms:
            assert at == -1
            continue
        counts = [(sum_of_terms(wish._replace(terms=[t]), objects), t) for t in wish.terms]
        assert int(sample.terms[at]) == min(counts)[1]


def test_ps2_divides_towns_by_space_or_text() -> None:
    made = NEAREST_METHODS["ps2"](sample_of(WISHES, OBJECTS), 4)
    assert np.unique(made.worker).size == 4
    parts = made.rule.parts
    assert parts.objects.max() < len(OBJECTS)
    # Alone in its leaf, a part sees all that lie there; the leaves tile the world.
    alone = np.diff(parts.part_offsets) == 1
    if alone.all():
        assert parts.objects.sum() == len(OBJECTS)


@pytest.mark.parametrize("method", METHODS)
def test_loads_are_level(method: str) -> None:
    """By its own costs each method but `ps2` is level up to one subset or subscription."""
    made = NEAREST_METHODS[method](sample_of(*scattered(400, 300, 5)), 4)
    largest = float(made.cost.max())
    if method in ("kop", "dkm"):
        assert made.loads.max() - made.loads.min() <= largest
    elif method == "sop":
        sums = {}
        for cost, worker in zip(made.cost.tolist(), made.worker.tolist(), strict=True):
            sums[cost, worker] = sums.get((cost, worker), 0.0) + cost
        assert made.loads.max() - made.loads.min() <= max(sums.values()) + 1e-9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("odd", ["nothing", "towns"])
def test_rule_round_trip(odd: str, method: str, tmp_path: Any) -> None:
    made = NEAREST_METHODS[method](sample_of(*ODD_SAMPLES[odd]), 3)
    write_arrays(tmp_path / "rule.arrays", made.rule.to_arrays())
    mapped = Rule.from_arrays(method, map_arrays(tmp_path / "rule.arrays").arrays)
    pickled = pickle.loads(pickle.dumps(made.rule))
    expected = assign_new(made.rule, made.loads, *columns_of(WISHES[:9]), 3)
    for again in (mapped, pickled):
        assert again.name == method
        assert again.object_counts.objects == made.rule.object_counts.objects
        kept, back = made.rule.to_arrays(), again.to_arrays()
        assert kept.keys() == back.keys()
        for field, array in kept.items():
            assert back[field].dtype == array.dtype
            assert back[field].tolist() == array.tolist()
        got = assign_new(again, made.loads, *columns_of(WISHES[:9]), 3)
        for one, other in zip(expected, got, strict=True):
            assert np.array_equal(one, other)
