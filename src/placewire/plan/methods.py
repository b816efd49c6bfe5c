"""The methods by name: each makes a plan of a sample for a number of workers."""

from __future__ import annotations

from collections.abc import Callable

from placewire.plan.agrid import plan_agrid
from placewire.plan.cost import LoadModel
from placewire.plan.frequency import plan_frequency
from placewire.plan.hypergraph import plan_hypergraph
from placewire.plan.kdt import plan_kdt
from placewire.plan.kdtree import plan_kdtree
from placewire.plan.leaves import BY_LEAF, Leaves, TextSplit, make_leaves
from placewire.plan.leaves import NO_SPLIT as NO_TERMS
from placewire.plan.metric import plan_metric
from placewire.plan.qt import plan_qt, plan_quadtree, plan_text
from placewire.plan.rtree import plan_rtree
from placewire.plan.sample import SIDE, Sample
from placewire.plan.uniform import plan_grid

Method = Callable[[Sample, int, LoadModel], Leaves]


def plan_termhash(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Terms by their hash alone: what a keyed stream does when nobody plans."""
    split = TextSplit(workers, NO_TERMS.terms, NO_TERMS.part)
    return make_leaves(
        "termhash", workers, BY_LEAF, [(0, 0, SIDE, SIDE)], [split], list(range(workers))
    )


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
