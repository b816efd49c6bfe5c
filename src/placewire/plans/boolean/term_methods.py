"""Plans of one leaf whose terms are divided among workers, by text alone.

`frequency`, `metric` and `termhash` place terms one by one. `hypergraph` keeps terms that occur
together together. Terms are its vertices, weighed by load; the posted terms of an object, and those
a subscription is posted under, are hyperedges, weighed by what a copy costs. Hyperedges are drawn
as links between two terms, and METIS cuts that graph if `pymetis` is installed. Otherwise terms are
streamed into parts, which cuts a little more of it.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import NamedTuple

import numpy as np

from placewire.model.arrays import F64, I32, I64, Bools
from placewire.model.subscriptions import lengths_to_offsets
from placewire.plans.allocation import share_heaviest_first
from placewire.plans.boolean.subset import WORLD
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import BY_LEAF, NO_SPLIT, Leaves, TextSplit, make_leaves
from placewire.plans.sample.sample import SIDE, Sample


class TermCounts(NamedTuple):
    """What each term of the lexicon brings to its part: i64[lexicon] twice.

    `objects` counts none for a term under which no subscription is posted: they are dropped.
    `anywhere` subscriptions need no term; they belong to part 0, which then sees every object.
    """

    objects: I64
    subscriptions: I64
    anywhere: int

    @property
    def posted(self) -> I64:
        """The terms under which some subscription is posted."""
        return np.flatnonzero(self.subscriptions)


def plan_frequency(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Heaviest term first, each to the worker with the least load so far."""
    counts = count_terms(sample)
    posted = counts.posted
    loads = cost.of_counts(counts.objects[posted], counts.subscriptions[posted])
    taken = loads_without_terms(sample, counts, workers, cost)
    return list_terms("frequency", sample, workers, posted, share_heaviest_first(loads, taken))


def count_terms(sample: Sample) -> TermCounts:
    """Count the objects and the subscriptions of each term."""
    needs_term = sample.posts >= 0
    subscriptions = np.bincount(sample.posts[needs_term], minlength=sample.lexicon.size)
    objects = np.where(subscriptions > 0, sample.frequency, 0)
    anywhere = int(np.count_nonzero(~needs_term))
    return TermCounts(objects, subscriptions.astype(np.int64), anywhere)


def loads_without_terms(sample: Sample, counts: TermCounts, workers: int, cost: LoadModel) -> F64:
    """What the parts carry before any term is theirs: f64[workers], all 0 but perhaps the first."""
    taken = np.zeros(workers)
    if counts.anywhere:
        taken[0] = cost.of_counts(sample.objects, counts.anywhere)
    return taken


def list_terms(name: str, sample: Sample, workers: int, posted: I64, part: I32) -> Leaves:
    """One leaf with a part for every worker, all known terms listed; `part` is of those `posted`.

    The others cost nothing yet. Should they be asked for, their objects will be the load: they are
    assigned by frequency.
    """
    part_of_term = np.empty(sample.lexicon.size, np.int32)
    idle = np.ones(sample.lexicon.size, np.bool_)
    idle[posted] = False
    part_of_term[posted] = part
    part_of_term[idle] = share_heaviest_first(
        sample.frequency[idle].astype(np.float64), np.zeros(workers)
    )
    split = TextSplit(workers, sample.lexicon, part_of_term)
    return make_leaves(name, workers, BY_LEAF, [WORLD], [split], list(range(workers)))


