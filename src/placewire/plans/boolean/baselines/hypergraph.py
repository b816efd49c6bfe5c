"""Plan `hypergraph`: terms that occur together stay together, by cutting their hypergraph.

Terms are vertices, weighed by load. The posted terms of an object, and those a subscription is
posted under, are hyperedges, weighed by what a copy costs: one in several parts is copied to each.
Hyperedges are drawn as links between two terms, and METIS cuts that graph if `pymetis` is
installed. Otherwise terms are streamed into parts, which cuts a little more of it.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import lengths_to_offsets
from placewire.plans.allocation import share_heaviest_first
from placewire.plans.boolean.baselines.terms import count_terms, list_terms, loads_without_terms
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import Leaves
from placewire.plans.sample.sample import Sample

CORE_TERMS = 30_000  # so many, the heaviest, are cut as a graph; the others follow them
LINKS = 8  # a term is linked to so many on either side: hyperedges of up to 17 terms are cliques
SLACK = 1.03  # a part may get so much more than its share
PASSES = 5  # of streaming: when a term comes again, all its neighbours have a part
TERMS_PER_PART = 64  # METIS needs some choice; fewer terms are streamed
SEED = 7
WEIGHT_SUM = 1 << 28  # METIS adds up weights in 32 bits


class Graph(NamedTuple):
    """Links between terms as a CSR column; each is there from both of its ends."""

    offsets: NDArray[np.int64]
    ends: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def total(self) -> int:
        return int(self.offsets.size - 1)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The term each link starts from."""
        return np.repeat(np.arange(self.total), np.diff(self.offsets))


def plan_hypergraph(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Cut the graph of the heaviest terms; the others go where their neighbours are, if it fits."""
    counts = count_terms(sample)
    loads = cost.of_counts(counts.objects, counts.subscriptions)
    posted = counts.posted[np.argsort(-loads[counts.posted], kind="stable")]
    loads = loads[posted]
    graph = link_terms(sample, posted, cost)
    taken = loads_without_terms(sample, counts, workers, cost)
    shares = share_room(float(loads.sum()), taken)
    core = take_first(graph, CORE_TERMS)
    part = np.full(posted.size, -1, np.int32)
    part[: core.total] = cut_graph(core, loads[: core.total], shares)
    follow_neighbours(graph, loads, shares, taken, part)
    return list_terms("hypergraph", sample, workers, posted, part)


def share_room(total: float, taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """What share of a total load each part should get, so that all are level with what is taken."""
    room = np.maximum((total + taken.sum()) / taken.size - taken, 0.0)
    shares = room / room.sum() if room.any() else np.full(taken.size, 1 / taken.size)
    floored = np.maximum(shares, 1e-3 / taken.size)  # none is quite 0: METIS divides by them
    level: NDArray[np.float64] = floored / floored.sum()
    return level


def link_terms(sample: Sample, posted: NDArray[np.int64], cost: LoadModel) -> Graph:
    """The graph of the posted terms, in their order, from objects and from subscriptions."""
    number = np.full(sample.lexicon.size + 1, -1, np.int64)  # the last is that of no term, ANY
    number[posted] = np.arange(posted.size)
    drawn = [
        draw_hyperedges(sample.term_offsets, number[sample.terms], cost.of_counts(1, 0)),
        draw_hyperedges(sample.post_offsets, number[sample.posts], cost.of_counts(0, 1)),
    ]
    first, second, weights = (np.concatenate(column) for column in zip(*drawn, strict=True))
    pairs, place = np.unique(
        np.minimum(first, second) * posted.size + np.maximum(first, second), return_inverse=True
    )
    low, high = np.divmod(pairs, max(posted.size, 1))
    weights = np.bincount(place, weights, pairs.size)
    starts = np.concatenate([low, high])
    order = np.argsort(starts, kind="stable")
    return Graph(
        lengths_to_offsets(np.bincount(starts, minlength=posted.size)),
        np.concatenate([high, low])[order],
        np.concatenate([weights, weights])[order],
    )


def draw_hyperedges(
    offsets: NDArray[np.int64], terms: NDArray[np.int64], weight: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Links (two terms, a weight) that stand for the hyperedges of a CSR column; -1 is no term.

    The terms of a hyperedge stand in a circle, each linked to the `LINKS` next ones: a clique if
    they are few, and otherwise as many links as terms allow. A term's links add up to `weight`.
    """
    counted = terms >= 0
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))[counted]
    terms = terms[counted]
    sizes = np.bincount(owner, minlength=offsets.size - 1)
    begin = lengths_to_offsets(sizes)[:-1][owner]
    size = sizes[owner]
    place = np.arange(terms.size) - begin
    links: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for step in range(1, LINKS + 1):
        # Half-way round the circle two terms see each other: one of them draws the link.
        draws = np.flatnonzero((2 * step < size) | ((2 * step == size) & (place < step)))
        other = begin[draws] + (place[draws] + step) % size[draws]
        shares = weight / np.minimum(size[draws] - 1, 2 * LINKS)
        links.append((terms[draws], terms[other], shares))
    first, second, weights = (np.concatenate(column) for column in zip(*links, strict=True))
    return first, second, weights


