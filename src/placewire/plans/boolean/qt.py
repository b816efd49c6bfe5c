"""The QT-tree of SSTD: the heaviest leaf is quartered in space or divided by text.

Three things differ from SSTD. Terms are shared out, not objects: an object that is kept belongs to
the part with most of its terms, one that only passes by is sent to several parts of a leaf. In a
sample where nothing is kept, objects that nothing in a leaf can ask for are not sent and are no
workload. Quarters without workload are not counted as leaves: on a world where all objects are in
one town, most would be empty.

SSTD's workload of a continuous query does not depend on text, so a sample of boolean subscriptions
is divided by text only where space has no say: among objects of one place with one asked term
each. Snapshot queries make it divide more.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placewire.model.arrays import I32, I64, Bools
from placewire.plans.allocation import allocate
from placewire.plans.boolean.subset import (
    WORLD,
    Box,
    SampleSubset,
    needs_no_term,
    quarter_box,
    take_box,
    whole_sample,
)
from placewire.plans.cost.sstd import SSTD, CellStatistics, SstdCost, describe_cell
from placewire.plans.kernels.leaves import rows_to_likely_parts
from placewire.plans.kernels.parts import (
    AskedTerms,
    TermLists,
    rows_to_parts,
    terms_counted,
    terms_to_objects,
    terms_to_parts,
)
from placewire.plans.leaves import BY_LEAF, NO_SPLIT, Leaves, TextSplit, make_leaves
from placewire.plans.sample.questions import assume_kind, traits_of
from placewire.plans.sample.sample import SKQ, SRQ, Sample

TEXT_PARTS = 4
ROUNDING = 1e-9  # relative: workloads are sums of floats
NO_ROWS = np.empty(0, np.int64)

# How a tree may split its nodes.
EITHER, BY_SPACE, BY_TEXT = "either", "space", "text"


@dataclass(slots=True)
class QtNode:
    """A node of the tree: the objects sent there and its subscriptions; none once it is split.

    `cell` has the statistics of these. Where an ancestor is divided by text, `keywords` are the
    terms of the node, ascending, and the `first` of its parts has the subscriptions that need no
    term. Children divided by text have the node's box, others are its quarters in order.
    """

    subset: SampleSubset
    cell: CellStatistics
    load: float
    keywords: I64 | None
    first: bool
    by_text: bool = False
    children: tuple[QtNode, ...] = ()


def grow_tree(sample: Sample, cost: SstdCost, theta: int, way: str = EITHER) -> QtNode:
    """Split the heaviest leaf until `theta` leaves have workload or none can be split to effect.

    Where there is no workload at all, the world is quartered evenly, or stays one leaf (BY_TEXT).
    """
    sample = sample._replace(traits=traits_of(sample))
    root = measure_node(sample, cost, whole_sample(sample))
    blank = root.load == 0
    heap = [(-root.load, 0, root)]
    leaves, pushed = 1, 1
    while heap and leaves < theta:
        _, _, node = heapq.heappop(heap)
        by_space = () if way == BY_TEXT else quarter_node(sample, cost, node)
        by_text = () if way == BY_SPACE or blank else divide_node(sample, cost, node)
        free = way != EITHER  # a split need not pay where there is no other
        space, text = split_load(node, by_space, free=free), split_load(node, by_text, free=free)
        if min(space, text) == np.inf:
            continue
        textual = text < space * (1 - ROUNDING)
        close_node(node, by_text if textual else by_space, by_text=textual)
        fresh = [leaf for leaf in find_leaves(node) if blank or leaf.load > 0]
        for leaf in fresh:
            heapq.heappush(heap, (-leaf.load, pushed, leaf))
            pushed += 1
        leaves += len(fresh) - 1
    return root


def find_leaves(node: QtNode) -> Iterator[QtNode]:
    """The leaves under a node, in order."""
    if not node.children:
        yield node
    for child in node.children:
        yield from find_leaves(child)


def split_load(node: QtNode, children: Sequence[QtNode], *, free: bool = False) -> float:
    """The total workload after a split, infinite if it would be of no use.

    It is of use if it leaves no leaf as heavy as the node was and, unless it is `free`, does not
    raise the total.
    """
    loads = [leaf.load for child in children for leaf in find_leaves(child)]
    if not loads:
        return np.inf
    if node.load > 0 and (
        (sum(loads) > node.load * (1 + ROUNDING) and not free)
        or max(loads) >= node.load * (1 - ROUNDING)
    ):
        return np.inf
    return sum(loads)


def close_node(node: QtNode, children: tuple[QtNode, ...], *, by_text: bool) -> None:
    """Make a leaf an inner node; its rows are its children's now."""
    node.children = children
    node.by_text = by_text
    node.subset = SampleSubset(node.subset.box, NO_ROWS, NO_ROWS)


