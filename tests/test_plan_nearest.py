"""Dividing `nearest` subscriptions: balls, counts and the greedy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from placewire.kernels.balls import balls_to_rectangles, rectangles_overlapping_most
from placewire.kernels.regions import distance_m
from placewire.model.regions import WORLD, circle_bounds
from placewire.plan.balls import BallSample, enclose_balls, place_balls, quarter_rows, rows_on_curve
from placewire.plan.census import (
    Meetings,
    count_inside,
    find_radii,
    find_terms,
    list_pairs,
    take_census,
)
from placewire.plan.graham import share_costs, share_heaviest_first

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


def sample_of(wishes: list[Wish], objects: list[Place]) -> BallSample:
    lon, lat, k, offsets, terms = columns_of(wishes)
    return BallSample(
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
    """Two towns and what lies between them, with balls that the objects make."""
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


# The parts against their plain statements.


@settings(deadline=None)
@given(lons, lats, radii)
def test_a_rectangle_is_that_of_the_circle(lon: float, lat: float, radius_m: float) -> None:
    made = balls_to_rectangles(np.array([lon]), np.array([lat]), np.array([radius_m]))[0]
    assert made == pytest.approx(rectangle_around([Wish(lon, lat, [], 1, radius_m)]), abs=1e-9)


@settings(deadline=None)
@given(lons, lats, radii, lons, lats)
def test_a_rectangle_holds_its_ball(
    lon: float, lat: float, radius_m: float, x: float, y: float
) -> None:
    made = balls_to_rectangles(np.array([lon]), np.array([lat]), np.array([radius_m]))[0]
    if distance_m(lon, lat, x, y) <= radius_m:
        assert made[0] <= x <= made[2]
        assert made[1] <= y <= made[3]


def test_an_endless_ball_is_the_world() -> None:
    made = balls_to_rectangles(np.array([3.0]), np.array([4.0]), np.array([np.inf]))
    assert made.tolist() == [list(WORLD)]


@settings(max_examples=300, deadline=None)
@given(wish_lists, object_lists, st.data())
def test_counts_in_rectangles(
    wishes: list[Wish], objects: list[Place], data: st.DataObject
) -> None:
    sample = sample_of(wishes, objects)
    census, balls = take_census(sample), place_balls(sample)
    rows = np.array(data.draw(st.lists(st.sampled_from(range(len(wishes))), min_size=1)), np.int64)
    rectangle = enclose_balls(balls, rows)
    plain = rectangle_around([wishes[r] for r in rows])
    assert rectangle == pytest.approx(plain, abs=1e-9)
    inside = objects_in(tuple(rectangle.tolist()), objects)
    assert count_inside(census, rectangle[None]).tolist() == [len(inside)]
    lists = find_terms(census, sample.terms)
    met = [sum_of_terms(wishes[r], inside) for r in rows]
    looked_up = Meetings(census, sample.term_offsets, lists)
    assert looked_up.count(rows, rectangle).tolist() == met
    assert looked_up.count(rows, rectangle).tolist() == met  # nothing is left from before
    looked_through = Meetings(census, sample.term_offsets, lists, list_pairs(census))
    assert looked_through.count(rows, rectangle).tolist() == met
    everywhere = [sum_of_terms(wish, objects) for wish in wishes]
    assert looked_up.count_everywhere().tolist() == everywhere


@pytest.mark.parametrize("seed", range(3))
def test_counts_among_many_objects(seed: int) -> None:
    """Enough of them for cells that are taken whole, and rectangles with objects on their edges."""
    wishes, objects = scattered(20, 3000, seed)
    sample = sample_of(wishes, objects)
    census = take_census(sample)
    rng = np.random.default_rng(seed)
    picked = rng.choice(len(objects), (50, 2))
    corner = np.array([[objects[a][:2], objects[b][:2]] for a, b in picked])
    rectangles = np.concatenate([corner.min(axis=1), corner.max(axis=1)], axis=1)
    inside = [objects_in(tuple(r), objects) for r in rectangles.tolist()]
    assert count_inside(census, rectangles).tolist() == [len(found) for found in inside]
    lists = find_terms(census, sample.terms)
    for pairs in (None, list_pairs(census)):
        meetings = Meetings(census, sample.term_offsets, lists, pairs)
        for rectangle, found in zip(rectangles, inside, strict=True):
            met = [sum_of_terms(wish, found) for wish in wishes]
            assert meetings.count(np.arange(len(wishes)), rectangle).tolist() == met


@settings(max_examples=300, deadline=None)
@given(wish_lists, object_lists)
def test_radii(wishes: list[Wish], objects: list[Place]) -> None:
    census = take_census(sample_of([], objects))
    lon, lat, k, offsets, terms = columns_of(wishes)
    found = find_radii(census, lon, lat, k, offsets, find_terms(census, terms))
    assert found.tolist() == [radius_of(wish, objects) for wish in wishes]


@pytest.mark.parametrize("k", [1, 7, 400, 2000])
def test_radii_among_many_objects(k: int) -> None:
    wishes, objects = scattered(60, 1500)
    wishes = [w._replace(k=k) for w in wishes] + [Wish(-179.99, -80.0, [1, 2], k)]
    census = take_census(sample_of([], objects))
    lon, lat, ks, offsets, terms = columns_of(wishes)
    found = find_radii(census, lon, lat, ks, offsets, find_terms(census, terms))
    assert found.tolist() == [radius_of(wish, objects) for wish in wishes]


@settings(deadline=None)
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
    assert share_heaviest_first(costs, 2).tolist() == [1, 0, 1, 1, 0]


@settings(max_examples=200, deadline=None)
@given(wish_lists)
def test_quarters(wishes: list[Wish]) -> None:
    """They part the rows in order, are those of one cell, and are one only at one place."""
    balls = place_balls(sample_of(wishes, []))
    rows = rows_on_curve(balls)
    parts = quarter_rows(balls, rows)
    assert np.concatenate([rows[p] for p in parts]).tolist() == rows.tolist()
    assert sorted(rows.tolist()) == list(range(len(wishes)))
    codes = balls.code[rows]
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


@settings(deadline=None)
@given(wish_lists, wish_lists)
def test_most_overlap_is_equation_7(wishes: list[Wish], others: list[Wish]) -> None:
    rectangles = place_balls(sample_of(wishes, [])).rectangle
    asked = place_balls(sample_of(others, [])).rectangle
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
