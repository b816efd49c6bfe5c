"""Sweeps of the DkM-SKS paper: theta, gamma1, gamma2, workers and k."""

from __future__ import annotations

import time

from bench.nearest import PAPER, WORKERS, Outcome, check_same, compare, deal_out, say, warm_up
from bench.nearest_cluster import Changes, run_ticks
from bench.nearest_data import K_MAX, MADE_UP, VENUES, Standing, read_source, stand
from bench.settings import Choice
from bench.tables import draw_lines, save_table
from placewire.plans.nearest.baselines.sop import plan_sop
from placewire.plans.nearest.dkm import GAMMA1, GAMMA2, plan_dkm

NAMES = (*PAPER, "dkm balls", "shared")
TICKS = 10
SUBSCRIPTIONS = 100_000
THETAS = (5, 10, 20, 40, 80)
GAMMA1S = (1, 5, 20, 100, 500)
GAMMA2S = (20, 1_000, 10_000, 100_000)
PRINTED = (100_000, 20)  # gamma1 and gamma2 as the paper prints them
WORKER_COUNTS = (2, 5, 10, 15, 20)
K_MAXES = (1, 5, 10, 15, 20)
HEADER = ("kNN, ms", "max - min, ms", "insert, ms", "update, ms", "plan, s", "subsets")


def run(choice: Choice) -> None:
    """One parameter at a time, the others as in the paper; on venues if they are there."""
    source = read_source(choice, VENUES if choice.data else MADE_UP, TICKS)
    warm_up(source)
    standing = stand(source, 1_000_000 if choice.full else SUBSCRIPTIONS)
    run_parameters(standing)
    by_workers = {workers: compare(standing, NAMES, TICKS, workers) for workers in WORKER_COUNTS}
    save_by("workers", by_workers)
    by_k = {
        k: compare(stand(source, standing.rows.total, k_max=k), NAMES, TICKS)
        for k in K_MAXES
        if k != K_MAX
    }
    by_k[K_MAX] = by_workers[WORKERS]
    save_by("k_max", dict(sorted(by_k.items())))


def save_by(parameter: str, outcomes: dict[int, dict[str, Outcome]]) -> None:
    """Tables and a plot of all plans against a parameter."""
    values = tuple(f"{value:,}" for value in outcomes)
    label = parameter.replace("_", "-")
    for what, of in (
        ("update, ms", lambda o: o.update_ms),
        ("max - min, ms", lambda o: o.balance_ms),
        ("kNN, ms", busiest_ms),
    ):
        print(f"\n{what} by {parameter}\n")
        short = what.split(",")[0].replace(" ", "")
        rows = [
            (name, *(of(by_name[name]) for by_name in outcomes.values()))
            for name in next(iter(outcomes.values()))
        ]
        save_table(f"nearest-{label}-{short}", (what, *values), rows)
    series = {
        name: [(value, busiest_ms(by_name[name])) for value, by_name in outcomes.items()]
        for name in next(iter(outcomes.values()))
    }
    draw_lines(
        f"nearest-{label}",
        series,
        x_label=parameter,
        y_label="kNN update of the busiest worker, ms",
        x_scale="log" if parameter == "subscriptions" else "linear",
    )


def busiest_ms(outcome: Outcome) -> float:
    return outcome.mean_ms(lambda tick: float(tick.knn_s.max()))


def run_parameters(standing: Standing) -> None:
    """theta of SOP; gamma1 and gamma2 of DkM, and both as the paper prints them."""
    changes = Changes(standing, TICKS)
    outcomes: list[Outcome] = []
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
        outcomes.append(Outcome("sop", run_ticks(changes, cluster), made_s, cluster.build_s))
        assert cluster.subsets is not None
        note(f"sop, theta {theta}", made_s, cluster.subsets.worker.size)
    gammas = [(gamma1, GAMMA2) for gamma1 in GAMMA1S]
    gammas += [(GAMMA1, gamma2) for gamma2 in GAMMA2S if gamma2 != GAMMA2]
    for gamma1, gamma2 in (*gammas, PRINTED):
        started = time.monotonic()
        assignment = plan_dkm(standing.sample(), WORKERS, gamma1=gamma1, gamma2=gamma2)
        made_s = time.monotonic() - started
        dealt = deal_out(standing, assignment, "broadcast")
        outcomes.append(Outcome("dkm", run_ticks(changes, dealt), made_s, dealt.build_s))
        label = f"dkm, gamma1 {gamma1:,}, gamma2 {gamma2:,}"
        note(label, made_s, assignment.rule.rectangles.shape[0])
    save_table("nearest-parameters", ("parameters", *HEADER), rows)


def measure(outcome: Outcome) -> tuple[float, float, float, float]:
    return (
        busiest_ms(outcome),
        outcome.balance_ms,
        outcome.mean_ms(lambda tick: tick.inserting_s),
        outcome.update_ms,
    )