def measure_node(
    sample: Sample,
    cost: SstdCost,
    subset: SampleSubset,
    cell: CellStatistics | None = None,
    keywords: I64 | None = None,
    *,
    first: bool = True,
) -> QtNode:
    """A leaf with those objects of a subset that are sent to it; `cell` if that is known.

    Where objects are kept, all are.
    """
    size = sample.lexicon.size
    if cell is None:
        cell = describe_cell(sample, subset.objects, subset.subscriptions)
    kept = traits_of(sample).kept
    asked = np.ones(size, np.bool_) if kept else mask_terms(size, cell.keywords)
    if keywords is not None and not kept:
        asked &= mask_terms(size, keywords)
    if not kept and not (first and needs_no_term(sample, subset)):
        part = np.where(asked, 0, -1).astype(np.int32)
        _, sent = rows_to_parts(sample.term_offsets, sample.terms, subset.objects, part, 1, -1)
        subset = subset._replace(objects=sent)
    cell = cell._replace(objects=int(subset.objects.size))
    present = terms_counted(sample.term_offsets, sample.terms, subset.objects, size) > 0
    return QtNode(subset, cell, cost.weigh_cell(cell, present & asked), keywords, first)


def mask_terms(size: int, terms: NDArray[np.integer]) -> Bools:
    """bool[size], true at these terms."""
    mask = np.zeros(size, np.bool_)
    mask[terms] = True
    return mask


def quarter_node(sample: Sample, cost: SstdCost, node: QtNode) -> tuple[QtNode, ...]:
    """Four leaves of equal size, or none for one plan cell.

    A quarter that is as heavy as the node is quartered on, until its objects part: each level on
    its own would seem to be of no use.
    """
    box = node.subset.box
    if box[2] - box[0] == 1:
        return ()
    quarters = tuple(
        measure_node(sample, cost, subset, None, node.keywords, first=node.first)
        for subset in (take_box(sample, node.subset, quarter) for quarter in quarter_box(box))
    )
    for quarter in quarters:
        if 0 < node.load * (1 - ROUNDING) <= quarter.load and (
            deeper := quarter_node(sample, cost, quarter)
        ):
            close_node(quarter, deeper, by_text=False)
    return quarters


def divide_node(sample: Sample, cost: SstdCost, node: QtNode) -> tuple[QtNode, ...]:
    """Leaves of the same box that share its keywords, or none if there are not two.

    The subscriptions stay with all of them: SSTD counts a query wherever its region reaches.
    """
    terms = np.unique(node.cell.keywords)
    if node.keywords is not None:
        terms = np.intersect1d(terms, node.keywords)
    if terms.size < 2:
        return ()
    part = share_terms(sample, cost, node, terms)
    subsets = [node.subset] * TEXT_PARTS
    if traits_of(sample).kept:
        subsets = part_objects(sample, node.subset, terms, part)
    return tuple(
        measure_node(
            sample, cost, subsets[p], node.cell, terms[part == p], first=node.first and p == 0
        )
        for p in range(TEXT_PARTS)
    )


def part_objects(
    sample: Sample, subset: SampleSubset, terms: NDArray[np.integer], part: I32
) -> list[SampleSubset]:
    """The subsets of parts of which each keeps the objects that have most terms there."""
    part_of_term = np.full(sample.lexicon.size, -1, np.int32)
    part_of_term[terms] = part
    of_object = rows_to_likely_parts(
        sample.term_offsets, sample.terms, subset.objects, part_of_term, sample.lexicon, TEXT_PARTS
    )
    return [subset._replace(objects=subset.objects[of_object == p]) for p in range(TEXT_PARTS)]


