"""Adjusting plans: the decisions themselves, and that no result depends on them."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from placewire.batch.coordinator import Coordinator
from placewire.batch.local_runner import replay_log
from placewire.ingest.log import identify_log
from placewire.ingest.sources import LogSource
from placewire.kernels.jit import read_only
from placewire.kinds.boolean.kernels.probes import ranges_touching_postings
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.model.errors import Unusable
from placewire.model.kinds import NEAREST, RELEVANT
from placewire.model.settings import Settings
from placewire.plans.allocation import assign_least
from placewire.plans.boolean.methods import METHODS
from placewire.plans.cost.measures import post_rows
from placewire.plans.cost.model import LoadModel, draw_rows
from placewire.plans.leaves import Leaves, check_leaves
from placewire.plans.messages import WorkerSummary
from placewire.plans.rebalance.adjustment import Adjustment, PartLoads, cells_of, sum_by_worker
from placewire.plans.rebalance.change import MOST_RANGES, gained_ranges, has_worker
from placewire.plans.rebalance.ps2 import SELECTS, Ps2Rule, adjust_ps2, count_touching, join_boxes
from placewire.plans.rebalance.rebalancer import (
    ADJUSTERS,
    LoadSource,
    Readings,
    Rebalancer,
    RebalanceRule,
    read_rebalance,
)
from placewire.plans.rebalance.signals import Signals
from placewire.plans.rebalance.sstd import WAYS, SstdRule, adjust_sstd
from placewire.plans.rebalance.tornado import BorderLines, adjust_tornado
from placewire.plans.route.leaf_route import make_tables
from placewire.plans.sample.sample import SIDE, Sample
from placewire.storage.layout import StateDir
from town_samples import clustered, make, scattered


def test_uneven_workers_are_dealt_out_anew_and_then_left_alone_for_longer(tmp_path: Path) -> None:
    signals = Signals(StateDir(tmp_path), None)
    rebalancer = Rebalancer(RebalanceRule(), signals)

    def tell(batch: int, busy: int) -> None:
        told = [WorkerSummary(w, NEAREST, 1_000, busy if w == 0 else 10, 0, 0, 0.1) for w in (0, 1)]
        signals.observe(batch, told, None, 2)

    for batch in range(20):
        tell(batch, 10)
    assert rebalancer.detect_row_drift(NEAREST, -1, 1, 2) is None
    for batch in range(20, 24):
        tell(batch, 900_000)
    counted = rebalancer.detect_row_drift(NEAREST, 10, 1, 2)
    assert counted is not None
    assert counted[0] > 20 * counted[1]
    assert rebalancer.detect_row_drift(NEAREST, 10, 4, 2) is None
    assert rebalancer.detect_row_drift(NEAREST, 20, 1, 2) is None
    assert rebalancer.detect_row_drift(NEAREST, 10, 1, 3) is None
    assert rebalancer.detect_row_drift(RELEVANT, -1, 1, 2) is None


@pytest.mark.parametrize(
    ("busy", "dealt"),
    [
        ((900_000, 900_000, 900_000), True),
        ((900_000, 800_000, 750_000), True),
        ((90_000, 90_000, 900_000), False),  # a burst has just come
        ((900_000, 400_000, 200_000), False),  # and passes by itself
    ],
)
def test_a_burst_that_passes_is_not_levelled(
    busy: tuple[int, ...], dealt: bool, tmp_path: Path
) -> None:
    signals = Signals(StateDir(tmp_path), None)
    rebalancer = Rebalancer(RebalanceRule(), signals)
    for batch, most in enumerate((10,) * 10 + busy):
        told = [WorkerSummary(w, NEAREST, 1_000, most if w == 0 else 10, 0, 0, 0.1) for w in (0, 1)]
        signals.observe(batch, told, None, 2)
    assert (rebalancer.detect_row_drift(NEAREST, 0, 1, 2) is not None) == dealt


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_the_assignment_is_the_cheapest_of_all(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(30):
        cost = rng.integers(0, 9, (size, size)).astype(float)
        found = assign_least(cost)
        assert sorted(found.tolist()) == list(range(size))
        least = min(
            sum(cost[row, column] for row, column in enumerate(columns))
            for columns in permutations(range(size))
        )
        assert cost[np.arange(size), found].sum() == pytest.approx(least)


@pytest.mark.parametrize("seed", range(20))
def test_cells_to_move_are_enough_and_the_best_are_the_fewest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    load, size = rng.integers(1, 20, 9).astype(float), rng.integers(1, 20, 9).astype(float)
    tau = float(load.sum()) * 0.4
    paid = {}
    for name, select in SELECTS.items():
        chosen = select(load, size, tau)
        assert np.unique(chosen).size == chosen.size
        assert load[chosen].sum() >= tau
        paid[name] = size[chosen].sum()
    sets = (np.array(list(np.ndindex(*[2] * 9))) == 1) @ np.stack([load, size], axis=1)
    assert paid["dp"] == sets[sets[:, 0] >= tau, 1].min()
    assert paid["dp"] <= paid["gr"]


def draw_sample(seed: int) -> Sample:
    """A region for text beside one for space."""
    text, space = clustered(0, 60, seed), scattered(6000, seed)
    return make(text[0][:300] + space[0][:300], text[1] + space[1])


def drifted(method: str, workers: int, seed: int) -> tuple[Leaves, PartLoads, Sample]:
    """A plan of an even sample, and loads that have gathered in one corner since."""
    sample = draw_sample(seed)
    leaves = METHODS[method](sample, workers, LoadModel())
    rng = np.random.default_rng(seed)
    load = rng.random(leaves.part_worker.size) + 1.0
    load[leaves.part_worker == leaves.part_worker[0]] *= 10.0
    return leaves, PartLoads(load, rng.integers(1, 50, load.size).astype(float)), sample


@pytest.mark.parametrize("method", ["kdt", "kdtree", "qt", "grid", "frequency", "termhash"])
@pytest.mark.parametrize("workers", [2, 5])
def test_adjusted_plans_are_plans_and_lower_the_largest_load(method: str, workers: int) -> None:
    for seed in range(4):
        leaves, loads, sample = drifted(method, workers, seed)
        before = sum_by_worker(cells_of(leaves, loads), workers)
        found = [adjust_sstd(leaves, loads, sample, LoadModel())]
        found += [
            adjust_ps2(leaves, loads, sample, LoadModel(), Ps2Rule(select=select))
            for select in SELECTS
        ]
        for adjustment in found:
            if adjustment is not None:
                check_leaves(adjustment.leaves)
                assert adjustment.loads.max() < before.max()
                assert adjustment.loads.sum() <= before.sum() * (1 + 1e-9)
                assert adjustment.moved > 0


@pytest.mark.parametrize("way", WAYS)
def test_each_of_sstds_ways_works_alone_and_keeps_the_load(way: str) -> None:
    leaves, loads, sample = drifted("qt", 4, 3)
    before = sum_by_worker(cells_of(leaves, loads), 4)
    found = adjust_sstd(leaves, loads, sample, LoadModel(), SstdRule(ways=(way,)))
    assert found is not None
    assert found.way == way
    assert found.loads.max() < before.max()
    assert found.loads.sum() == pytest.approx(before.sum())


@pytest.mark.parametrize("workers", [2, 3, 4, 6, 9])
def test_tornado_shifts_borders_and_tiles_the_world(workers: int) -> None:
    names = set()
    for seed in range(12):
        sample = draw_sample(seed)
        leaves = METHODS["agrid"](sample, workers, LoadModel())
        rng = np.random.default_rng(seed)
        load = rng.random(leaves.total) * 10.0 + 1.0
        loads = PartLoads(load, np.full(leaves.total, 10.0))

        def ask(leaf: int, leaves: Leaves = leaves, rng: np.random.Generator = rng) -> BorderLines:
            west, south, east, north = leaves.box[leaf].tolist()
            number = tuple(
                np.unique(rng.integers(low, high, 30)).astype(np.int32)
                for low, high in ((west, east), (south, north))
            )
            return BorderLines(number, (rng.random(number[0].size), rng.random(number[1].size)))

        found = adjust_tornado(leaves, loads, ask, 0.0)
        if found is not None:
            check_leaves(found.leaves)
            names.add(found.way)
            assert found.loads.max() < load.max() + 1e-9
        assert adjust_tornado(leaves, loads, ask, 1e9) is None
    assert names


def test_tornado_leaves_plans_alone_that_are_not_a_box_a_worker() -> None:
    leaves, loads, _ = drifted("grid", 3, 1)
    assert adjust_tornado(leaves, loads, lambda leaf: pytest.fail("asked"), 0.0) is None


def test_joined_boxes_cover_a_mask_once() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        mask = rng.random((6, 7)) < 0.5
        covered = np.zeros(mask.shape, int)
        for first, last, low, high in join_boxes(mask):
            covered[first:last, low:high] += 1
        assert (covered == mask).all()


def test_touched_pieces_are_counted_also_across_the_antimeridian() -> None:
    columns, rows = np.array([0, 10, 20, SIDE]), np.array([0, 5, 100])
    ranges = np.array(
        [[0, 0, 9, 4], [5, 0, 15, 60], [SIDE - 5, 2, 3, 2], [30, 200, 40, 300]], np.int32
    )
    touched = count_touching(ranges, columns, rows)
    assert touched.tolist() == [[3, 1], [1, 1], [1, 0]]


def test_a_level_system_does_not_swing(tmp_path: Path) -> None:
    """Loads that differ by chance are left alone, and after a change there is a rest."""
    sample = draw_sample(1)
    leaves = METHODS["grid"](sample, 4, LoadModel())
    signals = Signals(StateDir(tmp_path), None)
    rebalancer = Rebalancer(RebalanceRule("sstd"), signals)
    cost = LoadModel(per_check=0.0, per_posting=8.0)
    rng = np.random.default_rng(2)

    def batch(factor: float) -> bool:
        signals.observe(0, [], leaves, 4)
        owner = np.zeros(leaves.total, int)
        owner[:] = leaves.part_worker[leaves.part_offsets[:-1]]
        counts = rng.poisson(40, leaves.total) * np.where(owner == 0, factor, 1.0)
        signals.counts[0, np.arange(leaves.total), owner] += counts
        return rebalancer.has_drifted(leaves, cost)

    assert not any(batch(1.0) for _ in range(40))
    assert any(batch(3.0) for _ in range(12))
    signals.forget(leaves.total, 4)
    assert not any(batch(3.0) for _ in range(6))


@pytest.mark.parametrize("name", ["auto", "ps2-global", "sstd"])
def test_a_level_stream_keeps_its_plan(name: str, tmp_path: Path) -> None:
    """Through the whole engine: objects and subscriptions all over the world, 60 batches."""
    rng = np.random.default_rng(5)
    lines = []
    for number in range(12_500):
        west, south = rng.uniform(-180, 175), rng.uniform(-90, 85)
        words = rng.choice(40, 3, replace=False)
        seconds = divmod(number // 10, 60)
        event = {"ts": f"2026-03-01T12:{seconds[0]:02d}:{seconds[1]:02d}Z"}
        if number < 500:
            box = {"box": [west, south, west + 5, south + 5]}
            event |= {"type": "subscribe", "id": f"s{number}", "kind": "boolean", "region": box}
            event |= {"where": f"w{words[0]} OR w{words[1]}"}
        else:
            text = " ".join(f"w{word}" for word in words)
            event |= {"type": "object", "id": f"o{number}", "lon": west, "lat": south, "text": text}
        lines.append(json.dumps(event))
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(lines) + "\n")
    coordinator = Coordinator(
        StateDir(tmp_path / "state"), Settings(), identify_log(log), "kdtree", 4, 4_000,
        rebalance=read_rebalance(name),
    )  # fmt: skip
    versions = [m.leaf_plan.version for m in replay_log(coordinator, LogSource(str(log)), 200, 4)]
    coordinator.close()
    assert versions[-1] == 1
    assert versions.count(1) > 40
    assert coordinator.planners.signals.batches > 20


@pytest.mark.parametrize(("then", "changes"), [(1.0, True), (2.9, False), (4.0, False)])
def test_an_adjustment_is_believed_when_it_was_tried(
    then: float, changes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a way promises: if trying it takes little off the largest load, it is left.

    Asking again in vain takes twice as long each time.
    """
    leaves = METHODS["grid"](draw_sample(1), 4, LoadModel())
    other = leaves._replace(part_worker=leaves.part_worker[::-1].copy())
    signals = Signals(StateDir(tmp_path), None)
    rebalancer = Rebalancer(RebalanceRule("promise"), signals)
    cost = LoadModel(per_check=0.0, per_posting=8.0)
    asked: list[int] = []
    hashes = np.arange(1, 21, dtype=np.uint64)
    rows = draw_rows(np.random.default_rng(3), hashes, np.full(20, 1 / 20), 50)

    def promise(_: Readings) -> Adjustment:
        asked.append(signals.batches)
        return Adjustment("level", other, np.ones(4), 10.0)

    monkeypatch.setitem(ADJUSTERS, "promise", promise)
    loads = {id(leaves): [3.0, 1.0, 1.0, 1.0], id(other): [then, 1.0, 1.0, 1.0]}
    source = LoadSource(
        lambda: post_rows(rows),
        lambda: draw_sample(1),
        None,
        lambda tried: np.array(loads[id(tried)]),
    )
    owner = leaves.part_worker[leaves.part_offsets[:-1]]
    found = None
    for _ in range(60):
        signals.observe(0, [], leaves, 4)
        signals.counts[0, np.arange(leaves.total), owner] += np.where(owner == 0, 300.0, 100.0)
        found = rebalancer.decide(leaves, cost, source)
        if found is not None:
            break
    assert (found is not None) == changes
    if found is not None:
        assert "then 1.00" in rebalancer.why
        assert len(asked) == 1
    else:
        gaps = np.diff(asked)
        assert (gaps[1:] >= 2 * gaps[:-1]).all()
        assert 3 <= len(asked) <= 5


