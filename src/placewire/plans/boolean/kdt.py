"""Plan `kdt`: PS2Stream's hybrid partitioning, a kd-tree some of whose leaves are cut by text.

First the world is cut as long as this yields regions whose objects and subscriptions have less
similar terms. Such regions split well by text, since few objects have terms of several parts. Then
nodes are cut by space or by text, whichever costs less, until there is one for each worker. Nodes
are merged to workers; while the workers are not balanced, the heaviest node is cut in two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32, I64
from placewire.plans.boolean.subset import (
    SampleSubset,
    cut_space,
    divide_by_text,
    find_cut,
    make_cut,
    measure_subset,
    price_space,
    price_text,
    share_terms,
    split_by_parts,
    text_similarity,
    weigh_subset,
    weigh_terms,
    whole_sample,
)
from placewire.plans.cost.model import LoadModel
from placewire.plans.kernels.parts import WORD_BITS, rows_given_to_worker, rows_held_by_workers
from placewire.plans.leaves import BY_CELL, NO_SPLIT, Leaves, TextSplit, make_leaves
from placewire.plans.sample.sample import Sample

DELTAS = (0.0, 0.1, 0.8)


class KdtNode(NamedTuple):
    """A node of the tree: a box of the world, or the part of it that some terms make up.

    `by_text` nodes are cut by text only (N_t in the paper, the others are N_s); `terms` i64 are
    the positions of the part's terms, None for all of the box; `solid` when it cannot be cut.
    """

    subset: SampleSubset
    load: float
    by_text: bool
    terms: I64 | None = None
    solid: bool = False


def plan_kdt(
    sample: Sample,
    workers: int,
    cost: LoadModel,
    *,
    delta: float | None = None,
    same: float = 0.2,
    sigma: float = 1.5,
    theta: int = 256,
) -> Leaves:
    """Algorithm 1 of PS2Stream; the paper names no values for its thresholds.

    `delta` is the similarity below which a node is cut by text, and `same` the relative difference
    within which two cosines count as "approximately" equal. A node above `delta` is cut
    by whichever costs less, one below it by text whatever that costs, and only what is below it is
    searched for regions that differ in their words. No one value is good everywhere (`python -m
    bench run hybrid`): without one, `DELTAS` are tried and the least sum of level loads taken.

    `sigma` is how many times the smallest load the largest may be. From 1.5 down to 1.1 the sum of
    loads of the same posts grew by 14 to 16 % at 24 and 32 workers, for 0 to 3 % off the largest.
    `theta` is the most nodes to cut for that; the search by similarity may make half of them.
    """
    sent = without_dropped(sample)
    ways = {}
    for threshold in DELTAS if delta is None else (delta,):
        boxes = cut_by_similarity(sample, cost, threshold, same, max(1, theta // 2))
        found = tuple((subset.box, by_text) for subset, by_text in boxes)
        if found not in ways:
            ways[found] = finish_plan(sent, boxes, workers, cost, sigma, theta)
    nodes, merged = min(ways.values(), key=lambda way: (way[1].balance > sigma, way[1].loads.sum()))
    return join_leaves(sent, nodes, merged, workers)


def finish_plan(
    sample: Sample,
    boxes: list[tuple[SampleSubset, bool]],
    workers: int,
    cost: LoadModel,
    sigma: float,
    theta: int,
) -> tuple[list[KdtNode], MergedParts]:
    """The second phase: nodes for all workers, and their workers."""
    nodes = [make_node(sample, subset, cost, by_text) for subset, by_text in boxes]
    if len(nodes) < workers:
        nodes = cut_for_workers(sample, nodes, workers, cost)
    return level_workers(sample, nodes, workers, cost, sigma, theta)


def without_dropped(sample: Sample) -> Sample:
    """The sample as the router will send it, knowing the terms that are asked for in each cell.

    Objects that no posting is near make no work, and terms without a posting near their object
    are left out: by such a term a part gets no copy of the object.
    """
    if sample.object_work.size == 0:
        return sample
    near = sample.pair_work > 0.0
    return sample._replace(
        term_offsets=np.concatenate([[0], np.cumsum(near)])[sample.term_offsets],
        terms=sample.terms[near],
        pair_work=sample.pair_work[near],
        object_work=np.where(sample.object_work > 1.0, sample.object_work, 0.0),
    )


def cut_by_similarity(
    sample: Sample, cost: LoadModel, delta: float, same: float, most: int
) -> list[tuple[SampleSubset, bool]]:
    """The first phase: cut boxes as long as that makes one side's texts less similar.

    Returns the boxes, each with whether it is to be cut by text. It makes at most `most`, which the
    paper leaves open; breadth first, so that the limit stops it at the same depth everywhere.
    """
    boxes: list[tuple[SampleSubset, bool]] = []
    root = whole_sample(sample)
    waiting = deque([(root, text_similarity(sample, root))])
    while waiting:
        subset, similarity = waiting.popleft()
        sides: list[tuple[SampleSubset, float]] = []
        if similarity < delta and len(boxes) + len(waiting) + 2 <= most:
            sides = least_similar_sides(sample, subset, cost)
        least = min((alike for _, alike in sides), default=similarity)
        if abs(least - similarity) <= same * similarity:
            boxes.append((subset, similarity < delta))
        else:
            waiting.extend(sides)
    return boxes


def least_similar_sides(
    sample: Sample, subset: SampleSubset, cost: LoadModel
) -> list[tuple[SampleSubset, float]]:
    """The two sides, with their similarities, of the cut that has the least similar side."""
    cuts = [find_cut(sample, subset, cost, axis) for axis in (0, 1)]
    ways = [
        [(side, text_similarity(sample, side)) for side in make_cut(sample, subset, cut)]
        for cut in cuts
        if cut is not None
    ]
    return min(ways, key=lambda way: min(alike for _, alike in way), default=[])


def cut_for_workers(
    sample: Sample, nodes: list[KdtNode], workers: int, cost: LoadModel
) -> list[KdtNode]:
    """Cut fewer nodes than workers into as many as workers, at the least total load."""
    most = workers - len(nodes) + 1
    prices = np.array([price_parts(sample, node, most, cost) for node in nodes])
    counts = count_partitions(prices, workers)
    return [
        part
        for node, parts in zip(nodes, counts, strict=True)
        for part in partition_node(sample, node, parts, cost)
    ]


def price_parts(sample: Sample, node: KdtNode, most: int, cost: LoadModel) -> F64:
    """The total load of a node in 1 .. `most` parts, as `partition_node` would make them."""
    weighed = weigh_terms(sample, node.subset, cost)
    by_text = price_text(sample, node.subset, weighed, most, cost)
    if node.by_text and np.isfinite(by_text).all():
        return by_text
    by_space = price_space(sample, node.subset, most, cost)
    if node.by_text:
        return np.where(np.isfinite(by_text), by_text, by_space)
    return np.minimum(by_text, by_space)


def count_partitions(prices: F64, total: int) -> list[int]:
    """Into how many parts to cut each node for the least sum of loads: `total` in all.

    `prices` f64[nodes, k] has the load of node i in k + 1 parts, infinite where that cannot be.
    Where no choice makes `total`, the most parts that can be had are made.
    """
    nodes, most = prices.shape
    least = np.full((nodes + 1, total + 1), np.inf)
    least[0, 0] = 0.0
    taken = np.zeros((nodes + 1, total + 1), np.int64)
    for i in range(1, nodes + 1):
        for j in range(i, total + 1):
            k = np.arange(1, min(most, j - i + 1) + 1)
            sums = least[i - 1, j - k] + prices[i - 1, k - 1]
            best = int(np.argmin(sums))
            least[i, j] = sums[best]
            taken[i, j] = k[best]
    j = int(np.flatnonzero(np.isfinite(least[nodes]))[-1])
    counts = []
    for i in range(nodes, 0, -1):
        counts.append(int(taken[i, j]))
        j -= counts[-1]
    return counts[::-1]


def partition_node(sample: Sample, node: KdtNode, parts: int, cost: LoadModel) -> list[KdtNode]:
    """A node in `parts` parts, or in as many as it can be cut into.

    A node of text is cut by text; only one that has too few terms, and is still a whole box, goes
    the way of the others: by space or by text, as is the lesser load.
    """
    if parts == 1:
        return [node]
    by_text = cut_by_text(sample, node, parts, cost)
    if node.terms is not None or (node.by_text and len(by_text) == parts):
        return by_text
    by_space = [
        make_node(sample, subset, cost, node.by_text)
        for subset in cut_space(sample, node.subset, parts, cost)
    ]
    return min((by_space, by_text), key=lambda way: (-len(way), sum(part.load for part in way)))


def cut_by_text(sample: Sample, node: KdtNode, parts: int, cost: LoadModel) -> list[KdtNode]:
    """A node's terms in parts; the node alone if no cut makes its heaviest part lighter."""
    weighed = weigh_terms(sample, node.subset, cost, node.terms)
    parts = min(parts, weighed.most_parts())
    if parts == 1:
        return [node]
    part_of_term = share_terms(sample, weighed, parts)
    cut = [
        make_node(sample, subset, cost, by_text=True, terms=np.flatnonzero(part_of_term == part))
        for part, subset in enumerate(divide_by_text(sample, node.subset, part_of_term, parts))
    ]
    return cut if max(part.load for part in cut) < node.load else [node]


