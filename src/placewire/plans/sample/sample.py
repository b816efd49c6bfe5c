"""A sample of the stream: objects, subscriptions, and about what each object costs.

A subscription is a row of one of SSTD's six kinds of queries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import (
    MAX_LEVEL,
    boxes_to_ranges,
    codes_to_columns_rows,
    ranges_coarsened,
)
from placewire.kernels.text.hash_table import hashes_to_numbers
from placewire.kinds.boolean.index import counts_among_rows, cover_posts
from placewire.kinds.boolean.kernels.postings import ANY_TERM
from placewire.model.arrays import F64, I8, I32, I64, U32, U64
from placewire.model.subscriptions import (
    SubscriptionRows,
    lengths_to_offsets,
    take_rows,
    take_slices,
)
from placewire.plans.kernels.term_maps import (
    Objects,
    cells_of_ranges,
    pairs_near_posts,
    posts_to_counts,
)

# Snapshot range, nearest and trending queries, then the continuous ones, as SSTD names them.
SRQ, SKQ, STQ, CRQ, CKQ, CTQ = range(6)
KINDS = 6
LONGEST = 8  # queries of more keywords count as this long: hardly any part of a cell has them all


class Traits(NamedTuple):
    """The kinds of a sample's m rows, and the time its objects took to arrive.

    `kind` i8[m]; `length` i8[m], the number of keywords that an object must have all of, at most
    LONGEST; `duration` f64[m] in the unit of `span`: how far back or ahead a row looks. Keywords
    of row i are keywords[keyword_offsets[i]:keyword_offsets[i + 1]], i32 positions in the lexicon;
    -1 is none. If objects are `kept`, to be asked about later, each is in exactly one part of a
    plan; else it is sent to every part that asks for one of its terms, and to no other.
    """

    kind: I8
    length: I8
    duration: F64
    keyword_offsets: I64
    keywords: I32
    span: float
    kept: bool = False


PLAN_LEVEL = 13  # cells of about 4.9 x 2.4 km at the equator
SIDE = 1 << PLAN_LEVEL
ANY = -1
NO_WORK = np.empty(0, np.float64)


class Sample(NamedTuple):
    """n objects and m subscriptions; a CSR column has one more offset.

    `cell` of a subscription is its first column, first row, last column, last row (all inside);
    first > last column when it crosses the antimeridian. Terms are positions in `lexicon`, the
    ascending hashes of all terms of both. `posts` are the terms under which a subscription is
    posted: the least frequent keyword of an `all`, every keyword of an `any`, ANY (-1) for one
    that no term has to satisfy. `frequency` counts the objects of each term of the lexicon.

    `pair_work` f64 is what each (object, term) pair costs in addition to the object, which costs 1;
    `object_work` f64[n] is the whole of an object. Empty when every object costs the same.

    `traits` tell subscriptions of other kinds and snapshot queries apart, which are rows as well;
    without them all are boolean subscriptions.
    """

    object_column: I32
    object_row: I32
    term_offsets: I64
    terms: I32
    cell: I32
    post_offsets: I64
    posts: I32
    lexicon: U64
    frequency: I64
    pair_work: F64 = NO_WORK
    object_work: F64 = NO_WORK
    traits: Traits | None = None

    @property
    def objects(self) -> int:
        return int(self.object_column.size)

    @property
    def subscriptions(self) -> int:
        return int(self.cell.shape[0])


def cells_of_boxes(box: F64) -> I32:
    """The plan cells of boxes f64[n, 4], as a sample has them: i32[n, 4]."""
    ranges = boxes_to_ranges(read_only(box))
    return ranges_coarsened(ranges, MAX_LEVEL - PLAN_LEVEL)


def number_terms(hashes: U64) -> tuple[U64, I64]:
    """The distinct hashes, ascending, and the position of each hash among them."""
    _, numbers, distinct = hashes_to_numbers(read_only(hashes))
    order = np.argsort(distinct)
    rank = np.empty(distinct.size, np.int64)
    rank[order] = np.arange(distinct.size)
    return distinct[order], rank[numbers]


def make_sample(
    codes: U32, term_offsets: I64, terms: U64, rows: SubscriptionRows, posting_work: float = 0.0
) -> Sample:
    """A sample of objects (cell codes and distinct terms) and of subscriptions.

    `posting_work` is what a posting that an object meets costs, an object itself costing 1.
    """
    columns, object_rows = codes_to_columns_rows(codes)
    shift = MAX_LEVEL - PLAN_LEVEL
    lexicon, numbers = number_terms(np.concatenate([terms, rows.literal_term]))
    of_objects, of_literals = np.split(numbers, [terms.size])
    frequency = np.bincount(of_objects, minlength=lexicon.size).astype(np.int64)
    post_row, post_term = cover_posts(rows, frequency[of_literals])
    posts = np.searchsorted(lexicon, post_term).astype(np.int32)
    posts[post_term == ANY_TERM] = ANY
    pair_work = object_work = NO_WORK
    if posting_work > 0.0:
        pair_work, alone = count_near(Objects(codes, term_offsets, terms), note_posts(rows))
        pair_work *= posting_work
        running = np.concatenate([[0.0], np.cumsum(pair_work)])
        object_work = 1.0 + posting_work * alone + np.diff(running[term_offsets])
    return Sample(
        object_column=columns >> shift,
        object_row=object_rows >> shift,
        term_offsets=term_offsets,
        terms=of_objects.astype(np.int32),
        cell=cells_of_boxes(rows.box),
        post_offsets=lengths_to_offsets(np.bincount(post_row, minlength=rows.total)),
        posts=posts,
        lexicon=lexicon,
        frequency=frequency,
        pair_work=pair_work,
        object_work=object_work,
    )


NEAR_LEVEL = 10  # cells of 0.35 x 0.18 degrees
MOST_CELLS = 64  # of a region; one that touches more is near everything
SAMPLED_ROWS = 300_000

# Of the posts in a cell as wide as most regions, those that an object would really meet.
MET = 0.25
Near = tuple[F64, F64]


class NearPosts(NamedTuple):
    """Counts of the posts of each (cell, term): a table, and what one count of it stands for."""

    table: U64
    scale: float


def note_posts(rows: SubscriptionRows) -> NearPosts:
    """Count the posts of all rows, or of an even choice of them."""
    step = every_nth(rows.total, SAMPLED_ROWS)
    some = take_rows(rows, np.arange(0, rows.total, step)) if step > 1 else rows
    post_row, post_term = cover_posts(some, counts_among_rows(some))
    offsets, cells = cells_of_ranges(
        boxes_to_ranges(read_only(some.box)), MAX_LEVEL - NEAR_LEVEL, MOST_CELLS
    )
    keys = int(np.diff(offsets)[post_row].sum()) if rows.total else 0
    table = posts_to_counts(read_only(post_row), read_only(post_term), offsets, cells, keys)
    return NearPosts(table, step * MET)


def count_near(objects: Objects, near: NearPosts) -> Near:
    """About how many posts each (object, term) pair and each object alone would meet."""
    of_pair, alone = pairs_near_posts(
        objects.frozen(), read_only(near.table), 2 * (MAX_LEVEL - NEAR_LEVEL)
    )
    return of_pair * near.scale, alone * near.scale


def every_nth(total: int, most: int) -> int:
    """The step through `total` rows that takes at most `most` of them."""
    return max(1, -(-total // most))


def pick_objects(objects: Objects, picked: I64) -> Objects:
    """Some of the objects, in the order picked."""
    offsets, at = take_slices(objects.term_offsets, picked)
    return Objects(objects.codes[picked], offsets, objects.terms[at])


def choose_evenly(rows: I64, most: int) -> I64:
    """At most `most` of the rows, at even steps."""
    if rows.size <= most:
        return rows
    return rows[np.arange(most) * rows.size // most]
