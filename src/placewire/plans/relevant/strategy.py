"""Partition `relevant` subscriptions: each posting of a row goes to one worker.

A row whose threshold sinks is indexed and assigned again, because its loose prefix grows then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placewire.kernels.space.cells import codes_to_points
from placewire.kinds.relevant.index import TermPartition
from placewire.kinds.relevant.rows import relevant_columns
from placewire.model.arrays import F64, I32, U64, Bools
from placewire.model.kinds import RELEVANT
from placewire.model.subscriptions import SubscriptionRows, take_rows, take_slices
from placewire.plans.allocation import hand_over, scale_costs, sum_loads
from placewire.plans.cost.measures import (
    Machines,
    PlanChoice,
    PlanWork,
    choose_partition,
    shared_work,
)
from placewire.plans.cost.model import Prices
from placewire.plans.kernels.term_maps import WIDE_CELL, Objects
from placewire.plans.relevant.methods import (
    NOT_POSTED,
    RELEVANT_METHODS,
    PointTree,
    RelevantRule,
    RelevantSample,
    TermParts,
    frequencies_of,
    grow_point_tree,
    plan_relevant,
)
from placewire.plans.route.worker_map import MapPosts, route_sample
from placewire.plans.row_planner import Division, PartitionStrategy, PlanInput
from placewire.plans.sample.sample import every_nth
from placewire.segments.segment import Segment

SAMPLED_ROWS = 50_000
SAMPLED_OBJECTS = 2_000
BYTES_A_RELEVANT = 1_200.0
NO_OBJECTS = np.empty((0, 2))
ONE_CELL = 0  # the level of a map without places


class RelevantStrategy(PartitionStrategy):
    """Assigns postings by place, by term or by both, as a method's rule says."""

    kind = RELEVANT
    name = "relevant"
    methods = RELEVANT_METHODS
    map_key = "terms"
    map_level = ONE_CELL
    sent_key = "objects"
    rule_type = RelevantRule
    rule: RelevantRule | None = None

    def assign(self, rows: SubscriptionRows, held: Any) -> TermPartition:
        if self.rule is None:
            by_hash = (rows.id_hash % np.uint64(self.workers)).astype(np.int32)
            return TermPartition(self.workers, np.repeat(by_hash, np.diff(rows.literal_offsets)))
        owner = self.rule.assign(rows, held.theta)
        return TermPartition(self.workers, owner, self.rule.order_terms(rows))

    def count_parts(self, segment: Segment) -> int:
        return partition_of(segment).parts

    def count_held(self, segment: Segment) -> F64:
        rows, workers = segment.rows, self.workers
        if segment.index.partition is None:
            return np.where(np.arange(workers) == 0, float(rows.total), 0.0)
        row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))
        owner = segment.index.partition.owner
        posted = owner >= 0
        pairs = np.unique(row[posted] * workers + owner[posted] % workers)
        return np.bincount(pairs % workers, minlength=workers).astype(np.float64)

    def is_undivided(self, segment: Segment) -> bool:
        return segment.index.partition is None

    def post_segment(self, segment: Segment) -> MapPosts:
        return post_literals(segment.rows, partition_of(segment), self.workers)

    def choose(self, seen: PlanInput, prices: Prices, machines: Machines) -> PlanChoice:
        return choose_relevant(make_relevant_sample(seen), self.workers, prices, machines)

    def divide(self, method: str, seen: PlanInput, counted: F64 | None) -> Division:
        sample = make_relevant_sample(seen)
        way = "assigned"
        if counted is None or self.rule is None:
            self.rule = plan_relevant(method, sample, self.workers)
            owner = self.rule.assign(sample.rows, sample.theta)
        else:
            words, frequency = np.unique(sample.terms, return_counts=True)
            rule = self.rule._replace(terms=words, frequency=frequency)
            former = self.rule.assign(sample.rows, sample.theta)
            self.rule = rebalance_rule(rule, sample.rows, sample.theta, counted)
            owner = self.rule.assign(sample.rows, sample.theta)
            way = f"rebalanced, {int((owner != former).sum())} postings moved"
        return Division(
            lambda one, rows, held: self.assign(rows, held),
            way,
            f"each to {count_copies(sample.rows, owner):.2f} workers",
        )

    def can_rebalance(self, method: str) -> bool:
        return method != "hash"


def rebalance_rule(
    rule: RelevantRule, rows: SubscriptionRows, theta: I32, counted: F64
) -> RelevantRule:
    """Move the cuts of a rule so that workers cost the same; `counted` is what they cost now.

    Every object with the term of a posting reads it. The cost of a worker is divided among its
    postings in that proportion. Then places are cut again, and terms change their workers.
    """
    if rule.name == "hash":
        return rule
    owner = rule.assign(rows, theta)
    posted = np.flatnonzero(owner != NOT_POSTED)
    often = frequencies_of(rows, rule.terms, rule.frequency)
    cost = np.zeros(owner.size)
    cost[posted] = scale_costs(owner[posted], often[posted] + 1.0, counted)
    row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))
    points = relevant_columns(rows).points

    def cut_places(here: Bools, leaves: int) -> PointTree:
        costs = sum_loads(row[here], cost[here], rows.total)
        some = np.flatnonzero(costs)
        return grow_point_tree(points[some], NO_OBJECTS, leaves, costs[some])

    everything = cost > 0.0
    if rule.name == "location":
        return rule._replace(trees=(cut_places(everything, rule.workers),))
    if rule.name in ("keyword", "prefix"):
        return rule._replace(words=(rebalance_terms(rule.words[0], rows.literal_term, cost),))
    if rule.name == "location+prefix":
        tree = cut_places(everything, rule.first)
        leaf = tree.leaves_of(points[:, 0], points[:, 1])[row]
        words = tuple(
            rebalance_terms(parts, rows.literal_term, np.where(leaf == number, cost, 0.0))
            for number, parts in enumerate(rule.words)
        )
        return rule._replace(trees=(tree,), words=words)
    whole = rebalance_terms(rule.words[0], rows.literal_term, cost)
    part = whole.of(rows.literal_term)
    trees = tuple(
        cut_places(everything & (part == number), rule.second) for number in range(rule.first)
    )
    return rule._replace(trees=trees, words=(whole,))


