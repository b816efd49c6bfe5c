"""Where a subscription is posted, and whether an object's probe comes by there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.explain.context import Ground, Live
from placewire.explain.object import Seen
from placewire.explain.rank import lone_near
from placewire.explain.subscription import Subscribed
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import MAX_LEVEL, codes_to_columns_rows
from placewire.kernels.space.circles import radii_to_limits
from placewire.kernels.text.hash_table import EMPTY
from placewire.kinds.boolean.index import BooleanIndex
from placewire.kinds.boolean.kernels.postings import ANY_TERM, ROW
from placewire.kinds.boolean.kernels.probes import object_meeting_postings
from placewire.kinds.boolean.match import Probe, make_probe, match_segment
from placewire.kinds.nearest.match import NearColumns, NearTarget, find_near
from placewire.kinds.relevant.index import GroupIndex
from placewire.kinds.relevant.kernels.buffers import ALL
from placewire.kinds.relevant.kernels.groups import CELLS, CELLS_SKIPPED, LOOKED, VERIFIED
from placewire.kinds.relevant.match import RelevanceBlock, find_relevant
from placewire.kinds.relevant.results import empty_buffers
from placewire.model.subscriptions import BOOLEAN, NEAREST, TRENDING
from placewire.segments.segment import NONE_DEAD, make_relevant_segment, make_segment
from placewire.segments.thresholds import current_limits, current_thetas
from placewire.storage.manifest import SegmentEntry
from placewire.text.lexicon import weigh_terms


class Post(NamedTuple):
    """A posting: its term, its cell (None where a term's list has no cells), its part."""

    term: int
    level: int | None
    code: int
    part: int = 0


def posts_of_row(index: BooleanIndex, row: int, part: int = 0) -> list[Post]:
    """The postings of a row."""
    at = np.flatnonzero(index.postings[:, ROW] == row)
    cells = np.searchsorted(index.cell_offsets, at, "right") - 1
    runs = np.searchsorted(index.run_cells, cells, "right") - 1
    numbers = np.searchsorted(index.run_offsets, runs, "right") - 1
    terms = terms_by_number(index.term_table)
    return [
        Post(terms[number], int(index.run_level[run]), int(index.cell_code[cell]), part)
        for number, run, cell in zip(numbers.tolist(), runs.tolist(), cells.tolist(), strict=True)
    ]


def posts_in_groups(index: GroupIndex, row: int, part: int = 0) -> list[Post]:
    """The postings of a `relevant` row: of its terms that can bring an object to its threshold."""
    at = np.flatnonzero(index.posting_row == row)
    cells = np.searchsorted(index.cell_offsets, at, "right") - 1
    numbers = np.unique(np.searchsorted(index.term_cells, cells, "right") - 1)
    terms = terms_by_number(index.term_table)
    return [Post(terms[number], None, 0, part) for number in numbers.tolist()]


def terms_by_number(table: NDArray[np.uint64]) -> dict[int, int]:
    """The hashes of a table by their numbers."""
    filled = np.flatnonzero(table[1::2] != EMPTY)
    return dict(zip(table[2 * filled + 1].tolist(), table[2 * filled].tolist(), strict=True))


def reaches(post: Post, seen: Seen, code: int) -> bool:
    """Whether an object with cell code `code` at MAX_LEVEL looks at a posting."""
    if not has_term(post, seen):
        return False
    return post.level is None or code >> (2 * (MAX_LEVEL - post.level)) == post.code


def has_term(post: Post, seen: Seen) -> bool:
    return post.term == int(ANY_TERM) or post.term in seen.words


def tell_post(post: Post, words: dict[int, str], seen: Seen, code: int) -> dict[str, Any]:
    """A posting, JSON-ready; its term is None if it is under every text."""
    told: dict[str, Any] = {"any_text": post.term == int(ANY_TERM)}
    if not told["any_text"]:
        told["term"] = words.get(post.term)
        told["hash"] = f"{post.term:016x}"
    told |= {"object_has_term": has_term(post, seen), "reached": reaches(post, seen, code)}
    if post.level is not None:
        told["cell"] = {"level": post.level, "code": post.code, "box": box_of_cell(post)}
    return told


def box_of_cell(post: Post) -> list[float]:
    """West, south, east, north of a posting's cell."""
    assert post.level is not None
    fine = np.array([post.code << (2 * (MAX_LEVEL - post.level))], np.uint32)
    columns, rows = codes_to_columns_rows(fine)
    shift, side = MAX_LEVEL - post.level, 1 << post.level
    column, row = int(columns[0]) >> shift, int(rows[0]) >> shift
    wide, high = 360.0 / side, 180.0 / side
    west, south = column * wide - 180.0, row * high - 90.0
    return [west, south, west + wide, south + high]


class Looked(NamedTuple):
    """What was done: terms that have postings, cells met, postings looked at, exact tests, pairs.

    `rows` are the pairs' rows in the segment.
    """

    terms: int
    cells: int
    candidates: int
    verified: int
    rows: list[int]


def lone_live(subscribed: Subscribed) -> Live:
    """A segment of the one subscription alone, as if it were the only one."""
    rows, kind = subscribed.rows, subscribed.kind
    if kind == BOOLEAN:
        segment = make_segment(rows)
    elif kind == NEAREST:
        segment = lone_near(rows)
    else:
        segment = make_relevant_segment(rows, empty_buffers(rows.k.astype(np.int64), False))
    return Live(SegmentEntry("", 1, kind=kind), segment, NONE_DEAD)


def explain_cost(
    ground: Ground, subscribed: Subscribed, seen: Seen, now_us: int
) -> dict[str, Any] | None:
    """The cost of the object among subscriptions of this kind; None for a kind without an index."""
    if subscribed.kind == TRENDING:
        return None
    live = [one for one in ground.segments if one.entry.kind == subscribed.kind]
    if ground.manifest is None:
        live = [lone_live(subscribed)]
    looked = [look(ground, one, seen, now_us) for one in live]
    place = subscribed.indexed
    found = place is not None and any(
        one is place.live and place.row in did.rows for one, did in zip(live, looked, strict=True)
    )
    posts = find_posts(subscribed)
    code = int(seen.columns(0)[0][0])
    told: dict[str, Any] = {
        "subscriptions": sum(one.entry.rows - one.entry.ended for one in live),
        "segments": len(live),
        "terms_probed": int(seen.terms.size) + (subscribed.kind == BOOLEAN),
        "terms_posted": sum(did.terms for did in looked),
        "cells": sum(did.cells for did in looked),
        "candidates": sum(did.candidates for did in looked),
        "verified": sum(did.verified for did in looked),
        "matches": sum(len(did.rows) for did in looked),
        "posted": [tell_post(post, subscribed.words | seen.words, seen, code) for post in posts],
    }
    told["looked_at"] = any(post["reached"] for post in told["posted"])
    if place is not None:
        told["found"] = found
    return told


def find_posts(subscribed: Subscribed) -> list[Post]:
    """Where the subscription is posted, in its segment or as it would be alone."""
    live, row = lone_or_place(subscribed)
    segment = live.segment
    if subscribed.kind == BOOLEAN:
        return posts_of_row(segment.boolean, row)
    if segment.balls is not None:
        parts = enumerate(segment.balls.parts)
        return [post for part, index in parts for post in posts_of_row(index, row, part)]
    groups = enumerate(segment.groups)
    return [post for part, index in groups for post in posts_in_groups(index, row, part)]


def lone_or_place(subscribed: Subscribed) -> tuple[Live, int]:
    place = subscribed.indexed
    return (lone_live(subscribed), 0) if place is None else (place.live, place.row)


def look(ground: Ground, live: Live, seen: Seen, now_us: int) -> Looked:
    """Hold the object against one segment, as a worker does."""
    columns = seen.columns(now_us)
    segment, kind = live.segment, live.entry.kind
    path = ground.state.file if ground.state is not None else None
    entries = [one.entry for one in ground.segments]
    if kind == BOOLEAN:
        probe = make_probe(*columns)
        matches = match_segment(probe, segment, live.dead)
        known, _, met, _, _, doubtful = meet(probe, segment.boolean)
        return Looked(known, met, matches.candidates, doubtful, matches.row.tolist())
    if kind == NEAREST:
        assert segment.balls is not None
        limits = radii_to_limits(segment.balls.radius)
        if path is not None:
            limits = current_limits(live.entry, segment, entries, path)
        probe = NearColumns(*columns).probe(np.arange(1))
        parts = range(segment.balls.deal.parts)
        found = find_near(probe, NearTarget(segment, parts, limits, live.dead))
        counts = np.sum([meet(probe, index) for index in segment.balls.parts], axis=0)
        rows = np.unique(found.row).tolist()
        return Looked(int(counts[0]), int(counts[2]), found.candidates, len(found.row), rows)
    theta = np.full(segment.rows.total, ALL, np.int32)
    if path is not None:
        theta = current_thetas(live.entry, segment, entries, path)
    norm = weigh_terms(sorted(seen.words.values()), ground.lexicon)[1]
    block = RelevanceBlock(*columns, np.array([norm]))
    parts_found = [
        find_relevant(block, segment.rows, index, theta, live.dead) for index in segment.groups
    ]
    counters = np.sum([part.counters for part in parts_found], axis=0)
    known = sum(
        len(set(seen.words) & set(index.term_table[::2].tolist())) for index in segment.groups
    )
    rows = np.unique(np.concatenate([part.row for part in parts_found])).tolist()
    met = int(counters[CELLS] - counters[CELLS_SKIPPED])
    return Looked(known, met, int(counters[LOOKED]), int(counters[VERIFIED]), rows)


def meet(probe: Probe, index: BooleanIndex) -> tuple[int, ...]:
    """How the probe of one object meets an index."""
    some = np.diff(probe.group_offsets) > 0
    counts: tuple[int, ...] = object_meeting_postings(
        read_only(probe.group_term[some]),
        int(probe.codes[0]),
        float(probe.lon[0]),
        float(probe.lat[0]),
        probe.signatures[0],
        *map(read_only, index),
    )
    return counts