def share_terms(sample: Sample, cost: SstdCost, node: QtNode, terms: NDArray[np.integer]) -> I32:
    """The part of each term, by least increment of workload, heaviest terms first."""
    subset, cell = node.subset, node.cell
    size = sample.lexicon.size
    number = np.full(size, -1, np.int32)
    number[terms] = np.arange(terms.size)
    offsets, positions = terms_to_objects(
        sample.term_offsets, sample.terms, subset.objects, number, terms.size
    )
    rows = np.bincount(cell.keywords, cell.keyword_counts, minlength=size)[terms]
    weights = cost.weigh_kinds(cell)
    kinds = [SRQ, SKQ]
    shares = np.zeros((size, len(kinds)))
    for at, kind in enumerate(kinds):
        keywords, counts = cell.keywords_of(kind)
        shares[keywords, at] = counts / max(counts.sum(), 1)
    order = np.argsort(-rows * np.diff(offsets), kind="stable")
    steady = float(weights.sum() - weights[kinds].sum())
    everything = not traits_of(sample).kept and node.first and needs_no_term(sample, subset)
    return terms_to_parts(
        TermLists(order, offsets, positions),
        AskedTerms(weights[kinds], cell.chances[kinds], shares[terms], steady),
        subset.objects.size,
        everything,
        TEXT_PARTS,
    )


THETA = 64  # as in SSTD; more leaves even workers out, but hold many subscriptions twice
NAMES = {EITHER: "qt", BY_SPACE: "quadtree", BY_TEXT: "text"}


def plan_qt(
    sample: Sample, workers: int, cost: SstdCost = SSTD, *, theta: int = THETA, way: str = EITHER
) -> Leaves:
    """A QT-tree of about `theta` leaves, allocated to workers by differencing."""
    root = grow_tree(sample, cost, theta, way)
    leaves = list(find_leaves(root))
    of_leaf = allocate(np.array([leaf.load for leaf in leaves]), workers)
    worker = {id(leaf): int(w) for leaf, w in zip(leaves, of_leaf, strict=True)}
    boxes, splits, part_workers = [], [], []
    for box, parts in overlay_nodes([root], WORLD):
        boxes.append(box)
        splits.append(make_split(sample, parts))
        part_workers += [worker[id(part)] for part in parts]
    return make_leaves(NAMES[way], workers, BY_LEAF, boxes, splits, part_workers)


def plan_quadtree(sample: Sample, workers: int) -> Leaves:
    """The heaviest leaf is always quartered."""
    return plan_qt(sample, workers, way=BY_SPACE)


def plan_text(sample: Sample, workers: int) -> Leaves:
    """The heaviest leaf is always divided by text; one leaf, by hash if no query has a term.

    Boolean subscriptions alone are weighed as if they asked once: to SSTD continuous queries cost
    the same in every part, which would tell nothing about where a term should be.
    """
    if sample.traits is None:
        sample = sample._replace(traits=assume_kind(sample, SRQ))
    leaves = plan_qt(sample, workers, way=BY_TEXT)
    if leaves.part_worker.size > 1:
        return leaves
    by_hash = NO_SPLIT._replace(parts=workers)
    return make_leaves(NAMES[BY_TEXT], workers, BY_LEAF, [WORLD], [by_hash], list(range(workers)))


def overlay_nodes(nodes: Sequence[QtNode], box: Box) -> Iterator[tuple[Box, list[QtNode]]]:
    """The boxes of the plan with their parts, for nodes that share a box by text.

    Where one of them is quartered, the box is, and the others have a part in each quarter.
    """
    parts = [part for node in nodes for part in text_parts(node)]
    if not any(part.children for part in parts):
        yield box, parts
        return
    for at, quarter in enumerate(quarter_box(box)):
        yield from overlay_nodes(
            [part.children[at] if part.children else part for part in parts], quarter
        )


def text_parts(node: QtNode) -> Iterator[QtNode]:
    """The nodes into which a node is divided by text: leaves, or quartered ones."""
    if not node.by_text:
        yield node
        return
    for child in node.children:
        yield from text_parts(child)


def make_split(sample: Sample, parts: Sequence[QtNode]) -> TextSplit:
    """The terms of each of a box's parts."""
    if len(parts) == 1:
        return NO_SPLIT
    lists = [part.keywords for part in parts if part.keywords is not None]
    return TextSplit(
        len(parts),
        sample.lexicon[np.concatenate(lists)],
        np.repeat(np.arange(len(parts), dtype=np.int32), [terms.size for terms in lists]),
    )
