"""`placewire plan`: compare plans on given data, or show the plan in force."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.text import Text

from placewire.cli.maps import can_draw, draw_plan
from placewire.cli.options import CommandTarget, open_client
from placewire.cli.output import Heading, ProgressLine, format_figure, format_request, print_table
from placewire.ingest.log import detect_format
from placewire.model.errors import Unusable
from placewire.model.subscriptions import take_rows
from placewire.plans.boolean.methods import CANDIDATES, METHODS, memory_of_machine
from placewire.plans.cost.measures import (
    Choice,
    Machines,
    Measures,
    Score,
    choose_plan,
    measure_plan,
    post_rows,
    score_plan,
    spread_workers,
)
from placewire.plans.cost.model import CostModel, LoadModel, calibrate
from placewire.plans.cost.sstd import SSTD, gather_statistics
from placewire.plans.cost.tornado import TORNADO
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import Leaves
from placewire.plans.route.leaf_route import write_plan
from placewire.plans.sample.sample import CRQ, SIDE, Sample, choose_evenly, make_sample
from placewire.plans.sample.sampler import Reservoir, Survey, survey_files
from placewire.status import open_state, plan_facts, read_status

ALL, AUTO = "all", "auto"
KERNEL_ROWS = 500  # enough to load every kernel before anything is timed
HOW_TO_DRAW = "pictures need matplotlib: pip install 'placewire[draw]'"
LEAF_HEADINGS: list[Heading] = [
    ("", "leaf"), ("", "west"), ("", "south"), ("", "east"), ("", "north"), ("", "workers"),
    ("share of", "load, %"),
]  # fmt: skip

SHARED = "shared"
NONE = "-"
MAX_CELLS = 20
TOP_KEYWORDS = 10  # their share of all shows how skewed keywords are
STATISTICS_HEADINGS = (
    ("cell: lon", "and lat"), ("objects", ""), ("obj.", "%"), ("asking", "%"), ("key-", "words"),
    ("top 10", "%"), ("wordless", "%"),
)  # fmt: skip
LOAD = ("load", "")
LOAD_UNITS = {  # the heading and the size of the unit of each cost model
    "load": ("ms", 1e6),
    TORNADO.name: ("1000", 1e3),
    SSTD.name: ("", 1.0),
}
PLAN_HEADINGS = (
    ("plan", ""), ("leaves", ""), ("copies", "a sub."), ("copies", "an obj."), ("drop", "%"), LOAD,
    ("Lmax/", "Lmin"), ("router", "MB"), ("build", "s"), ("ns an", "obj."), ("ns a", "sub."),
    ("cost", "ns"),
)  # fmt: skip


class PlanOptions(NamedTuple):
    """The options of the command, for given data."""

    objects: Path
    subscriptions: Path
    workers: int
    plan: str
    out: Path | None
    sample: int
    sample_subscriptions: int
    machines: int
    cost: str
    statistics: bool
    json: bool = False


def run_plan(options: PlanOptions) -> None:
    """Compare plans: make them, print a table, write their files; raises Unusable."""
    names = read_methods(options.plan)
    if options.cost not in LOAD_UNITS:
        raise Unusable(f"cost: must be one of {', '.join(LOAD_UNITS)}, got {options.cost!r}")
    for path in (options.objects, options.subscriptions):
        detect_format(path)
    if options.out is not None:
        make_folder(options.out)
    # Terms of a plan are keyed hashes, so a saved plan carries its secret key.
    key = (secrets.randbits(64), secrets.randbits(64))
    survey = read_files(options, key)
    made = make_plans(names, survey, options)
    choice = choose_auto(made, options) if options.plan in (ALL, AUTO) else None
    if options.json:
        written = write_files(options.out, made, survey, key) if options.out and made else None
        print(json.dumps(comparison_facts(survey, made, choice, written)))
        return
    console = Console()
    for line in describe_survey(survey, options.workers):
        console.print(Text(line), soft_wrap=True)
    console.print()
    if options.statistics:
        print_statistics(console, make_sample(*survey.objects, survey.rows))
        console.print()
    with_shared = options.plan in (ALL, AUTO, SHARED)
    print_plans(console, made, choice, options.cost, with_shared)
    if choice is not None:
        console.print()
        console.print(Text(f"auto takes {choice.why}"), soft_wrap=True)
    if options.out is not None and made:
        console.print()
        console.print(Text(write_files(options.out, made, survey, key)), soft_wrap=True)


def read_methods(plan: str) -> tuple[str, ...]:
    """Return the methods to compare; raises Unusable."""
    if plan == ALL:
        return tuple(METHODS)
    if plan == AUTO:
        return CANDIDATES
    if plan == SHARED:
        return ()
    if plan not in METHODS:
        known = ", ".join((ALL, AUTO, SHARED, *METHODS))
        raise Unusable(f"plan: must be one of {known}, got {plan!r}")
    return (plan,)


def make_folder(path: Path) -> None:
    """Create the folder of pictures and plans; raises Unusable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unusable(f"out {path}: cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise Unusable(f"out {path}: cannot be written: permission denied")


def read_files(options: PlanOptions, key: tuple[int, int]) -> Survey:
    """Sample both files, with progress."""
    same = options.objects.samefile(options.subscriptions)
    paths = [options.objects] if same else [options.objects, options.subscriptions]
    with ProgressLine("reading", sum(path.stat().st_size for path in paths)) as progress:
        return survey_files(
            options.objects,
            options.subscriptions,
            key,
            sample=options.sample,
            sample_subscriptions=options.sample_subscriptions,
            show=lambda read, events: progress.update(read, f"{events:,} events"),
        )


def make_plans(names: tuple[str, ...], survey: Survey, options: PlanOptions) -> list[MeasuredPlan]:
    """Make and measure each plan.

    Plans are made as `placewire replay` makes them; loads are measured by `--cost`.
    """
    if not names:
        return []
    made = []
    workers = options.workers
    with ProgressLine("planning", len(names) + 1) as progress:
        progress.update(0, "loading kernels (compiled on the first run)")
        cost, prices, _ = calibrate()
        machines = machines_of(options)
        load_kernels(names, survey, options, cost)
        cost = cost.in_stream(int(survey.objects.codes.size), survey.rows.total)
        sample = make_sample(*survey.objects, survey.rows, cost.posting_work)
        posted = post_rows(survey.rows)
        for number, name in enumerate(names):
            progress.update(number + 1, name)
            started = time.perf_counter()
            leaves = METHODS[name](sample, workers, cost)
            build_s = time.perf_counter() - started
            measures = measure_plan(
                leaves, survey.objects, posted, sample, model_of(options.cost, cost)
            )
            score = score_plan(measures, prices, machines)
            made.append(MeasuredPlan(leaves, cost, measures, score, build_s))
    return made


def model_of(name: str, load: LoadModel) -> CostModel:
    """Return a cost model by name; `load` is PS2Stream's, calibrated on this machine."""
    models: tuple[CostModel, ...] = (load, TORNADO, SSTD)
    return next(model for model in models if model.name == name)


def load_kernels(
    names: tuple[str, ...], survey: Survey, options: PlanOptions, cost: LoadModel
) -> None:
    """Plan for a small sample first, so that build times exclude loading kernels."""
    few = Reservoir(KERNEL_ROWS)
    few.add(*survey.objects)
    objects = Objects(*few.in_order())
    rows = take_rows(survey.rows, choose_evenly(np.arange(survey.rows.total), KERNEL_ROWS))
    sample, posted = make_sample(*objects, rows, cost.posting_work), post_rows(rows)
    for name in names:
        leaves = METHODS[name](sample, options.workers, cost)
        measure_plan(leaves, objects, posted, sample, model_of(options.cost, cost))


def machines_of(options: PlanOptions) -> Machines:
    """Return the machines of the workers, each like this one."""
    return spread_workers(options.workers, options.machines, memory_of_machine())


def choose_auto(made: list[MeasuredPlan], options: PlanOptions) -> Choice:
    """Return the plan that `auto` takes, from the measures."""
    measured = {each.leaves.name: each for each in made}
    return choose_plan(
        [measured[name].leaves for name in CANDIDATES],
        lambda leaves: measured[leaves.name].measures,
        options.workers,
        calibrate().prices,
        machines_of(options),
    )


def write_files(out: Path, made: list[MeasuredPlan], survey: Survey, key: tuple[int, int]) -> str:
    """Write each plan and, with matplotlib, its picture; return a summary."""
    drawing = can_draw()
    with ProgressLine("drawing" if drawing else "writing", len(made)) as progress:
        for number, each in enumerate(made):
            progress.update(number, each.leaves.name)
            save_plan(out / f"{each.leaves.name}.plan", each, key)
            if drawing:
                path = out / f"{each.leaves.name}.png"
                draw_plan(path, each.leaves, each.measures, survey.objects.codes)
    if not drawing:
        print(HOW_TO_DRAW, file=sys.stderr)
    return f"{out}: plans {len(made)}, pictures {len(made) if drawing else 0}"


def save_plan(path: Path, made: MeasuredPlan, key: tuple[int, int]) -> None:
    """Replace a plan file atomically, because a running replay may have mapped it."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_plan(fresh, made.leaves, key, made.cost)
        os.replace(fresh, path)
    except OSError as error:
        raise Unusable(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        fresh.unlink(missing_ok=True)


def show_plan(target: CommandTarget, most: int, as_json: bool) -> None:
    """Print the boolean plan in force and its heaviest leaves; raises Unusable."""
    if target.state is not None:
        facts = plan_facts(open_state(target.state), read_status(target.state))
    else:
        with open_client(target) as client:
            facts = client.plan()
    if as_json:
        print(json.dumps(facts))
        return
    workers, leaves = facts["workers"], facts["leaves"]
    line = f"plan {facts['name']}: version {facts['version']} for {workers} worker"
    line += "s" if workers > 1 else ""
    for said in ("sized", "why"):
        line += f"; {facts[said]}" if facts.get(said) else ""
    print(line)
    if facts.get("asked"):
        print(f"  {format_request(facts['asked'])}")
    for change in facts.get("changes", ()):
        print(f"  {change['at']}: {change['line']}")
    if len(leaves) > 1 and most:
        print(f"\nthe heaviest of {len(leaves):,} leaves:")
        print_table(
            Console(highlight=False), LEAF_HEADINGS, [leaf_row(leaf) for leaf in leaves[:most]]
        )


def leaf_row(leaf: dict[str, Any]) -> list[str]:
    return [
        str(leaf["leaf"]),
        *(f"{edge:.2f}" for edge in leaf["box"]),
        " ".join(map(str, leaf["workers"])),
        f"{100 * leaf['load']:.1f}",
    ]


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
    console: Console, made: list[MeasuredPlan], choice: Choice | None, cost: str, with_shared: bool
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
