"""The projection to large clusters: costs are found again, and paths grow as they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import workload as workloads
from bench.product.costs import Jobs, MeasuredBatch, first_of, measure_batches
from bench.product.projection import ClusterSize, Costs, fit, fit_costs, project


def made_batch(subscriptions: int, blocks: int) -> MeasuredBatch:
    """A batch whose costs are known."""
    objects = 1_000
    candidates = round(objects * (20 + 50e-6 * subscriptions))
    matches = round(objects * 30e-6 * subscriptions)
    return MeasuredBatch(
        subscriptions, objects, blocks, candidates, matches,
        decode_s=1e-6 * objects + 1e-3 * blocks,
        retain_s=2e-6 * objects,
        match_s=1e-7 * objects + 3e-8 * candidates,
        write_s=5e-4 * blocks + 1e-8 * matches,
        commit_s=2e-3 + 1e-3 * blocks,
        sink_s=3e-7 * matches,
        result_bytes=70 * matches,
        bytes_a_subscription=180,
    )  # fmt: skip


@pytest.fixture
def costs() -> Costs:
    batches = [made_batch(s, b) for s in (10_000, 100_000, 1_000_000) for b in (2, 4, 16)]
    jobs = [Jobs(n, 1.0, 0.1 + 0.002 * n, 0.1 + 0.052 * n) for n in (2, 16, 64)]
    return fit_costs(batches, jobs)


def test_costs_are_found_again(costs: Costs) -> None:
    assert costs.decode.each == pytest.approx((1e-6, 1e-3))
    assert costs.match.each == pytest.approx((1e-7, 3e-8), rel=1e-3)
    assert costs.commit.each == pytest.approx((2e-3, 1e-3, 0), abs=1e-9)
    assert costs.sink(5, 100) == pytest.approx(3e-5)
    assert costs.job.each == pytest.approx((0.1, 0.002))
    assert costs.task.each == pytest.approx((0.05,))
    assert costs.matches(1, 2e6) == pytest.approx(60)
    assert (costs.result_bytes, costs.segment_bytes) == (70, 180)


def test_no_cost_is_below_zero() -> None:
    found = fit([(1, 1), (1, 2), (1, 4)], [3.0, 2.0, 1.0])
    assert min(found.each) >= 0
    assert max(found.each) > 0


def test_workers_share_their_part_and_the_driver_does_not(costs: Costs) -> None:
    one, ten = (project(costs, ClusterSize(n, 1e6, objects=1_000_000)) for n in (1, 10))
    assert one.match_s == pytest.approx(10 * ten.match_s)
    assert one.match_s == pytest.approx(1e6 * (1e-7 + 70 * 3e-8), rel=1e-3)
    assert ten.commit_s > one.commit_s  # more blocks
    assert ten.job_s > one.job_s
    assert one.matches == ten.matches == pytest.approx(30e6)


def test_a_sink_that_cannot_keep_up_is_what_a_stream_waits_for(costs: Costs) -> None:
    many = project(costs, ClusterSize(100, 1e6))
    assert many.slowest == "sink"
    assert many.objects_per_s == pytest.approx(1 / (30 * 3e-7), rel=1e-3)
    few = project(costs, ClusterSize(100, 1e6, matches_an_object=0.1))
    assert few.slowest != "sink"
    assert few.objects_per_s == few.objects / few.seconds


def test_batches_are_measured_with_their_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standing subscriptions match, are settled and come out of the sink."""
    monkeypatch.setattr(workloads, "CACHE", tmp_path / "cache")
    workload = first_of(workloads.generated(2_000, 3_000, seed=3), 2_000, 2_500)
    batches = measure_batches(workload, tmp_path, 400)
    assert [batch.objects for batch in batches] == [400] * 4
    for batch in batches:
        assert batch.subscriptions == 2_500
        assert batch.candidates >= batch.matches > 0
        assert batch.result_bytes > 40 * batch.matches
        assert min(batch[5:11]) > 0