def plan_metric(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Heaviest term first, each to the part for which the metric is least.

    PS2Stream takes its metric from S3-TM, which looks at words and posts as a bipartite graph and
    weighs load balance against the number of matchers a post goes to. Here, for a term and a part,

        metric = added / alone + after / (mean + alone)

    `alone` is the load of the term in a separate part; `added` is what the part's load would grow
    by, which is less if the part has some of the term's objects and subscriptions already because
    of their other terms; `after` is the part's load then, and `mean` that of all parts so far. The
    first share is low where the term saves copies of objects, the second where there is room. Loads
    of parts are exact on the sample: an object counts once in a part, however many of its terms.
    """
    counts = count_terms(sample)
    posted = counts.posted
    alone = cost.of_counts(counts.objects, counts.subscriptions)
    heaviest_first = posted[np.argsort(-alone[posted], kind="stable")]
    is_posted = counts.subscriptions > 0
    objects = share_rows(sample.term_offsets, sample.terms, is_posted, workers)
    subscriptions = share_rows(sample.post_offsets, sample.posts, is_posted, workers)
    seen, held = np.zeros(workers), np.zeros(workers)
    if counts.anywhere:
        seen[0], held[0] = sample.objects, counts.anywhere
        objects.takes[0] = 0
    loads = cost.of_counts(seen, held)
    part = np.zeros(sample.lexicon.size, np.int32)
    for term in heaviest_first.tolist():
        more_seen, more_held = count_missing(objects, term), count_missing(subscriptions, term)
        after = cost.of_counts(seen + more_seen, held + more_held)
        weight = float(alone[term]) or 1.0
        mean = float(np.add.reduce(loads)) / workers
        best = int(((after - loads) / weight + after / (mean + weight)).argmin())
        part[term] = best
        seen[best] += more_seen[best]
        held[best] += more_held[best]
        loads[best] = after[best]
        note_present(objects, term, best)
        note_present(subscriptions, term, best)
    return list_terms("metric", sample, workers, posted, part[posted])


class SharedRows(NamedTuple):
    """The rows that terms bring to parts, and the parts that have them already.

    A row with one term comes with it and never otherwise: those are only counted, in `single`
    i64[lexicon]. Rows with several terms are in `rows` by term (a CSR column); `present`
    bool[rows, parts] says where they are. `takes` f64[parts] is 0 for a part that has all rows.
    """

    single: I64
    offsets: I64
    rows: I64
    present: Bools
    takes: F64


def share_rows(offsets: I64, terms: I32, counted: Bools, parts: int) -> SharedRows:
    """The rows of a CSR column by term, of the terms that are `counted` (bool[lexicon])."""
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    counts = terms >= 0
    counts[counts] = counted[terms[counts]]
    owner, terms = owner[counts], terms[counts]
    several = np.bincount(owner, minlength=offsets.size - 1) > 1
    shared = several[owner]
    number = np.cumsum(several) - 1
    order = np.argsort(terms[shared], kind="stable")
    per_term = np.bincount(terms[shared], minlength=counted.size)
    return SharedRows(
        single=np.bincount(terms[~shared], minlength=counted.size),
        offsets=lengths_to_offsets(per_term),
        rows=number[owner[shared][order]],
        present=np.zeros((int(several.sum()), parts), np.bool_),
        takes=np.ones(parts),
    )


def count_missing(shared: SharedRows, term: int) -> F64:
    """How many of a term's rows each part does not have yet."""
    rows = shared.rows[shared.offsets[term] : shared.offsets[term + 1]]
    missing = shared.takes * (int(shared.single[term]) + rows.size)
    if rows.size:
        missing -= shared.takes * np.add.reduce(shared.present[rows], axis=0)
    return missing


def note_present(shared: SharedRows, term: int, part: int) -> None:
    """A part gets all of a term's rows."""
    shared.present[shared.rows[shared.offsets[term] : shared.offsets[term + 1]], part] = True


def plan_termhash(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """Terms by their hash alone: what a keyed stream does without a plan."""
    split = TextSplit(workers, NO_SPLIT.terms, NO_SPLIT.part)
    return make_leaves(
        "termhash", workers, BY_LEAF, [(0, 0, SIDE, SIDE)], [split], list(range(workers))
    )


CORE_TERMS = 30_000  # so many, the heaviest, are cut as a graph; the others follow them
LINKS = 8  # a term is linked to so many on either side: hyperedges of up to 17 terms are cliques
SLACK = 1.03  # a part may get so much more than its share
PASSES = 5  # of streaming: when a term comes again, all its neighbours have a part
TERMS_PER_PART = 64  # METIS needs some choice; fewer terms are streamed
SEED = 7
WEIGHT_SUM = 1 << 28  # METIS adds up weights in 32 bits


class Graph(NamedTuple):
    """Links between terms as a CSR column; each is there from both of its ends."""

    offsets: I64
    ends: I64
    weights: F64

    @property
    def total(self) -> int:
        return int(self.offsets.size - 1)

    @property
    def starts(self) -> I64:
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


def share_room(total: float, taken: F64) -> F64:
    """What share of a total load each part should get to balance them, with what is `taken`."""
    room = np.maximum((total + taken.sum()) / taken.size - taken, 0.0)
    shares = room / room.sum() if room.any() else np.full(taken.size, 1 / taken.size)
    floored = np.maximum(shares, 1e-3 / taken.size)  # none is quite 0: METIS divides by them
    return floored / floored.sum()


def link_terms(sample: Sample, posted: I64, cost: LoadModel) -> Graph:
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


def draw_hyperedges(offsets: I64, terms: I64, weight: float) -> tuple[I64, I64, F64]:
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
    links: list[tuple[I64, I64, F64]] = []
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


def cut_graph(graph: Graph, loads: F64, shares: F64) -> I32:
    """The part of each term: little link weight between parts, loads in proportion to `shares`."""
    if has_metis() and graph.ends.size and graph.total >= TERMS_PER_PART * shares.size:
        return cut_with_metis(graph, loads, shares)
    return stream_terms(graph, loads, shares)


def has_metis() -> bool:
    """Whether METIS can be used; it is optional."""
    return importlib.util.find_spec("pymetis") is not None


def cut_with_metis(graph: Graph, loads: F64, shares: F64) -> I32:
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


def whole_weights(weights: F64) -> I64:
    """Weights as whole numbers from 1 that METIS can add up."""
    scaled: F64 = weights * (WEIGHT_SUM / max(weights.sum(), 1e-9))
    return np.maximum(scaled, 1.0).astype(np.int64)


def stream_terms(graph: Graph, loads: F64, shares: F64) -> I32:
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


def follow_neighbours(graph: Graph, loads: F64, shares: F64, taken: F64, part: I32) -> None:
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

    term: I64
    part: I64


def wish_parts(graph: Graph, part: I32, parts: int) -> Wishes:
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
