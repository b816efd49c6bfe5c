"""Vary the parameters of the DkM-SKS paper: theta, gamma1, gamma2, workers and k."""

from __future__ import annotations

import time

from bench.clock import say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.papers.dkm_sks.cluster import TickChanges, run_ticks
from bench.papers.dkm_sks.data import (
    INITIAL,
    K_MAX,
    MADE_UP,
    VENUES,
    StandingResults,
    read_source,
    stand,
)
from bench.papers.dkm_sks.plans import (
    PAPER,
    WORKERS,
    PlanOutcome,
    check_same,
    compare,
    deal_out,
    warm_up,
)
from placewire.plans.nearest.baselines import plan_sop
from placewire.plans.nearest.methods import GAMMA1, GAMMA2, plan_dkm

NAMES = (*PAPER, "dkm balls", "shared")
THETAS = (5, 10, 20, 40, 80)
GAMMA1S = (1, 5, 20, 100, 500)
GAMMA2S = (20, 1_000, 10_000, 100_000)
PRINTED = (100_000, 20)  # gamma1 and gamma2 as the paper prints them
WORKER_COUNTS = (2, 5, 10, 15, 20)
K_MAXES = (1, 5, 10, 15, 20)
HEADER = ("kNN, ms", "max - min, ms", "insert, ms", "update, ms", "plan, s", "subsets")


def vary_parameters(
    setup: Setup,
    subscriptions: int = 100_000,
    initial: int = INITIAL,
    ticks: int = 10,
    worker_counts: tuple[int, ...] = WORKER_COUNTS,
    k_maxes: tuple[int, ...] = K_MAXES,
) -> Figures:
    """One parameter at a time, the others as in the paper; on venues if they are there."""
    source = read_source(setup, VENUES if setup.data else MADE_UP, ticks, initial)
    warm_up(source)
    standing = stand(source, subscriptions)
    yield from vary_plans(standing, ticks)
    by_workers = {workers: compare(standing, NAMES, ticks, workers) for workers in worker_counts}
    yield from save_by("workers", by_workers)
    by_k = {
        k: compare(stand(source, standing.rows.total, k_max=k), NAMES, ticks)
        for k in k_maxes
        if k != K_MAX
    }
    by_k[K_MAX] = by_workers[WORKERS]
    yield from save_by("k_max", dict(sorted(by_k.items())))


def save_by(parameter: str, outcomes: dict[int, dict[str, PlanOutcome]]) -> Figures:
    """Tables and a plot of all plans against a parameter."""
    values = tuple(f"{value:,}" for value in outcomes)
    label = parameter.replace("_", "-")
    for what, of in (
        ("update, ms", lambda o: o.update_ms),
        ("max - min, ms", lambda o: o.balance_ms),
        ("kNN, ms", busiest_ms),
    ):
        say(f"{what} by {parameter}")
        short = what.split(",")[0].replace(" ", "")
        rows = [
            (name, *(of(by_name[name]) for by_name in outcomes.values()))
            for name in next(iter(outcomes.values()))
        ]
        yield Table(f"nearest-{label}-{short}", (what, *values), rows)
    series = {
        name: [(value, busiest_ms(by_name[name])) for value, by_name in outcomes.items()]
        for name in next(iter(outcomes.values()))
    }
    yield LinePlot(
        f"nearest-{label}",
        series,
        x_label=parameter,
        y_label="kNN update of the busiest worker, ms",
        x_scale="log" if parameter == "subscriptions" else "linear",
    )


def busiest_ms(outcome: PlanOutcome) -> float:
    return outcome.mean_ms(lambda tick: float(tick.knn_s.max()))


def vary_plans(standing: StandingResults, ticks: int) -> Figures:
    """theta of SOP; gamma1 and gamma2 of DkM, and both as the paper prints them."""
    changes = TickChanges(standing, ticks)
    outcomes: list[PlanOutcome] = []
    rows = []

    def note(label: str, made_s: float, subsets: int) -> None:
        check_same(outcomes[0], outcomes[-1])
        knn, balance, insert, update = measure(outcomes[-1])
        rows.append((label, knn, balance, insert, update, made_s, subsets))
        say(f"{label}: {knn:.2f} ms")

    for theta in THETAS:
        started = time.monotonic()
        assignment = plan_sop(standing.sample(), WORKERS, theta=theta)
        made_s = time.monotonic() - started
        cluster = deal_out(standing, assignment, "subsets", theta)
        outcomes.append(PlanOutcome("sop", run_ticks(changes, cluster), made_s, cluster.build_s))
        assert cluster.subsets is not None
        note(f"sop, theta {theta}", made_s, cluster.subsets.worker.size)
    gammas = [(gamma1, GAMMA2) for gamma1 in GAMMA1S]
    gammas += [(GAMMA1, gamma2) for gamma2 in GAMMA2S if gamma2 != GAMMA2]
    for gamma1, gamma2 in (*gammas, PRINTED):
        started = time.monotonic()
        assignment = plan_dkm(standing.sample(), WORKERS, gamma1=gamma1, gamma2=gamma2)
        made_s = time.monotonic() - started
        dealt = deal_out(standing, assignment, "broadcast")
        outcomes.append(PlanOutcome("dkm", run_ticks(changes, dealt), made_s, dealt.build_s))
        label = f"dkm, gamma1 {gamma1:,}, gamma2 {gamma2:,}"
        note(label, made_s, assignment.rule.rectangles.shape[0])
    yield Table("nearest-parameters", ("parameters", *HEADER), rows)


def measure(outcome: PlanOutcome) -> tuple[float, float, float, float]:
    return (
        busiest_ms(outcome),
        outcome.balance_ms,
        outcome.mean_ms(lambda tick: tick.inserting_s),
        outcome.update_ms,
    )
