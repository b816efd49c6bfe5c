"""Time Tornado's routing layer: points and ranges, routing units, propagation of summaries."""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.clock import best_of
from bench.cluster import ClusterRun
from bench.papers.tornado.queries import MIDDLE, Reading
from bench.papers.tornado.routes import RangeRoute, make_scan_route, make_tree_route
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import (
    MAX_LEVEL,
    boxes_to_ranges,
    codes_to_columns_rows,
    ranges_coarsened,
)
from placewire.kinds.boolean.index import counts_among_rows, cover_posts
from placewire.kinds.boolean.kernels.probes import Probe
from placewire.model.subscriptions import SubscriptionRows, take_slices
from placewire.plans.boolean.space_methods import plan_agrid
from placewire.plans.cost.tornado import FineGrid, make_grid, spread_lines
from placewire.plans.kernels.term_maps import GOLDEN, MIX, posts_into_maps
from placewire.plans.leaves import NO_SPLIT, Leaves, make_leaves
from placewire.plans.route.live_terms import LiveTerms, make_leaf_map
from placewire.plans.sample.sample import PLAN_LEVEL, Sample

UNITS = 7  # Tornado's default; it tries 1 to 12
SOME_UNITS = (1, 3, 5, 7, 10, 12)
PARTITIONS = (4, 9, 16, 25, 36, 64, 100)
GRID_SIDE = 1_000  # Tornado's grid
ROUTES = ("A-Grid", "grid", "R-tree")
POINT_HEADER = (
    "partitions",
    *(f"{route}, ns a point" for route in ROUTES),
    "A-Grid's lookup, ns a point",
    *(f"{route}, steps" for route in ROUTES),
)
RANGE_HEADER = (
    "range, %",
    "of the",
    "side, km",
    *(f"{route}, ns a range" for route in ROUTES),
    *(f"{route}, steps" for route in ROUTES),
    "partitions a range",
)
UNIT_HEADER = (
    "routing units",
    "objects/s, critical path",
    "of the workers alone, %",
    "objects/s, routing beside matching",
)
SUMMARY_HEADER = (
    "routing units",
    "operator",
    "broadcast, queries/s",
    "forward, queries/s",
    "forward/broadcast",
    "after the first half",
    "keywords sent a query",
)


def bound_objects(objects: Probe) -> tuple[int, int, int, int]:
    """The whole space in plan cells, ends outside; it has a cell in any case."""
    columns, rows = plan_cells(objects)
    (west, east), (south, north) = (
        np.percentile(at, MIDDLE).astype(np.int64).tolist() for at in (columns, rows)
    )
    return west, south, east + 1, north + 1


def plan_cells(objects: Probe) -> tuple[np.ndarray, np.ndarray]:
    """Column and row of each object's plan cell."""
    columns, rows = codes_to_columns_rows(objects.codes)
    return columns >> (MAX_LEVEL - PLAN_LEVEL), rows >> (MAX_LEVEL - PLAN_LEVEL)


