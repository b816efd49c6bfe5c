"""Explain what matching an object costs, and where the subscription is posted."""

from __future__ import annotations

from typing import Any

import numpy as np

from placewire.explainer.context import ExplainContext, Live
from placewire.explainer.object import Seen
from placewire.explainer.subscription import Subscribed
from placewire.kernels.space.cells import MAX_LEVEL, codes_to_columns_rows
from placewire.kinds.boolean.kernels.postings import ANY_TERM
from placewire.kinds.explanation import Looked, Post
from placewire.model.kinds import kind_numbered
from placewire.segments.segment import NONE_DEAD, make_segment
from placewire.segments.thresholds import current_thresholds
from placewire.storage.manifest import SegmentEntry


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


def lone_live(subscribed: Subscribed) -> Live:
    """A segment of the one subscription alone, as if it were the only one."""
    rows, kind = subscribed.rows, kind_numbered(subscribed.kind)
    segment = make_segment(kind.number, rows, kind.empty_results(rows))
    return Live(SegmentEntry("", 1, kind=kind.number), segment, NONE_DEAD)


def explain_cost(
    ground: ExplainContext, subscribed: Subscribed, seen: Seen, now_us: int
) -> dict[str, Any] | None:
    """The cost of the object among subscriptions of this kind; None for a kind without an index."""
    kind = kind_numbered(subscribed.kind)
    if not kind.matched:
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
        "terms_probed": int(seen.terms.size) + kind.probes_any_text,
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
    kind = kind_numbered(subscribed.kind)
    return [
        post
        for part, index in enumerate(kind.parts(live.segment))
        for post in kind.posts(index, row, part)
    ]


def lone_or_place(subscribed: Subscribed) -> tuple[Live, int]:
    place = subscribed.indexed
    return (lone_live(subscribed), 0) if place is None else (place.live, place.row)


def look(ground: ExplainContext, live: Live, seen: Seen, now_us: int) -> Looked:
    """Match the object with one segment, as a worker does."""
    kind = kind_numbered(live.entry.kind)
    if ground.state is None:
        thresholds = kind.open_thresholds(live.segment)
    else:
        entries = [one.entry for one in ground.segments]
        thresholds = current_thresholds(live.entry, live.segment, entries, ground.state.file)
    looked: Looked = kind.look(ground, live, seen, now_us, thresholds)
    return looked
