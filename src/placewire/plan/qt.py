"""Plan `qt`, the leaves of a QT-tree; `quadtree` and `text`, SSTD's baselines, are its halves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placewire.plan.allocation import allocate
from placewire.plan.leaves import BY_LEAF, NO_SPLIT, Leaves, TextSplit, make_leaves
from placewire.plan.portion import WORLD, Box
from placewire.plan.qttree import BY_SPACE, BY_TEXT, EITHER, Node, find_leaves, grow_tree
from placewire.plan.questions import assume_kind
from placewire.plan.sample import Sample
from placewire.plan.sstd import SSTD, SstdCost
from placewire.plan.statistics import quarter_box
from placewire.plan.traits import SRQ

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
    """The heaviest leaf is always divided by text; one leaf, by hash if nobody asks for a term.

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


def overlay_nodes(nodes: Sequence[Node], box: Box) -> Iterator[tuple[Box, list[Node]]]:
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


def text_parts(node: Node) -> Iterator[Node]:
    """The nodes into which a node is divided by text: leaves, or quartered ones."""
    if not node.by_text:
        yield node
        return
    for child in node.children:
        yield from text_parts(child)


def make_split(sample: Sample, parts: Sequence[Node]) -> TextSplit:
    """The terms of each of a box's parts."""
    if len(parts) == 1:
        return NO_SPLIT
    lists = [part.keywords for part in parts if part.keywords is not None]
    return TextSplit(
        len(parts),
        sample.lexicon[np.concatenate(lists)],
        np.repeat(np.arange(len(parts), dtype=np.int32), [terms.size for terms in lists]),
    )