def make_node(
    sample: Sample, subset: SampleSubset, cost: LoadModel, by_text: bool, terms: I64 | None = None
) -> KdtNode:
    """A node with its load."""
    return KdtNode(subset, weigh_subset(sample, subset, cost), by_text, terms)


def level_workers(
    sample: Sample, nodes: list[KdtNode], workers: int, cost: LoadModel, sigma: float, theta: int
) -> tuple[list[KdtNode], MergedParts]:
    """Merge nodes to workers, and cut the heaviest in two while the workers are not balanced.

    Ends too when there are `theta` nodes, or when a node that cannot be cut outweighs what the
    other workers can get: to cut those would add copies and not make anything level.
    """
    nodes = list(nodes)
    while True:
        merged = merge_subsets(sample, [node.subset for node in nodes], workers, cost)
        if merged.balance <= sigma:
            return nodes, merged
        grown = len(nodes)
        while len(nodes) == grown:
            at = heaviest_to_cut(nodes, workers, sigma)
            if at is None or len(nodes) >= theta:
                return nodes, merged
            halves = partition_node(sample, nodes[at], 2, cost)
            # In the place of their node: the parts of a box stay together and in order.
            nodes[at : at + 1] = halves if len(halves) > 1 else [nodes[at]._replace(solid=True)]


