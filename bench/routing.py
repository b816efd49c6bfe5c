"""Routing: what making a plan and routing by it cost, beside matching the same objects."""

from __future__ import annotations

import time

import numpy as np

from bench.hybrid import make_case
from bench.partitioning import OBJECTS
from bench.queries import QuerySet, draw, query_set
from bench.settings import Choice
from bench.tables import save_table
from placewire.kinds.boolean.match import make_probe, match_segment
from placewire.plans.boolean.methods import METHODS
from placewire.plans.cost.calibrate import calibrate
from placewire.segments.segment import make_segment

SETS = ("Q1", "Q2", "Q3")
SUBSCRIPTIONS = 1_000_000
WORKERS = 8
ROUNDS = 3


def run(choice: Choice) -> None:
    """A table: seconds to make each plan, ns to route an object, and that over matching it."""
    drawn = draw(choice, OBJECTS, SUBSCRIPTIONS)
    load = calibrate().load
    columns = []
    for name in SETS:
        queries = query_set(name, drawn, SUBSCRIPTIONS)
        case = make_case(queries, load)
        match_ns = match_alone(queries)
        print(f"{name}: matching {match_ns:,.0f} ns an object", flush=True)
        column = {}
        for method, plan in METHODS.items():
            started = time.process_time()
            leaves = plan(case.sample, WORKERS, case.planned)
            build_s = time.process_time() - started
            route_ns = min(case.measure(leaves).route_ns for _ in range(ROUNDS))
            column[method] = (build_s, route_ns, 100 * route_ns / match_ns)
        columns.append(column)
    save_table(
        "routing",
        ("plan", *(f"{s}: {what}" for s in SETS for what in ("build s", "ns", "% of matching"))),
        [(method, *(v for column in columns for v in column[method])) for method in METHODS],
    )


def match_alone(queries: QuerySet) -> float:
    """Nanoseconds of one core to match an object where it was read."""
    segment = make_segment(queries.rows)
    o = queries.objects
    seconds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        nows = np.zeros(o.codes.size, np.int64)
        probe = make_probe(o.codes, o.lon, o.lat, nows, o.term_offsets, o.terms)
        match_segment(probe, segment)
        seconds.append(time.process_time() - started)
    return 1e9 * min(seconds) / o.codes.size