def rebalance_terms(former: TermParts, literals: U64, cost: F64) -> TermParts:
    """Parts of terms that cost the same, by the cost of each literal; few terms move."""
    posted = cost > 0.0
    terms, at = np.unique(np.concatenate([former.terms, literals[posted]]), return_inverse=True)
    costs = sum_loads(at[former.terms.size :], cost[posted], terms.size)
    return TermParts(terms, hand_over(former.of(terms), costs, former.parts), former.parts)


def partition_of(segment: Segment) -> TermPartition:
    """The partition of a segment's postings; without one the first worker has them all."""
    if segment.index.partition is not None:
        return segment.index.partition
    return TermPartition(1, np.zeros(segment.rows.literal_term.size, np.int32))


def post_literals(rows: SubscriptionRows, partition: TermPartition, workers: int) -> MapPosts:
    """Post every literal that has a posting under its term, wherever objects are."""
    posted = partition.owner >= 0
    terms, owner = rows.literal_term[posted], partition.owner[posted] % workers
    return MapPosts(
        np.arange(terms.size),
        terms,
        owner.astype(np.int32),
        np.arange(terms.size + 1),
        np.full(terms.size, WIDE_CELL, np.int64),
        ONE_CELL,
    )


def count_copies(rows: SubscriptionRows, owner: I32) -> float:
    """Count the workers that have a posting of a row, on average."""
    row = np.repeat(np.arange(rows.total), np.diff(rows.literal_offsets))
    posted = owner >= 0
    pairs = np.unique(row[posted] * (int(owner.max(initial=0)) + 1) + owner[posted])
    return float(pairs.size) / max(rows.total, 1)


def make_relevant_sample(seen: PlanInput) -> RelevantSample:
    """Make the sample that methods take of live rows and sampled objects."""
    theta = np.concatenate([one.results.buffers.theta for one in seen.segments])[seen.alive]
    lon, lat = codes_to_points(seen.objects.codes)
    rows = take_rows(seen.rows, seen.alive)
    return RelevantSample(rows, theta, lon, lat, seen.objects.term_offsets, seen.objects.terms)


def choose_relevant(
    sample: RelevantSample, workers: int, prices: Prices, machines: Machines
) -> PlanChoice:
    """Compare `shared` with the methods that fit: by term for short texts, by place for long ones.

    An object goes to as many workers as it has terms, if these are fewer than the workers. If not,
    partitioning by term saves no messages, and its copies only cost.
    """
    terms = float(np.diff(sample.term_offsets).mean()) if sample.lon.size else 0.0
    names = ("prefix", "location") if terms < workers else ("location", "hash")
    sample = thin_sample(sample)
    matches = count_matches(sample)
    shared = shared_work(sample.lon.size, sample.rows.total, matches)
    work = [measure_method(name, sample, matches, workers, prices) for name in names]
    note = f"; {terms:.1f} terms an object, {workers} workers"
    return choose_partition(shared, work, workers, prices, machines, BYTES_A_RELEVANT, note)


def thin_sample(sample: RelevantSample) -> RelevantSample:
    """Take rows and objects at even steps."""
    rows = np.arange(0, sample.rows.total, every_nth(sample.rows.total, SAMPLED_ROWS))
    chosen = np.arange(0, sample.lon.size, every_nth(sample.lon.size, SAMPLED_OBJECTS))
    offsets, at = take_slices(sample.term_offsets, chosen)
    return RelevantSample(
        take_rows(sample.rows, rows),
        sample.theta[rows],
        sample.lon[chosen],
        sample.lat[chosen],
        offsets,
        sample.terms[at],
    )


def count_matches(sample: RelevantSample) -> F64:
    """Count the sampled objects that have the term of each literal."""
    return frequencies_of(sample.rows, *np.unique(sample.terms, return_counts=True))


def measure_method(
    name: str, sample: RelevantSample, matches: F64, workers: int, prices: Prices
) -> PlanWork:
    """Measure the work of a plan that assigns the sample's postings by a method."""
    owner = plan_relevant(name, sample, workers).assign(sample.rows, sample.theta)
    posts = post_literals(sample.rows, TermPartition(workers, owner), workers)
    codes = np.zeros(sample.lon.size, np.uint32)  # places do not count
    sent, _ = route_sample(posts, workers, Objects(codes, sample.term_offsets, sample.terms))
    posted = owner >= 0
    rows_a_literal = sample.rows.total / max(sample.rows.literal_term.size, 1)
    return PlanWork(
        name,
        sample.lon.size,
        sample.rows.total,
        sent,
        np.bincount(owner[posted], minlength=workers) * rows_a_literal,
        np.bincount(owner[posted], matches[posted], workers),
        prices.probe,
    )
