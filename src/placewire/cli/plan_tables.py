"""Tables and JSON of `placewire plan`: measures of plans and statistics of the data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from placewire.cli.format import format_figure
from placewire.cli.output import print_table
from placewire.plans.cost.choice import Choice, Score
from placewire.plans.cost.measures import Measures
from placewire.plans.cost.model import LoadModel
from placewire.plans.cost.sstd import SSTD, gather_statistics
from placewire.plans.cost.tornado import TORNADO
from placewire.plans.leaves import Leaves
from placewire.plans.sample.sample import CRQ, SIDE, Sample
from placewire.plans.sample.survey import Survey

SHARED = "shared"
NONE = "-"
MAX_CELLS = 20
TOP_KEYWORDS = 10  # their share of all shows how skewed keywords are
STATISTICS_HEADINGS = (
    ("cell: lon", "and lat"),
    ("objects", ""),
    ("obj.", "%"),
    ("asking", "%"),
    ("key-", "words"),
    ("top 10", "%"),
    ("wordless", "%"),
)
LOAD = ("load", "")
LOAD_UNITS = {  # the heading and the size of the unit of each cost model
    "load": ("ms", 1e6),
    TORNADO.name: ("1000", 1e3),
    SSTD.name: ("", 1.0),
}
PLAN_HEADINGS = (
    ("plan", ""),
    ("leaves", ""),
    ("copies", "a sub."),
    ("copies", "an obj."),
    ("drop", "%"),
    LOAD,
    ("Lmax/", "Lmin"),
    ("router", "MB"),
    ("build", "s"),
    ("ns an", "obj."),
    ("ns a", "sub."),
    ("cost", "ns"),
)


class MeasuredPlan(NamedTuple):
    """A plan with its measures."""

    leaves: Leaves
    cost: LoadModel
    measures: Measures
    score: Score
    build_s: float


def comparison_facts(
    survey: Survey, made: list[MeasuredPlan], choice: Choice | None, written: str | None
) -> dict[str, Any]:
    """Return the table as one JSON object; loads are in the unit of the cost model."""
    facts: dict[str, Any] = {
        "objects": int(survey.objects.codes.size),
        "subscriptions": survey.rows.total,
        "invalid": sum(file.invalid for file in survey.files),
        "plans": [plan_row_facts(each) for each in made],
    }
    if choice is not None:
        taken = SHARED if choice.leaves is None else choice.leaves.name
        facts["auto"] = {"plan": taken, "why": choice.why}
    return facts | ({"written": written} if written is not None else {})


def plan_row_facts(made: MeasuredPlan) -> dict[str, Any]:
    """Return the measures of one plan as JSON fields."""
    measures = made.measures
    return {
        "plan": measures.name,
        "leaves": int(measures.leaves),
        "copies_a_subscription": float(measures.subscriptions_replicated),
        "copies_an_object": float(measures.objects_replicated),
        "dropped_share": measures.dropped / max(measures.objects, 1),
        "load": float(measures.workload),
        "balance": float(measures.balance),
        "router_bytes": int(measures.router_bytes),
        "build_s": made.build_s,
        "route_ns": float(measures.route_ns),
        "follow_ns": float(measures.follow_ns),
        "cost_ns": float(made.score.total),
    }


def describe_survey(survey: Survey, workers: int) -> list[str]:
    """Describe the data of the table: how much there is and what was left out."""
    objects, rows = int(survey.objects.codes.size), survey.rows.total
    for what, count in (("objects", objects), ("subscriptions", rows)):
        if count == 0:
            print(f"placewire: no {what} were found: the plans say little", file=sys.stderr)
    lines = [
        f"objects {format_share(objects, survey.objects_seen)},"
        f" subscriptions {format_share(rows, survey.subscriptions_seen)}, workers {workers}"
    ]
    if survey.others_seen:
        lines.append(
            f"{survey.others_seen:,} nearest, relevant and trending subscriptions are left out:"
            " no plan here cuts them"
        )
    lines += [
        f"{file.path}: {file.invalid:,} of {file.events:,} events are invalid and left out;"
        f" the first is {file.first_error}"
        for file in survey.files
        if file.invalid
    ]
    return lines


def format_share(some: int, of_all: int) -> str:
    """Format a count, and of how many if it is a sample."""
    return f"{some:,}" if some == of_all else f"{some:,} of {of_all:,}"


def print_plans(
    console: Console,
    made: list[MeasuredPlan],
    choice: Choice | None,
    cost: str,
    with_shared: bool,
) -> None:
    """Print a row for each plan; a terminal highlights the one that `auto` takes."""
    unit, size = LOAD_UNITS[cost]
    rows = [plan_row(each, size) for each in made]
    if with_shared:
        rows.insert(0, shared_row(choice.scores[0] if choice is not None else None))
    best = None
    if choice is not None:
        best = SHARED if choice.leaves is None else choice.leaves.name
    headings = [("load", unit) if heading == LOAD else heading for heading in PLAN_HEADINGS]
    print_table(console, headings, rows, best)


def plan_row(made: MeasuredPlan, load_size: float) -> list[str]:
    """Return the row of a plan, with loads in units of `load_size`."""
    measures = made.measures
    return [
        measures.name,
        str(measures.leaves),
        format_figure(measures.subscriptions_replicated),
        format_figure(measures.objects_replicated),
        format_figure(100 * measures.dropped / max(measures.objects, 1)),
        format_figure(measures.workload / load_size),
        format_figure(measures.balance),
        format_figure(measures.router_bytes / 1e6),
        format_figure(made.build_s),
        f"{measures.route_ns:.0f}",
        f"{measures.follow_ns:.0f}",
        f"{made.score.total:.0f}",
    ]


def shared_row(score: Score | None) -> list[str]:
    """Return the row of `shared`, which has only a cost: it neither cuts nor routes."""
    cost = NONE if score is None else f"{score.total:.0f}"
    return [SHARED, *[NONE] * (len(PLAN_HEADINGS) - 2), cost]


def print_statistics(console: Console, sample: Sample) -> None:
    """Print the leaves of the statistics quadtree that have the most objects."""
    tree = gather_statistics(sample)
    asking = tree.probabilities[:, CRQ]
    cells = np.flatnonzero(tree.first_child < 0)
    cells = cells[np.lexsort((-asking[cells], -tree.objects[cells]))][:MAX_CELLS]
    rows = []
    for at in cells.tolist():
        cell = tree.cells[at]
        _, counts = cell.keywords_of(CRQ)
        top = np.sort(counts)[::-1][:TOP_KEYWORDS].sum()
        rows.append(
            [
                format_box(tree.box[at].tolist()),
                f"{cell.objects:,}",
                format_figure(100 * cell.objects / max(sample.objects, 1)),
                format_figure(100 * asking[at]),
                f"{counts.size:,}",
                format_figure(100 * top / max(int(counts.sum()), 1)),
                format_figure(100 * cell.chances[CRQ, 0]),
            ]
        )
    print_table(console, STATISTICS_HEADINGS, rows)


def format_box(box: Sequence[int]) -> str:
    """Format a box of plan cells in degrees."""
    west, east = (360 * column / SIDE - 180 for column in box[0::2])
    south, north = (180 * row / SIDE - 90 for row in box[1::2])
    return f"{west:.2f}..{east:.2f} {south:.2f}..{north:.2f}"
