"""Compare prunings, numbers of groups and CIQ on the same thresholds of relevant subscriptions.

Buffers are filled once; then the same blocks are matched in every way, without being entered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.clock import say
from bench.figures import BarPlot, Figures, FiguresAnd, LinePlot, Table
from bench.harness import Setup
from bench.papers.skype.ciq import build_ciq, find_ciq
from bench.papers.skype.costs import (
    BLOCK,
    LONG_SUBSCRIPTIONS,
    MANY,
    SUBSCRIPTIONS,
    WINDOW,
    make_store,
    warm_up,
)
from bench.papers.skype.data import LONG, POSTS, VENUES, draw_rows, read_corpus
from bench.papers.skype.index import Index, Indexing
from bench.papers.skype.store import clock
from bench.papers.skype.window import Sliding
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
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.kinds.relevant.match import Relevance
from placewire.kinds.relevant.results import BufferRule

BLOCKS = 10
SLOW_BLOCKS = 2  # of what takes a hundred times as long
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


class PruningCost(NamedTuple):
    """Blocks matched in one way: ms an object, and what was met."""

    ms: float
    found: int
    counters: np.ndarray


class FilledBuffers(NamedTuple):
    """Filled buffers and blocks of the stream."""

    sliding: Sliding
    blocks: list[RelevanceBlock]

    def match(self, find: Find, blocks: int = BLOCKS) -> PruningCost:
        """Match some blocks; the first once before, so that all is compiled and in memory."""
        find(self.blocks[0])
        started = clock()
        found = [find(block) for block in self.blocks[:blocks]]
        spent = clock() - started
        objects = sum(block.lon.size for block in self.blocks[:blocks])
        counters = np.sum([part.counters for part in found], axis=0)
        return PruningCost(
            1e3 * spent / objects, sum(part.row.size for part in found), counters / objects
        )


class Sizes(NamedTuple):
    """Subscriptions, windows and blocks of an experiment."""

    subscriptions: int
    window: int
    large_window: int
    long_subscriptions: int
    block: int

    def settings(self, setup: Setup) -> list[tuple[str, int, int]]:
        """Sets with their windows and subscriptions."""
        named = [(POSTS, self.window, self.subscriptions)]
        if setup.data is not None:
            named.append((VENUES, self.large_window, self.subscriptions))
        return [*named, (LONG, self.window, self.long_subscriptions)]


def prepare(setup: Setup, name: str, window: int, count: int, block: int = BLOCK) -> FilledBuffers:
    """Fill buffers from the window of a set."""
    corpus = read_corpus(setup, window + BLOCKS * block, name)
    say(f"{name}: {count:,} subscriptions, window {window:,}")
    sliding = Sliding(make_store(setup, corpus, window, block), draw_rows(corpus, count), RULE)
    firsts = range(window, window + BLOCKS * block, block)
    return FilledBuffers(sliding, [corpus.block(first, first + block)[0] for first in firsts])


RULE = BufferRule()


def compare_prunings(
    setup: Setup,
    subscriptions: int = SUBSCRIPTIONS,
    window: int = WINDOW,
    large_window: int = MANY,
    long_subscriptions: int = LONG_SUBSCRIPTIONS,
    block: int = BLOCK,
) -> Figures:
    """All prunings off one by one, and CIQ."""
    warm_up(setup)
    bars: dict[str, dict[str, float]] = {}
    sizes = Sizes(subscriptions, window, large_window, long_subscriptions, block)
    for name, size, count in sizes.settings(setup):
        bars[name] = yield from compare(prepare(setup, name, size, count, block), name)
    kept = ("nothing (IGPT)", "cells, groups, early termination (IPT)", "CIQ")
    yield BarPlot(
        "relevant-prunings",
        {name: {way: ms[way] for way in kept} for name, ms in bars.items()},
        y_label="ms an object",
    )


def compare(ground: FilledBuffers, name: str) -> FiguresAnd[dict[str, float]]:
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
    yield Table(
        f"relevant-prunings-{name}",
        ("off, or what instead", "ms an object", "times", "postings looked at", "scored",
         "bytes a subscription"),
        table,
    )  # fmt: skip
    return ms


def vary_groups(
    setup: Setup,
    subscriptions: int = SUBSCRIPTIONS,
    window: int = WINDOW,
    large_window: int = MANY,
    long_subscriptions: int = LONG_SUBSCRIPTIONS,
    block: int = BLOCK,
) -> Figures:
    """The number of groups a cell is divided into."""
    warm_up(setup)
    table, lines = [], {}
    sizes = Sizes(subscriptions, window, large_window, long_subscriptions, block)
    for name, size, count in sizes.settings(setup):
        ground = prepare(setup, name, size, count, block)
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
    yield Table(
        "relevant-groups",
        ("set, groups", "ms an object", "postings looked at", "bytes a subscription"),
        table,
    )
    yield LinePlot(
        "relevant-groups",
        lines,
        x_label="groups in a cell",
        y_label="matching, ms an object",
        x_scale="linear",
    )
