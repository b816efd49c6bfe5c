"""Skype and DSkype: top-k subscriptions by spatial and textual relevance in a sliding window."""

from __future__ import annotations

from bench.harness import POSTS, VENUES, Experiment

BOTH = (POSTS, VENUES)
FEW = {
    "subscriptions": 500,
    "window": 4_000,
    "large_window": 6_000,
    "long_subscriptions": 200,
    "block": 200,
}

EXPERIMENTS = (
    Experiment(
        "relevant",
        "What do an arriving and an expiring object cost with the paper's defaults?",
        "papers.skype.costs:measure_defaults",
        data=BOTH,
        quick=FEW,
    ),
    Experiment(
        "relevant-growth",
        "How many relevant subscriptions can one machine hold?",
        "papers.skype.costs:measure_growth",
        quick={"sizes": (250, 500, 1_000), "distinct": 500, "window": 4_000, "block": 200},
        full={
            "sizes": (100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000),
        },
    ),
    Experiment(
        "relevant-prunings",
        "What is each pruning of the index worth, and how does the index compare with CIQ?",
        "papers.skype.prunings:compare_prunings",
        data=BOTH,
        quick=FEW,
    ),
    Experiment(
        "relevant-groups",
        "Into how many groups should a cell be divided?",
        "papers.skype.prunings:vary_groups",
        data=BOTH,
        quick=FEW,
    ),
    Experiment(
        "relevant-buffers",
        "Which rule for buffers makes expiring objects cheapest?",
        "papers.skype.parameters:vary_buffers",
        data=BOTH,
        quick={"count": 200, "window": 4_000, "block": 200},
    ),
    Experiment(
        "relevant-sweeps",
        "How do k, the number of keywords and a window by time change the costs?",
        "papers.skype.parameters:vary_subscriptions",
        quick={"count": 200, "window": 4_000, "block": 200},
    ),
    Experiment(
        "relevant-window",
        "How does the size of the window change the costs?",
        "papers.skype.parameters:vary_window",
        quick={"sizes": (2_000, 4_000), "count": 200, "block": 100},
        full={"sizes": (50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000)},
    ),
    Experiment(
        "relevant-plans",
        "Which of DSkype's plans has the best throughput, by workers?",
        "papers.skype.plans:compare_plans",
        quick={
            "subscriptions": 400,
            "long_subscriptions": 200,
            "window": 4_000,
            "workers": (4, 8),
        },
    ),
)