def heaviest_to_cut(nodes: list[KdtNode], workers: int, sigma: float) -> int | None:
    """The place of the heaviest node that can be cut, or None if cutting is of no use."""
    solid = max((node.load for node in nodes if node.solid), default=0.0)
    rest = sum(node.load for node in nodes) - solid
    if workers == 1 or solid > sigma * rest / (workers - 1):
        return None
    loose = [at for at, node in enumerate(nodes) if not node.solid]
    return max(loose, key=lambda at: nodes[at].load, default=None)


def join_leaves(sample: Sample, nodes: list[KdtNode], merged: MergedParts, workers: int) -> Leaves:
    """The plan: a leaf for each box, with a part for each of its nodes."""
    boxes, splits = [], []
    for box, in_box in groupby(nodes, key=lambda node: node.subset.box):
        parts = list(in_box)
        boxes.append(box)
        splits.append(join_parts(sample, parts) if len(parts) > 1 else NO_SPLIT)
    return make_leaves("kdt", workers, BY_CELL, boxes, splits, merged.worker.tolist())


def join_parts(sample: Sample, parts: list[KdtNode]) -> TextSplit:
    """The text split of a box: every term that a part has, the others by their hash."""
    part_of_term = np.full(sample.lexicon.size, -1, np.int32)
    for part, node in enumerate(parts):
        part_of_term[node.terms] = part
    return split_by_parts(sample, part_of_term, len(parts))


class MergedParts(NamedTuple):
    """The worker of each part i32[parts], and the load of each worker f64[workers]."""

    worker: I32
    loads: F64

    @property
    def balance(self) -> float:
        return ratio_of_loads(self.loads)


def merge_subsets(
    sample: Sample, subsets: Sequence[SampleSubset], workers: int, cost: LoadModel
) -> MergedParts:
    """Assign subsets to workers; a worker counts an object or row of several of its parts once.

    Heaviest first, each to the worker whose load it raises least, or to the one with the least load
    if the balance would suffer.
    """
    words = -(-workers // WORD_BITS)
    objects = np.zeros((sample.objects, words), np.uint64)
    subscriptions = np.zeros((sample.subscriptions, words), np.uint64)
    object_counts = np.zeros(workers)  # objects, or what they cost
    subscription_counts = np.zeros(workers, np.int64)
    alone = np.array([weigh_subset(sample, p, cost) for p in subsets])
    loads, chosen = np.zeros(workers), np.zeros(alone.size, np.int32)
    for part in np.argsort(-alone, kind="stable").tolist():
        rows, work = subsets[part], measure_subset(sample, subsets[part])
        worker = int(np.argmin(loads))
        if loads[worker] <= 0.0:
            loads[worker] = alone[part]
        else:
            seen = rows_held_by_workers(objects, rows.objects, workers)
            held = rows_held_by_workers(subscriptions, rows.subscriptions, workers)
            heavier = cost.of_counts(
                object_counts + work - seen,
                subscription_counts + rows.subscriptions.size - held,
            )
            least = int(np.lexsort((loads, heavier - loads))[0])
            after = loads.copy()
            after[least] = heavier[least]
            if ratio_of_loads(after) <= ratio_of_loads(loads):
                worker = least
            loads[worker] = heavier[worker]
        given = rows_given_to_worker(objects, rows.objects, worker)
        object_counts[worker] += work - (rows.objects.size - given)
        subscription_counts[worker] += rows_given_to_worker(
            subscriptions, rows.subscriptions, worker
        )
        chosen[part] = worker
    return MergedParts(chosen, loads)


def ratio_of_loads(loads: F64) -> float:
    """The largest load over the smallest; infinite if a worker has none of the load."""
    if loads.max() <= 0.0:
        return 1.0
    return float(loads.max() / loads.min()) if loads.min() > 0.0 else np.inf
