"""Tornado: adaptive grids (A-Grid), neighbour-based routing and textual summaries."""

from __future__ import annotations

from bench.harness import Experiment

EXPERIMENTS = (
    Experiment(
        "tornado",
        "Which of Tornado's claims about routing, summaries and workers hold here?",
        "papers.tornado.claims:check_claims",
        quick={"subscriptions": 2_000, "objects": 4_000, "drawn": 4_000},
        full={"subscriptions": 1_000_000},
    ),
)
