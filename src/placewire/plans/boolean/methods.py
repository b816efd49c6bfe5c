"""The methods of `boolean` plans by name, and plans made from sampled objects and live rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from placewire.kernels.space.cells import codes_to_points
from placewire.kinds.boolean.match import make_probe, match_all
from placewire.model.arrays import F64
from placewire.model.subscriptions import SubscriptionRows, concat_rows, take_rows
from placewire.plans.boolean.kdt import plan_kdt
from placewire.plans.boolean.qt import plan_qt, plan_quadtree, plan_text
from placewire.plans.boolean.space_methods import plan_agrid, plan_grid, plan_kdtree, plan_rtree
from placewire.plans.boolean.term_methods import (
    plan_frequency,
    plan_hypergraph,
    plan_metric,
    plan_termhash,
)
from placewire.plans.cost.measures import choose_plan, measure_plan, post_rows, spread_workers
from placewire.plans.cost.model import LoadModel, calibrate
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import Leaves
from placewire.plans.sample.questions import Questions, add_questions
from placewire.plans.sample.sample import Sample, every_nth, make_sample
from placewire.plans.sample.sampler import Sampler
from placewire.segments.live_segment import LiveSegment
from placewire.segments.segment import whole_rows

SAMPLE_SUBSCRIPTIONS = 1_000_000
OF_ALL_KINDS = ("qt", "quadtree", "text")  # plans whose cost knows queries and other kinds
CANDIDATES = ("grid", "kdtree", "frequency", "kdt", "agrid", "qt")  # of `auto`


class Made(NamedTuple):
    """A plan, the cost model it was made by, and why; no leaves: objects are matched in place."""

    leaves: Leaves | None
    cost: LoadModel
    why: str


def make_plan(
    name: str,
    workers: int,
    sampler: Sampler,
    segments: Sequence[LiveSegment],
    others: Questions | None,
    machines: Callable[[], int],
) -> Made:
    """The plan of a method, or what `auto` chooses; `others` is what other kinds ask."""
    cost, prices, _ = calibrate()
    objects, rows = sampler.objects.in_order(), live_rows(segments)
    cost = cost.in_stream(int(objects.codes.size), rows.total)
    sample = make_sample(*objects, rows, cost.posting_work)
    if name in OF_ALL_KINDS:
        for questions in (sampler.queries, others):
            if questions is not None and questions.total:
                sample = add_questions(sample, questions, sampler.span_s)
    if name != "auto":
        leaves = METHODS[name](sample, workers, cost)
        return Made(leaves, cost, f"{leaves.total} leaves, made of {sampler.source}")
    posted = post_rows(rows)
    choice = choose_plan(
        [METHODS[one](sample, workers, cost) for one in CANDIDATES],
        lambda leaves: measure_plan(leaves, objects, posted, sample, cost),
        workers,
        prices,
        spread_workers(workers, machines(), memory_of_machine()),
    )
    return Made(choice.leaves, cost, choice.why)


def look_up(objects: Objects, segments: Sequence[LiveSegment]) -> F64:
    """Count the candidates of each object in the live segments, taken at the centre of its cell."""
    lon, lat = codes_to_points(objects.codes)
    probe = make_probe(objects.codes, lon, lat, np.zeros(lon.size, np.int64), *objects[1:])
    looked = np.zeros(lon.size)
    for found in match_all(probe, [(live.segment, live.dead) for live in segments]):
        if found.looked is not None:
            looked += found.looked
    return looked


def memory_of_machine() -> float:
    """Half of this machine's memory in bytes, which an index may use."""
    return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def live_rows(
    segments: Sequence[LiveSegment], most: int = SAMPLE_SUBSCRIPTIONS
) -> SubscriptionRows:
    """The live subscriptions, or every n-th of them."""
    total = sum(live.segment.rows.total - live.ended for live in segments)
    step = every_nth(total, most)
    parts = []
    for live in segments:
        rows = whole_rows(live.segment)
        alive = np.flatnonzero(~live.ended_mask()) if live.ended else np.arange(rows.total)
        parts.append(
            take_rows(rows, alive[::step]) if alive.size < rows.total or step > 1 else rows
        )
    return concat_rows(parts)


Method = Callable[[Sample, int, LoadModel], Leaves]

METHODS: dict[str, Method] = {
    "grid": plan_grid,
    "kdtree": plan_kdtree,
    "rtree": plan_rtree,
    "frequency": plan_frequency,
    "hypergraph": plan_hypergraph,
    "metric": plan_metric,
    "termhash": plan_termhash,
    "kdt": plan_kdt,
    "agrid": lambda sample, workers, cost: plan_agrid(sample, workers),
    "qt": lambda sample, workers, cost: plan_qt(sample, workers),
    "quadtree": lambda sample, workers, cost: plan_quadtree(sample, workers),
    "text": lambda sample, workers, cost: plan_text(sample, workers),
}

SPACE_METHODS = ("grid", "kdtree", "rtree")
TEXT_METHODS = ("frequency", "hypergraph", "metric")
