"""All experiments by name, gathered from the packages that declare them."""

from __future__ import annotations

from itertools import groupby

from bench import peers, product
from bench.harness import Experiment
from bench.papers import dkm_sks, ps2stream, skype, sstd, tornado
from bench.product import rebalance

PACKAGES = (product, rebalance, peers, ps2stream, tornado, sstd, skype, dkm_sks)
CATALOG: dict[str, Experiment] = {
    experiment.name: experiment for package in PACKAGES for experiment in package.EXPERIMENTS
}


def markdown_list() -> str:
    """The experiments as one Markdown table per package."""
    parts = []
    for package, experiments in groupby(CATALOG.values(), key=lambda one: one.package):
        rows = [
            (f"`{one.name}`", one.question, ", ".join(one.data) or "-", describe_needs(one))
            for one in experiments
        ]
        header = ("experiment", "question", "reads from `--data`", "only when named")
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = [
            "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
            for row in (header, ["-" * w for w in widths], *rows)
        ]
        parts.append(f"### bench/{package}\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def describe_needs(experiment: Experiment) -> str:
    """Why an experiment is not part of `all`, if it is not."""
    if experiment.external:
        return "downloads other systems"
    return "needs up to 16 GB" if experiment.large else ""
