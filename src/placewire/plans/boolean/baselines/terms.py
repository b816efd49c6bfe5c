"""Plans of one leaf whose terms are divided among workers: `frequency`, `metric` and `termhash`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.model.subscriptions import (
    lengths_to_offsets,
)
from placewire.plans.allocation import share_heaviest_first
from placewire.plans.boolean.subset import WORLD
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import BY_LEAF, Leaves, TextSplit, make_leaves
from placewire.plans.leaves import NO_SPLIT as NO_TERMS
from placewire.plans.sample.sample import SIDE, Sample


class TermCounts(NamedTuple):
    """What each term of the lexicon brings to its part: i64[lexicon] twice.

    `objects` counts none for a term under which no subscription is posted: they are dropped.
    `anywhere` subscriptions need no term; they belong to part 0, which then sees every object.
    """

    objects: NDArray[np.int64]
    subscriptions: NDArray[np.int64]
    anywhere: int

    @property
    def posted(self) -> NDArray[np.int64]:
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


def loads_without_terms(
    sample: Sample, counts: TermCounts, workers: int, cost: LoadModel
) -> NDArray[np.float64]:
    """What the parts carry before any term is theirs: f64[workers], all 0 but perhaps the first."""
    taken = np.zeros(workers)
    if counts.anywhere:
        taken[0] = cost.of_counts(sample.objects, counts.anywhere)
    return taken


def list_terms(
    name: str,
    sample: Sample,
    workers: int,
    posted: NDArray[np.int64],
    part: NDArray[np.int32],
) -> Leaves:
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

    single: NDArray[np.int64]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    present: NDArray[np.bool_]
    takes: NDArray[np.float64]


def share_rows(
    offsets: NDArray[np.int64], terms: NDArray[np.int32], counted: NDArray[np.bool_], parts: int
) -> SharedRows:
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


def count_missing(shared: SharedRows, term: int) -> NDArray[np.float64]:
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
    split = TextSplit(workers, NO_TERMS.terms, NO_TERMS.part)
    return make_leaves(
        "termhash", workers, BY_LEAF, [(0, 0, SIDE, SIDE)], [split], list(range(workers))
    )
