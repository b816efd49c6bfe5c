"""Hybrid: what cutting by text could save, what plan `kdt` saves, and at which thresholds.

By the load model alone, so that the figures are the same in every run but for the model's prices.
"""

from __future__ import annotations

import numpy as np

from bench.partitioning import OBJECTS, least_load, sample_half
from bench.queries import FREQUENT_SHARE, Drawn, draw, query_set
from bench.settings import Choice
from bench.tables import draw_bars, save_table
from placewire.engine.calibrating import calibrate
from placewire.plan.kdt import plan_kdt
from placewire.plan.leaves import Leaves
from placewire.plan.methods import METHODS, SPACE_METHODS, TEXT_METHODS
from placewire.plan.portion import whole_sample
from placewire.plan.similarity import text_similarity
from placewire.route.measures import Measures, Objects, measure_plan, post_rows

SETS = ("Q1", "Q2", "Q3", "Q2 at scale", "Q3 at scale", "Q2 rare", "Q3 rare")
WORKERS = (8, 32)
DELTAS = (0.0, 0.01, 0.1, 0.8, 1.1)
SAMES = (0.2, 0.01)
PAPER_POSTS = 280_000_000
HALVINGS = 5


def run(choice: Choice) -> None:
    """Tables of the most frequent terms, of loads, and of thresholds."""
    count = 1_000_000 if choice.full else 200_000
    drawn = draw(choice, OBJECTS, count)
    save_table(
        "hybrid-tokens",
        ("posts", "terms", "the 1% most frequent", "tokens they cover, %"),
        cover_tokens(drawn),
    )
    cost = calibrate().load
    loads, thresholds = [], []
    bars: dict[str, dict[str, float]] = {"better single method": {}, "kdt": {}}
    for name in SETS:
        queries = query_set(name, drawn, count)
        sample, planned = sample_half(queries, cost)
        o = queries.objects
        objects, posted = Objects(o.codes, o.term_offsets, o.terms), post_rows(queries.rows)
        charged = cost.in_stream(o.codes.size, queries.rows.total)
        similarity = text_similarity(sample, whole_sample(sample))
        least = least_load(queries, cost)
        for workers in WORKERS:

            def measure(leaves: Leaves) -> Measures:
                return measure_plan(leaves, objects, posted, charged)  # noqa: B023

            singles = [
                measure(METHODS[plan](sample, workers, planned))
                for plan in (*SPACE_METHODS, *TEXT_METHODS)
            ]
            leaves = plan_kdt(sample, workers, planned)
            kdt = measure(leaves)
            lightest = min(singles, key=lambda m: m.workload)
            levellest = min(singles, key=lambda m: float(m.loads.max()))
            loads.append(
                (
                    f"{name}, {workers} workers",
                    similarity,
                    lightest.name,
                    lightest.workload / least,
                    lightest.workload / kdt.workload,
                    levellest.name,
                    float(levellest.loads.max() / kdt.loads.max()),
                    f"{count_split(leaves)} of {leaves.total}",
                )
            )
            for label, load in zip(bars, (lightest.workload, kdt.workload), strict=True):
                bars[label][f"{name}, {workers}"] = load / least
            row: list[object] = [f"{name}, {workers} workers"]
            for same in SAMES:
                for delta in DELTAS:
                    tried = plan_kdt(sample, workers, planned, delta=delta, same=same)
                    row.append(measure(tried).workload / kdt.workload)
            thresholds.append(row)
    save_table(
        "hybrid-loads",
        ("set", "similarity", "least load of one method", "of it to the least possible",
         "of it to kdt", "least busiest of one method", "of it to kdt's busiest",
         "leaves of kdt cut by text"),
        loads,
    )  # fmt: skip
    draw_bars("hybrid", bars, y_label="load to the least possible (set, workers)")
    save_table(
        "hybrid-thresholds",
        ("load to that of kdt", *(f"delta {d}, same {s}" for s in SAMES for d in DELTAS)),
        thresholds,
    )


def count_split(leaves: Leaves) -> int:
    """How many leaves are cut by text."""
    return int(np.count_nonzero(np.diff(leaves.part_offsets) > 1))


def cover_tokens(drawn: Drawn) -> list[tuple[object, ...]]:
    """What the most frequent terms cover of ever more posts, and about of the paper's.

    From one doubling to the next the share that is not covered falls by a factor, and by a little
    more each time: with the last factor kept, the last row is the least that is to be expected.
    """
    o = drawn.objects
    posts = o.codes.size
    owner = np.repeat(np.arange(posts), np.diff(o.term_offsets))
    place = np.random.default_rng(5).permutation(posts)[owner]
    rows: list[tuple[object, ...]] = []
    uncovered = []
    for halving in range(HALVINGS, -1, -1):
        some = posts >> halving
        counts = np.sort(np.unique(o.terms[place < some], return_counts=True)[1])[::-1]
        frequent = int(FREQUENT_SHARE * counts.size)
        uncovered.append(1.0 - float(counts[:frequent].sum() / counts.sum()))
        rows.append((some, counts.size, frequent, 100.0 * (1.0 - uncovered[-1])))
    doublings = np.log2(PAPER_POSTS / posts)
    left = uncovered[-1] * (uncovered[-1] / uncovered[-2]) ** doublings
    return [*rows, (PAPER_POSTS, "", "", 100.0 * (1.0 - float(left)))]
