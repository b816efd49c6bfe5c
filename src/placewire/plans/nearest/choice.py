"""The choice of a plan for `nearest` subscriptions, by cost: what each would do with a sample."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import codes_to_points
from placewire.kernels.space.circles import radii_to_limits
from placewire.kinds.boolean.match import make_probe
from placewire.kinds.candidates import Target
from placewire.kinds.nearest.index import CircleIndex, RowPartition, index_circles, one_part
from placewire.kinds.nearest.match import find_near
from placewire.model.subscriptions import NEAREST, SubscriptionRows, take_rows, take_slices
from placewire.plans.cost.choice import BYTES_A_SUBSCRIPTION, Machines, Prices, Score, score_parts
from placewire.plans.cost.measures import Objects
from placewire.plans.route.radius_route import LiveCircles, RadiusRoute
from placewire.segments.segment import Segment, make_directory

SAMPLED_ROWS = 100_000
SAMPLED_OBJECTS = 4_000
BYTES_A_NEAREST = 480.0


class NearChoice(NamedTuple):
    """The name of the plan to take, and why."""

    name: str
    why: str


class Met(NamedTuple):
    """Objects of a sample, the rows that they met, and how many postings one of these stands for.

    `circles` is the index of the rows, which are an even choice: every `step`-th.
    """

    objects: Objects
    rows: SubscriptionRows
    circles: CircleIndex
    row: NDArray[np.uint32]
    postings: float
    step: int


def meet_sample(rows: SubscriptionRows, radius: NDArray[np.float64], objects: Objects) -> Met:
    """Let some objects meet some of the rows."""
    step = max(1, -(-rows.total // SAMPLED_ROWS))
    picked = np.arange(0, rows.total, step)
    some = SubscriptionRows(*map(read_only, take_rows(rows, picked)))
    circles = index_circles(some, radius[picked], one_part(some.total))
    chosen = np.arange(0, objects.codes.size, max(1, -(-objects.codes.size // SAMPLED_OBJECTS)))
    offsets, at = take_slices(objects.term_offsets, chosen)
    objects = Objects(objects.codes[chosen], offsets, objects.terms[at])
    lon, lat = codes_to_points(objects.codes)
    probe = make_probe(objects.codes, lon, lat, np.zeros(lon.size, np.int64), *objects[1:])
    segment = Segment(NEAREST, some, circles, None, *make_directory(some))
    target = Target(segment, thresholds=radii_to_limits(radius[picked]))
    found = find_near(probe, target)
    postings = step * found.candidates / max(found.row.size, 1)
    return Met(objects, some, circles, found.row, postings, step)


def score_dealt(
    name: str, met: Met, owner: NDArray[np.int32], workers: int, prices: Prices, machines: Machines
) -> Score:
    """What a plan costs that deals the sample's rows out to `owner`."""
    objects = max(met.objects.codes.size, 1)
    own = owner[:: met.step]
    live = LiveCircles(workers)
    dealt = RowPartition(workers, own, np.zeros(own.size, np.float32))
    live.rebuild([(met.rows, met.circles._replace(partition=dealt))])
    started = time.perf_counter()
    sent = np.zeros(workers)
    for share in RadiusRoute(workers, live.words).cut(*met.objects):
        sent[share.worker] = share.objects.size
    route_ns = 1e9 * (time.perf_counter() - started) / objects
    meetings = met.postings * np.bincount(own[met.row], minlength=workers)
    held = np.bincount(owner, minlength=workers)
    return score_parts(
        name,
        route=route_ns / workers,
        shuffle=prices.shuffle * float(sent.sum()) / objects / workers,
        match=(prices.probe * sent + prices.candidate * meetings) / objects,
        insert=prices.insert * prices.inserts * held / max(owner.size, 1),
        share=float(sent.max(initial=0)) / objects,
        held=machines.workers_each * nearest_as_others(float(held.max(initial=0))),
        prices=prices,
        machines=machines,
    )


def score_undealt(met: Met, rows: int, workers: int, prices: Prices, machines: Machines) -> Score:
    """What matching where objects are read costs."""
    each = prices.candidate * met.postings * met.row.size / max(met.objects.codes.size, 1)
    return score_parts(
        "shared",
        route=0.0,
        shuffle=0.0,
        match=np.array([(prices.probe + each) / workers]),
        insert=np.array([prices.insert * prices.inserts / workers]),
        share=1.0 / workers,
        held=nearest_as_others(float(rows)),
        prices=prices,
        machines=machines,
    )


def nearest_as_others(rows: float) -> float:
    """How many boolean subscriptions take the memory of so many `nearest` ones."""
    return rows * BYTES_A_NEAREST / BYTES_A_SUBSCRIPTION


def choose_near(
    rows: SubscriptionRows,
    radius: NDArray[np.float64],
    objects: Objects,
    owners: Mapping[str, NDArray[np.int32]],
    workers: int,
    prices: Prices,
    machines: Machines,
) -> NearChoice:
    """Score `shared` and every way to deal the rows out; the cheapest wins."""
    met = meet_sample(rows, radius, objects)
    scores = [score_undealt(met, rows.total, workers, prices, machines)]
    for name, owner in owners.items():
        scores.append(score_dealt(name, met, owner, workers, prices, machines))
    best, *others = sorted(scores, key=lambda score: score.total)
    why = f"{best.name}: {best.total:.0f} ns an object ({best.explain()})"
    if others:
        why += f"; next {others[0].name}: {others[0].total:.0f} ({others[0].explain()})"
    return NearChoice(best.name, why)