def test_an_unknown_rebalancer_is_refused() -> None:
    with pytest.raises(Unusable, match=r"rebalance: must be one of auto, .*, off, got 'x'"):
        read_rebalance("x")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("workers", [2, 3, 7])
def test_a_worker_reads_ahead_what_it_will_get(seed: int, workers: int) -> None:
    """Gained ranges are those of leaves that a worker has later and not now.

    Where there will be more workers, one fetches for each that has no process of its own yet.
    """
    rng = np.random.default_rng(seed)
    leaves = METHODS["grid"](draw_sample(seed), 3, LoadModel())
    part_worker = rng.permutation(leaves.part_worker)
    if workers != 3:
        part_worker = rng.integers(0, workers, part_worker.size).astype(np.int32)
    other = leaves._replace(part_worker=part_worker, workers=workers)
    now, later = make_tables(leaves), make_tables(other)
    codes = rng.integers(0, 1 << 32, 4_000, dtype=np.uint64)
    for worker in range(3):
        start, end = gained_ranges(now, later, worker, 3)
        assert (start < end).all()
        assert (start[1:] >= end[:-1]).all()
        at = np.searchsorted(start, codes, "right") - 1
        inside = (at >= 0) & (codes < end[np.maximum(at, 0)]) if start.size else codes < 0
        has, will = (
            has_worker(tables, some)[np.searchsorted(tables.range_start, codes, "right") - 1]
            for tables, some in ((now, [worker]), (later, range(worker, workers, 3)))
        )
        gained = will & ~has
        assert inside[gained].all()
        if start.size < MOST_RANGES:
            assert (inside == gained).all()


def test_postings_in_ranges_are_counted_once_each() -> None:
    rng = np.random.default_rng(3)
    hashes = rng.integers(1, 1 << 63, 40, dtype=np.uint64)
    index = make_boolean_segment(draw_rows(rng, hashes, np.full(40, 1 / 40), 3_000)).index

    def touch(*bounds: tuple[int, int]) -> int:
        start, end = np.array(bounds, np.uint64).T
        sums = np.zeros(1, np.uint32)
        return ranges_touching_postings(read_only(start), read_only(end), index, sums)

    whole = touch((0, 1 << 32))
    assert whole == index.postings.shape[0]
    middle = 1 << 31
    assert touch((0, middle)) + touch((middle, 1 << 32)) >= whole
    assert touch((0, 1)) <= touch((0, middle)) <= whole
    # A coarse cell that several ranges meet is read once.
    assert touch((0, middle), (middle, 1 << 32)) == whole
    edges = np.linspace(0, 1 << 32, 33).astype(int).tolist()
    assert touch(*zip(edges[:-1:2], edges[1::2], strict=True)) <= whole