def plan_uniform(objects: Probe, workers: int, summary: str) -> Leaves:
    """Equal parts of the whole space whatever their load; the outer ones reach to the edges."""
    down = max(k for k in range(1, int(np.sqrt(workers)) + 1) if workers % k == 0)
    west, south, east, north = bound_objects(objects)
    columns = spread_lines(west, east, 1, workers // down, workers // down)
    rows = spread_lines(south, north, 1, down, down)
    boxes = [
        (int(columns[c]), int(rows[r]), int(columns[c + 1]), int(rows[r + 1]))
        for c in range(columns.size - 1)
        for r in range(rows.size - 1)
    ]
    splits = [NO_SPLIT] * len(boxes)
    return make_leaves("uniform", workers, summary, boxes, splits, list(range(len(boxes))))


def lay_grid(objects: Probe) -> FineGrid:
    """Tornado's uniform grid over the whole space, coarser only where plan cells are."""
    west, south, east, north = bound_objects(objects)
    return make_grid(
        spread_lines(west, east, 1, 1, GRID_SIDE), spread_lines(south, north, 1, 1, GRID_SIDE)
    )


def make_routes(leaves: Leaves, grid: FineGrid) -> dict[str, RangeRoute]:
    """The three ways, by the names of ROUTES."""
    ways = (make_leaf_map(leaves), make_scan_route(leaves, grid), make_tree_route(leaves))
    return dict(zip(ROUTES, ways, strict=True))


def search_all(
    routes: dict[str, RangeRoute], cells: np.ndarray
) -> tuple[list[float], list[float], float]:
    """Nanoseconds and steps a range by each route, and the leaves a range, in which all agree."""
    found = {}
    for name, route in routes.items():
        offsets, leaf, steps = route.search(cells)
        owner = np.repeat(np.arange(cells.shape[0]), np.diff(offsets))
        found[name] = (offsets, leaf[np.lexsort((leaf, owner))], steps)
    first, leaves, _ = found[ROUTES[0]]
    for name, (offsets, leaf, _) in found.items():
        assert np.array_equal(offsets, first), name
        assert np.array_equal(leaf, leaves), name
    n = max(cells.shape[0], 1)
    ns = [1e9 * best_of(partial(route.search, cells)) / n for route in routes.values()]
    return ns, [steps / n for _, _, steps in found.values()], leaves.size / n


def time_points(objects: Probe, sample: Sample) -> list[tuple[object, ...]]:
    """Routing of points as they would arrive, not in the order of the curve."""
    columns, rows = plan_cells(objects)
    order = np.random.default_rng(5).permutation(columns.size)
    columns, rows = columns[order], rows[order]
    cells = np.column_stack([columns, rows, columns, rows])
    grid = lay_grid(objects)
    lines: list[tuple[object, ...]] = []
    for partitions in PARTITIONS:
        leaves = plan_agrid(sample, partitions)
        ns, steps, _ = search_all(make_routes(leaves, grid), cells)
        lookup = make_leaf_map(leaves).leaves_of_points
        lookup_s = best_of(partial(lookup, columns, rows))
        lines.append((partitions, *ns, 1e9 * lookup_s / columns.size, *steps))
    return lines


def time_ranges(
    objects: Probe, sample: Sample, sets: list[tuple[Reading, SubscriptionRows]], workers: int
) -> list[tuple[object, ...]]:
    """Routing of subscriptions of several sizes to the leaves of one plan."""
    routes = make_routes(plan_agrid(sample, workers), lay_grid(objects))
    lines: list[tuple[object, ...]] = []
    for reading, rows in sets:
        ranges = boxes_to_ranges(read_only(rows.box))
        cells = ranges_coarsened(ranges, MAX_LEVEL - PLAN_LEVEL)
        ns, steps, leaves = search_all(routes, cells)
        lines.append((*reading, *ns, *steps, leaves))
    return lines


def vary_units(run: ClusterRun) -> list[tuple[object, ...]]:
    """More routing units: dispatch is divided among them, the busiest worker stays."""
    busiest = float(run.busy_s.max())
    lines: list[tuple[object, ...]] = []
    for units in SOME_UNITS:
        each = run.dispatch_s / units
        lines.append(
            (
                units,
                run.objects / (each + busiest),
                100.0 * busiest / (each + busiest),
                run.objects / max(each, busiest),
            )
        )
    return lines


def spread_summaries(
    leaves: Leaves, operator: str, rows: SubscriptionRows
) -> list[tuple[object, ...]]:
    """What the routing layer takes in with each unit told of every query, or of new keywords only.

    Told of everything, all units do the same work, and more of them are no faster. Otherwise a unit
    has its share of the queries, and notes the keywords of a worker that were new to the others.
    """
    live = LiveTerms(leaves)
    live.rebuild([rows])
    add_s = best_of(lambda: live.add(rows))
    post_row, post_term = cover_posts(rows, counts_among_rows(rows))
    offsets, scopes = live.scopes_of(rows)
    scope_offsets, at = take_slices(offsets, post_row.astype(np.int64))
    of_post = np.repeat(np.arange(post_row.size), np.diff(scope_offsets))
    scope, term = scopes[at], post_term[of_post]
    keys = (term ^ ((scope.astype(np.int64) + 1).astype(np.uint64) * GOLDEN)) * MIX
    _, first = np.unique(keys, return_index=True)
    news = (
        read_only(np.arange(first.size, dtype=np.uint32)),
        read_only(term[first]),
        read_only(np.arange(first.size + 1, dtype=np.int64)),
        read_only(scope[first]),
    )
    note_s = best_of(lambda: posts_into_maps(*news, *live.tables))
    late = float(np.count_nonzero(post_row[of_post[first]] >= rows.total // 2)) / first.size
    lines: list[tuple[object, ...]] = []
    for units in SOME_UNITS:
        told_s = note_s * (units - 1) / units
        forward_s = add_s / units + told_s
        later_s = add_s / 2 / units + told_s * late
        lines.append(
            (
                units,
                operator,
                rows.total / add_s,
                rows.total / forward_s,
                add_s / forward_s,
                add_s / 2 / later_s,
                first.size / rows.total,
            )
        )
    return lines