def take_first(graph: Graph, count: int) -> Graph:
    """The first `count` terms of a graph and the links among them."""
    if graph.total <= count:
        return graph
    starts = graph.starts
    kept = (starts < count) & (graph.ends < count)
    lengths = np.bincount(starts[kept], minlength=count)
    return Graph(lengths_to_offsets(lengths), graph.ends[kept], graph.weights[kept])


def cut_graph(
    graph: Graph, loads: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.int32]:
    """The part of each term: little link weight between parts, loads in proportion to `shares`."""
    if has_metis() and graph.ends.size and graph.total >= TERMS_PER_PART * shares.size:
        return cut_with_metis(graph, loads, shares)
    return stream_terms(graph, loads, shares)


def has_metis() -> bool:
    """Whether METIS can be used; it is optional."""
    return importlib.util.find_spec("pymetis") is not None


def cut_with_metis(
    graph: Graph, loads: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.int32]:
    """METIS's multilevel cut."""
    pymetis = importlib.import_module("pymetis")
    _, part = pymetis.part_graph(
        shares.size,
        adjacency=pymetis.CSRAdjacency(graph.offsets, graph.ends),
        vweights=whole_weights(loads),
        eweights=whole_weights(graph.weights),
        tpwgts=shares.tolist(),
        options=pymetis.Options(seed=SEED, ufactor=round(1000 * (SLACK - 1))),
    )
    return np.array(part, np.int32)


def whole_weights(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Weights as whole numbers from 1 that METIS can add up."""
    scaled: NDArray[np.float64] = weights * (WEIGHT_SUM / max(weights.sum(), 1e-9))
    return np.maximum(scaled, 1.0).astype(np.int64)


def stream_terms(
    graph: Graph, loads: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.int32]:
    """In order, each term to the part with most weight of links to it, times the room left there.

    This is linear deterministic greedy streaming (Stanton and Kliot), passed over several times.
    A term without links to any part that has room goes to the part that it fills least.
    """
    limit = SLACK * loads.sum() * shares + 1e-9
    used = np.zeros(shares.size)
    part = np.full(loads.size, -1, np.int64)
    for _ in range(PASSES):
        for term, load in enumerate(loads.tolist()):
            if part[term] >= 0:
                used[part[term]] -= load
            near = slice(graph.offsets[term], graph.offsets[term + 1])
            pull = np.bincount(part[graph.ends[near]] + 1, graph.weights[near], shares.size + 1)[1:]
            left = 1 - (used + load) / limit
            score = pull * np.maximum(left, 0)
            best = int(score.argmax())
            if score[best] <= 0:
                best = int(left.argmax())
            part[term] = best
            used[best] += load
    return part.astype(np.int32)


def follow_neighbours(
    graph: Graph,
    loads: NDArray[np.float64],
    shares: NDArray[np.float64],
    taken: NDArray[np.float64],
    part: NDArray[np.int32],
) -> None:
    """Give a part to the terms that have none (-1): the one of most link weight while it has room.

    Those with the strongest links come first; those that find no room are placed by load alone.
    """
    wish = wish_parts(graph, part, shares.size)
    limit = SLACK * loads.sum() * shares
    used = np.bincount(part[part >= 0], loads[part >= 0], shares.size)
    for at in range(shares.size):
        wishes = wish.term[wish.part == at]
        fits = used[at] + loads[wishes].cumsum() <= limit[at]
        part[wishes[fits]] = at
        used[at] += loads[wishes[fits]].sum()
    rest = np.flatnonzero(part < 0)
    part[rest] = share_heaviest_first(loads[rest], used + taken)


class Wishes(NamedTuple):
    """Terms without a part and the part they have most links to, strongest first."""

    term: NDArray[np.int64]
    part: NDArray[np.int64]


def wish_parts(graph: Graph, part: NDArray[np.int32], parts: int) -> Wishes:
    """The wishes of all terms that have no part but neighbours in some."""
    starts = graph.starts
    asks = (part[starts] < 0) & (part[graph.ends] >= 0)
    keys, place = np.unique(starts[asks] * parts + part[graph.ends[asks]], return_inverse=True)
    pull = np.bincount(place, graph.weights[asks], keys.size)
    term, wished = np.divmod(keys, parts)
    order = np.lexsort((term, -pull))
    _, first = np.unique(term[order], return_index=True)
    strongest = order[np.sort(first)]
    return Wishes(term[strongest], wished[strongest])
