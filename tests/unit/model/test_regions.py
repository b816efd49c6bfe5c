"""Regions: exact tests of points, bounding boxes that miss nothing, errors that name the place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oracle
from placewire.kernels.space.regions import region_containing_points
from placewire.model.errors import InvalidEvent
from placewire.model.regions import (
    EARTH_RADIUS_M,
    WHOLE_WORLD,
    circle_bounds,
    read_region,
)
from profiles import examples


def inside(region: Any, *points: tuple[float, float]) -> list[bool]:
    """Which points lie in the region, checked against the oracle."""
    read = read_region(region)
    got = region_containing_points(
        read.kind,
        np.array(read.box),
        np.array(read.shape, np.float64),
        np.array([p[0] for p in points], np.float64),
        np.array([p[1] for p in points], np.float64),
    ).tolist()
    holds = oracle.read_region(region)
    assert got == [holds(*point) for point in points]
    return list(got)


def within_bounds(box: tuple[float, float, float, float], lon: float, lat: float) -> bool:
    west, south, east, north = box
    if not south <= lat <= north:
        return False
    return west <= lon <= east if west <= east else lon >= west or lon <= east


lons = st.sampled_from([-180.0, -179.9999, 0.0, 179.9999, 180.0]) | st.floats(-180, 180)
lats = st.sampled_from([-90.0, -89.9999, 0.0, 89.9999, 90.0]) | st.floats(-90, 90)


# --- boxes ---


def test_a_box_is_closed_on_all_sides() -> None:
    box = {"box": [-1, -2, 3, 4]}
    edge = [(-1, 0), (3, 0), (0, -2), (0, 4), (-1, -2), (3, 4), (-1, 4), (3, -2)]
    assert all(inside(box, *edge))
    beyond = [(math.nextafter(x, 9 * x), y) for x, y in edge if x in (-1, 3)]
    beyond += [(x, math.nextafter(y, 9 * y)) for x, y in edge if y in (-2, 4)]
    assert not any(inside(box, *beyond))


def test_a_box_across_the_antimeridian() -> None:
    box = {"box": [170, -10, -170, 10]}
    assert inside(box, (170, 0), (175, 0), (180, 0), (-180, 0), (-170, 0)) == [True] * 5
    assert inside(box, (169.99, 0), (0, 0), (-169.99, 0), (175, 10.01)) == [False] * 4


def test_180_and_minus_180_are_different_for_boxes() -> None:
    assert inside({"box": [170, 0, 180, 1]}, (180, 0), (-180, 0)) == [True, False]
    assert inside({"box": [-180, 0, -170, 1]}, (180, 0), (-180, 0)) == [False, True]
    assert inside({"box": [180, 0, -180, 1]}, (180, 0), (-180, 0), (0, 0)) == [True, True, False]
    assert inside({"box": [180, 0, 180, 1]}, (180, 0), (-180, 0)) == [True, False]


def test_a_box_of_one_point_and_the_world() -> None:
    assert inside({"box": [1.5, 2.5, 1.5, 2.5]}, (1.5, 2.5), (1.5, 2.5000001)) == [True, False]
    corners = [(x, y) for x in (-180, 180) for y in (-90, 90)]
    assert all(inside({"box": [-180, -90, 180, 90]}, *corners, (0, 0)))
    assert all(inside({"box": [0, -90, math.nextafter(0, -1), 90]}, *corners, (0, 0), (-1, 0)))


@given(lons, lats, lons, lats, st.lists(st.tuples(lons, lats), min_size=1, max_size=20))
def test_boxes_equal_the_oracle(
    west: float, a: float, east: float, b: float, points: list[tuple[float, float]]
) -> None:
    corners = [(west, a), (east, b), (west, b), (east, a)]
    inside({"box": [west, min(a, b), east, max(a, b)]}, *points, *corners)


def test_absent_is_everywhere() -> None:
    region = WHOLE_WORLD
    points = np.array([-180.0, 0.0, 180.0]), np.array([-90.0, 0.0, 90.0])
    box, shape = np.array(region.box), np.array(region.shape, np.float64)
    assert region_containing_points(region.kind, box, shape, *points).all()


# --- circles ---


def test_a_circle_is_closed() -> None:
    point = (0.5, 0.25)
    radius = oracle.distance_m(0, 0, *point)
    assert inside({"circle": {"lon": 0, "lat": 0, "radius_m": radius}}, point) == [True]
    smaller = math.nextafter(radius, 0)
    assert inside({"circle": {"lon": 0, "lat": 0, "radius_m": smaller}}, point) == [False]


def test_distances_are_whole_millimetres_before_they_are_compared() -> None:
    degree = math.degrees(1 / EARTH_RADIUS_M)  # of one metre
    circle = {"circle": {"lon": 0, "lat": 0, "radius_m": 1}}
    assert inside(circle, (0, 1.0004 * degree), (0, 1.0006 * degree)) == [True, False]
    tiny = {"circle": {"lon": 0, "lat": 0, "radius_m": 1e-9}}
    assert inside(tiny, (0, 0.0004 * degree), (0, 0.0006 * degree)) == [True, False]


def test_circles_go_round_the_antimeridian_and_the_poles() -> None:
    circle = {"circle": {"lon": 179.999, "lat": 0, "radius_m": 1000}}
    assert inside(circle, (180, 0), (-180, 0), (-179.995, 0), (-179.98, 0)) == [1, 1, 1, 0]
    pole = {"circle": {"lon": 0, "lat": 89.99, "radius_m": 3000}}
    assert inside(pole, (180, 89.99), (90, 90), (-90, 89.995), (180, 89.9)) == [1, 1, 1, 0]
    world = {"circle": {"lon": 0, "lat": 0, "radius_m": 2.1e7}}
    assert all(inside(world, (180, 0), (-180, 90), (0, -90)))


@st.composite
def circles_and_points(draw: st.DrawFn) -> tuple[float, float, float, list[tuple[float, float]]]:
    """A circle, and points at its very rim in every direction (and anywhere)."""
    lon, lat = draw(lons), draw(lats)
    radius = draw(
        st.sampled_from([1e-9, 0.0004, 0.001, 1.0, 1e5, 5e6, 1.0007e7, 1.0008e7, 2.0015e7, 1e300])
        | st.floats(1e-3, 2.1e7)
    )
    points = [(draw(lons), draw(lats)) for _ in range(3)]
    angle = min(radius / EARTH_RADIUS_M, math.pi)
    for _ in range(12):
        bearing = draw(st.sampled_from([0.0, math.pi / 2, math.pi, -math.pi / 2])) + draw(
            st.sampled_from([0.0, 1e-9, -1e-9]) | st.floats(-0.8, 0.8)
        )
        reach = angle * draw(st.sampled_from([1.0, 1.0, 1 - 1e-12, 1 + 1e-9, 0.5]))
        phi = math.radians(lat)
        sine = math.sin(phi) * math.cos(reach)
        sine += math.cos(phi) * math.sin(reach) * math.cos(bearing)
        phi_to = math.asin(max(-1.0, min(1.0, sine)))
        turn = math.atan2(
            math.sin(bearing) * math.sin(reach) * math.cos(phi),
            math.cos(reach) - math.sin(phi) * math.sin(phi_to),
        )
        lon_to = (lon + math.degrees(turn) + 540) % 360 - 180
        points.append((max(-180.0, min(180.0, lon_to)), math.degrees(phi_to)))
        if abs(lon_to) > 179.999999:
            points += [(180.0, points[-1][1]), (-180.0, points[-1][1])]
    return lon, lat, radius, points


@settings(max_examples=examples(400))
@given(circles_and_points())
@example((180.0, 90.0, 1.0, [(-180.0, 90.0), (0.0, 90.0), (12.0, 89.99999999)]))
@example((-180.0, 0.0, 1.0, [(180.0, 0.0), (179.999999, 0.0), (-179.999999, 0.0)]))
@example((0.0, 90.0, 2.0015114e7, [(0.0, -89.999999), (0.0, -90.0)]))
def test_the_bounds_of_a_circle_contain_all_of_it(
    drawn: tuple[float, float, float, list[tuple[float, float]]],
) -> None:
    lon, lat, radius, points = drawn
    bounds = circle_bounds(lon, lat, radius)
    west, south, east, north = bounds
    assert -180 <= west <= 180
    assert -180 <= east <= 180
    assert -90 <= south <= north <= 90
    for point in points:
        if oracle.distance_m(lon, lat, *point) <= radius:
            assert within_bounds(bounds, *point), (bounds, point)


@given(circles_and_points())
def test_circles_equal_the_oracle(
    drawn: tuple[float, float, float, list[tuple[float, float]]],
) -> None:
    lon, lat, radius, points = drawn
    # At the rim two ways of rounding a distance may differ; the specification fixes the rest.
    clear = [p for p in points if abs(oracle.distance_m(lon, lat, *p) - radius) > 0.0015]
    if clear:
        inside({"circle": {"lon": lon, "lat": lat, "radius_m": radius}}, *clear)


# --- polygons ---

SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
HOLE = [[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]


def test_edges_of_a_polygon_are_inside() -> None:
    square = {"polygon": [SQUARE]}
    assert all(inside(square, (0, 0), (4, 0), (4, 4), (0, 4), (2, 0), (0, 2), (4, 2), (2, 4)))
    assert not any(inside(square, (-1e-9, 2), (4.0000001, 2), (2, -1e-9), (5, 0), (-1, 4)))


def test_edges_of_a_hole_are_inside_too() -> None:
    ring = {"polygon": [SQUARE, HOLE]}
    assert inside(ring, (0.5, 2), (2, 2), (1, 2), (3, 3), (1, 1), (2, 1)) == [1, 0, 1, 1, 1, 1]


def test_even_odd() -> None:
    twice = {"polygon": [SQUARE, SQUARE]}
    assert inside(twice, (2, 2), (0, 2), (4, 4)) == [False, True, True]
    bow_tie = {"polygon": [[[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]]]}
    assert inside(bow_tie, (2, 2), (1, 2), (2, 1), (3, 2), (2, 3)) == [1, 1, 0, 1, 0]
    overlap = {"polygon": [SQUARE, [[2, 2], [6, 2], [6, 6], [2, 6], [2, 2]]]}
    assert inside(overlap, (1, 1), (3, 3), (5, 5), (2, 3)) == [1, 0, 1, 1]


def test_degenerate_polygons() -> None:
    line = {"polygon": [[[0, 0], [2, 2], [4, 4], [0, 0]]]}
    assert inside(line, (1, 1), (4, 4), (1, 2)) == [True, True, False]
    point = {"polygon": [[[1, 1]] * 4]}
    assert inside(point, (1, 1), (1, 2), (0, 0)) == [True, False, False]
    spike = {"polygon": [[[0, 0], [4, 0], [4, 4], [4, 9], [4, 4], [0, 4], [0, 0]]]}
    assert inside(spike, (4, 8), (2, 2), (3, 8), (4, 9.5)) == [1, 1, 0, 0]


def test_a_ray_through_corners_counts_them_once() -> None:
    diamond = {"polygon": [[[0, 0], [2, 2], [4, 0], [2, -2], [0, 0]]]}
    assert inside(diamond, (-1, 0), (1, 0), (2, 2), (-1, 2), (-1, -2), (5, 0)) == [0, 1, 1, 0, 0, 0]
    comb = {"polygon": [[[0, 0], [1, 2], [2, 0], [3, 2], [4, 0], [4, -1], [0, -1], [0, 0]]]}
    assert inside(comb, (-1, 0), (2, 0), (2, 1), (0.5, 0.5), (-1, 2)) == [0, 1, 0, 1, 0]


def test_180_and_minus_180_are_different_for_polygons() -> None:
    east = {"polygon": [[[170, 0], [180, 0], [180, 5], [170, 5], [170, 0]]]}
    assert inside(east, (180, 1), (-180, 1), (175, 1)) == [True, False, True]


coordinates = st.integers(-8, 8).map(float) | st.floats(-10, 10)
rings = st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=8)


@settings(max_examples=examples(150))
@given(st.lists(rings, min_size=1, max_size=3), st.lists(st.tuples(coordinates, coordinates)))
def test_polygons_equal_the_oracle(
    drawn: list[list[tuple[float, float]]], points: list[tuple[float, float]]
) -> None:
    closed = [[list(p) for p in [*ring, ring[0]]] for ring in drawn]
    corners = [(p[0], p[1]) for ring in closed for p in ring]
    inside({"polygon": closed}, *points, *corners)


def test_polygons_with_holes_equal_shapely() -> None:
    random = np.random.default_rng(5)
    for _ in range(40):
        angles = np.sort(random.uniform(0, 2 * np.pi, 12))
        radii = random.uniform(2, 8, 12)
        shell = np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1)
        rings = [shell, *(shell[::3] * 0.3 + random.uniform(-2, 2, 2) for _ in range(2))]
        closed = [np.concatenate([ring, ring[:1]]) for ring in rings]
        # Even-odd of rings that may overlap: the symmetric difference of the areas.
        area = shapely.Polygon()
        for ring in closed:
            area = shapely.symmetric_difference(area, shapely.make_valid(shapely.Polygon(ring)))
        edges = shapely.MultiLineString([shapely.LineString(ring) for ring in closed])
        points = random.uniform(-9, 9, (300, 2))
        clear = shapely.distance(edges, shapely.points(points)) > 1e-9
        expected = shapely.contains(area, shapely.points(points))[clear].tolist()
        got = inside({"polygon": [ring.tolist() for ring in closed]}, *map(tuple, points[clear]))
        assert got == expected


@pytest.mark.parametrize("count", [3, 10_000])
def test_bounds_of_polygons(count: int) -> None:
    random = np.random.default_rng(count)
    ring = np.stack([random.uniform(-180, 180, count), random.uniform(-90, 90, count)], 1)
    region = read_region({"polygon": [[*ring.tolist(), ring[0].tolist()]]})
    assert region.box == (*ring.min(0), *ring.max(0))


# --- errors ---


@pytest.mark.parametrize(
    ("region", "parts"),
    [
        (None, ["region", "box, circle, polygon", "None"]),
        ({}, ["region", "exactly one", "{}"]),
        ({"box": [0, 0, 1, 1], "circle": {}}, ["region", "exactly one"]),
        ({"bix": 1}, ["region", "box, circle, polygon", "bix"]),
        ({"box": [0, 0, 1]}, ["region.box", "west, south, east, north", "[0, 0, 1]"]),
        ({"box": "0,0,1,1"}, ["region.box", "0,0,1,1"]),
        ({"box": [0, 2, 1, 1]}, ["region.box", "south", "2", "1"]),
        ({"box": [181, 0, 1, 1]}, ["west", "180", "181"]),
        ({"box": [0, -90.5, 1, 1]}, ["south", "90", "-90.5"]),
        ({"box": [0, 0, "1", 1]}, ["east", "number", "'1'"]),
        ({"box": [0, 0, 1, True]}, ["north", "number", "True"]),
        ({"box": [math.inf, 0, 1, 1]}, ["west", "finite", "inf"]),
        ({"box": [10**400, 0, 1, 1]}, ["west", "finite"]),
        ({"circle": {"lon": 0, "lat": 0}}, ["region.circle", "radius_m"]),
        ({"circle": {"lon": 0, "lat": 0, "radius_m": 0}}, ["region.circle.radius_m", "> 0", "0"]),
        ({"circle": {"lon": 0, "lat": 91, "radius_m": 1}}, ["region.circle.lat", "91"]),
        ({"circle": 5}, ["region.circle", "5"]),
        ({"polygon": []}, ["region.polygon", "rings", "[]"]),
        ({"polygon": [SQUARE, SQUARE[:3]]}, ["region.polygon[1]", "4 positions"]),
        ({"polygon": [SQUARE[:4]]}, ["region.polygon[0]", "closed", "[0, 4]"]),
        ({"polygon": [[[0, 0], [1], [1, 1], [0, 0]]]}, ["region.polygon[0][1]", "[1]"]),
        ({"polygon": [[[0, 0], [1, 99], [1, 1], [0, 0]]]}, ["region.polygon[0][1][1]", "99"]),
        ({"box": list(range(100_000))}, ["region.box"]),
    ],
)
def test_errors_name_the_place(region: Any, parts: list[str]) -> None:
    with pytest.raises(InvalidEvent) as caught:
        read_region(region)
    message = str(caught.value)
    assert len(message) < 300
    for part in parts:
        assert part in message, message
