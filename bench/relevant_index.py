"""The index of relevant subscriptions: each pruning off, groups, and CIQ, on the same thresholds.

Buffers are filled once; then the same blocks are matched in every way, without being entered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.peers.ciq import build_ciq, find_ciq
from bench.relevant import BLOCK, MANY, SUBSCRIPTIONS, WINDOW, make_store, say, warm_up
from bench.relevant_data import LONG, POSTS, VENUES, draw_rows, read_corpus
from bench.relevant_matching import Index, Indexing
from bench.relevant_store import clock
from bench.relevant_window import Sliding
from bench.settings import Choice
from bench.tables import draw_bars, draw_lines, save_table
from placewire.kinds.relevant.kernels.groups import (
    ALL_PRUNINGS,
    CELL_PRUNING,
    EARLY_TERMINATION,
    GROUP_PRUNING,
    HINTS,
    INNER_BOUND,
    LOOKED,
    MAX_WEIGHT,
    OUTER_BOUND,
    PREFIX,
    UNSEEN_BOUND,
    VERIFIED,
)
from placewire.kinds.relevant.match import Relevance, RelevanceBlock
from placewire.kinds.relevant.results import BufferRule

BLOCKS = 10
SLOW_BLOCKS = 2  # of what takes a hundred times as long
LONG_SUBSCRIPTIONS = 20_000
GROUPINGS = (1, 5, 10, 20, 40)
DEPTHS, CIQ_BLOCKS = (2, 4, 6), (16, 64)
GROUPED = CELL_PRUNING | GROUP_PRUNING | EARLY_TERMINATION
OFF = {
    "nothing (IGPT)": 0,
    "cells": CELL_PRUNING,
    "groups": GROUP_PRUNING,
    "early termination": EARLY_TERMINATION,
    "cells, groups, early termination (IPT)": GROUPED,
    "outer bound": OUTER_BOUND,
    "inner bound": INNER_BOUND,
    "largest weight": MAX_WEIGHT,
    "unseen keywords": UNSEEN_BOUND,
    "hints": HINTS,
    "IPT without inner bound and hints (the paper's)": GROUPED | INNER_BOUND | HINTS,
    "inner bound and hints (the paper's IGPT)": INNER_BOUND | HINTS,
    "prefix and unseen keywords": PREFIX | UNSEEN_BOUND,
    "all": ALL_PRUNINGS,
}
SLOW = ("prefix and unseen keywords", "all")
Find = Callable[[RelevanceBlock], Relevance]


class Matched(NamedTuple):
    """Blocks matched in one way: ms an object, and what was met."""

    ms: float
    found: int
    counters: np.ndarray


class Ground(NamedTuple):
    """Filled buffers and blocks of the stream."""

    sliding: Sliding
    blocks: list[RelevanceBlock]

    def match(self, find: Find, blocks: int = BLOCKS) -> Matched:
        """Match some blocks; the first once before, so that all is compiled and in memory."""
        find(self.blocks[0])
        started = clock()
        found = [find(block) for block in self.blocks[:blocks]]
        spent = clock() - started
        objects = sum(block.lon.size for block in self.blocks[:blocks])
        counters = np.sum([part.counters for part in found], axis=0)
        return Matched(
            1e3 * spent / objects, sum(part.row.size for part in found), counters / objects
        )


def settings_of(choice: Choice) -> list[tuple[str, int, int]]:
    """Sets with their windows and subscriptions."""
    named = [(POSTS, WINDOW, SUBSCRIPTIONS)]
    if choice.data is not None:
        named.append((VENUES, MANY, SUBSCRIPTIONS))
    return [*named, (LONG, WINDOW, LONG_SUBSCRIPTIONS)]


def prepare(choice: Choice, name: str, window: int, count: int, block: int = BLOCK) -> Ground:
    """Fill buffers from the window of a set."""
    corpus = read_corpus(choice, window + BLOCKS * block, name)
    say(f"{name}: {count:,} subscriptions, window {window:,}")
    sliding = Sliding(make_store(choice, corpus, window, block), draw_rows(corpus, count), RULE)
    firsts = range(window, window + BLOCKS * block, block)
    return Ground(sliding, [corpus.block(first, first + block)[0] for first in firsts])


RULE = BufferRule()


def run(choice: Choice) -> None:
    """All prunings off one by one, and CIQ."""
    warm_up(choice)
    bars: dict[str, dict[str, float]] = {}
    for name, window, count in settings_of(choice):
        bars[name] = compare(prepare(choice, name, window, count), name)
    kept = ("nothing (IGPT)", "cells, groups, early termination (IPT)", "CIQ")
    draw_bars(
        "relevant-prunings",
        {name: {way: ms[way] for way in kept} for name, ms in bars.items()},
        y_label="ms an object",
    )


def compare(ground: Ground, name: str) -> dict[str, float]:
    """The tables of one set; gives ms an object by way."""
    rows, theta = ground.sliding.rows, ground.sliding.theta
    table, ms = [], {}
    for off, bits in OFF.items():
        index = Index(rows, theta, Indexing(prunings=ALL_PRUNINGS & ~bits))
        blocks = SLOW_BLOCKS if off in SLOW else BLOCKS
        found = ground.match(lambda block, index=index: index.find(block, theta), blocks)
        ms[off] = found.ms
        table.append((
            off,
            found.ms,
            found.ms / ms["nothing (IGPT)"],
            float(found.counters[LOOKED]),
            float(found.counters[VERIFIED]),
            index.nbytes / rows.total,
        ))  # fmt: skip
        say(f"without {off}: {found.ms:.4f} ms")
        if off == "nothing (IGPT)":
            expected = found.found
        assert blocks == SLOW_BLOCKS or found.found == expected, off
    ours = ms["nothing (IGPT)"]
    main = index.main
    for depth in DEPTHS:
        for size in CIQ_BLOCKS:
            ciq = build_ciq(rows, theta, depth, size)
            found = ground.match(
                lambda block, ciq=ciq: find_ciq(
                    block, rows, ciq, theta, main.term_table, main.term_idf
                )
            )
            # Scores are of 32-bit weights: a few pairs at the threshold may differ.
            assert abs(found.found - expected) <= 1e-3 * expected + 5, (found.found, expected)
            label = f"CIQ, {3 * depth + 1} cells a row, blocks of {size}"
            walked, scored, _ = found.counters.tolist()
            table.append(
                (label, found.ms, found.ms / ours, walked, scored, ciq.nbytes / rows.total)
            )
            ms["CIQ"] = min(found.ms, ms.get("CIQ", np.inf))
            say(f"{label}: {found.ms:.4f} ms, {ciq.nbytes / rows.total:.0f} bytes a row")
    save_table(
        f"relevant-prunings-{name}",
        ("off, or what instead", "ms an object", "times", "postings looked at", "scored",
         "bytes a subscription"),
        table,
    )  # fmt: skip
    return ms


def run_groups(choice: Choice) -> None:
    """The number of groups a cell is divided into."""
    warm_up(choice)
    table, lines = [], {}
    for name, window, count in settings_of(choice):
        ground = prepare(choice, name, window, count)
        for groups in GROUPINGS:
            index = Index(ground.sliding.rows, ground.sliding.theta, Indexing(groups=groups))
            theta = ground.sliding.theta
            found = ground.match(lambda block, index=index, theta=theta: index.find(block, theta))
            table.append((
                f"{name}, {groups}",
                found.ms,
                float(found.counters[LOOKED]),
                index.nbytes / ground.sliding.rows.total,
            ))  # fmt: skip
            lines.setdefault(name, []).append((groups, found.ms))
            say(f"{groups} groups: {found.ms:.4f} ms")
    save_table(
        "relevant-groups",
        ("set, groups", "ms an object", "postings looked at", "bytes a subscription"),
        table,
    )
    draw_lines(
        "relevant-groups",
        lines,
        x_label="groups in a cell",
        y_label="matching, ms an object",
        x_scale="linear",
    )
