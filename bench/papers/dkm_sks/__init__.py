"""DkM-SKS: continuous k nearest objects with keywords, by the plans KOP, SOP and DkM."""

from __future__ import annotations

from bench.harness import VENUES, Experiment

FEW = {"initial": 20_000, "ticks": 3}

EXPERIMENTS = (
    Experiment(
        "nearest",
        "Which plan has the shortest update of `nearest` results, and the best balance?",
        "papers.dkm_sks.plans:compare_plans",
        data=(VENUES,),
        quick=FEW | {"subscriptions": 1_000},
        full={"subscriptions": 1_000_000},
    ),
    Experiment(
        "nearest-sweeps",
        "How do theta, gamma, workers and k change the update time?",
        "papers.dkm_sks.parameters:vary_parameters",
        data=(VENUES,),
        quick=FEW | {"subscriptions": 1_000, "worker_counts": (2, 20), "k_maxes": (1, 10)},
        full={"subscriptions": 1_000_000},
    ),
    Experiment(
        "nearest-growth",
        "How does the update time grow from 0.1 to 1 M subscriptions, on one core and on two?",
        "papers.dkm_sks.growth:measure_growth",
        data=(VENUES,),
        quick={"sizes": (1_000, 2_000), "initial": 20_000, "ticks": 4},
        full={"sizes": (100_000, 500_000, 1_000_000, 5_000_000, 10_000_000)},
    ),
    *(
        Experiment(
            f"nearest-{millions}m",
            f"How long is an update at {millions} M subscriptions?",
            "papers.dkm_sks.growth:measure_growth",
            data=(VENUES,),
            default={"sizes": (millions * 1_000_000,)},
            quick={"sizes": (2_000,), "initial": 20_000, "ticks": 4},
            large=True,
        )
        for millions in (1, 5, 10)
    ),
)
