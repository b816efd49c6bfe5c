"""`placewire plan`: what every plan would do with given data, as a table, pictures and files."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.text import Text

from placewire.cli.drawing import can_draw, draw_plan
from placewire.cli.progress import ProgressLine
from placewire.cli.statistics import print_statistics
from placewire.cli.tables import figure, print_rows
from placewire.ingest.log import detect_form
from placewire.model.errors import Unusable
from placewire.model.subscriptions import take_rows
from placewire.plans.boolean.methods import CANDIDATES, METHODS, memory_of_machine
from placewire.plans.cost.calibrate import calibrate
from placewire.plans.cost.choice import (
    Choice,
    Machines,
    Score,
    choose_plan,
    score_plan,
    spread_workers,
)
from placewire.plans.cost.measures import Measures, Objects, measure_plan, post_rows
from placewire.plans.cost.model import CostModel, LoadModel
from placewire.plans.cost.sstd import SSTD
from placewire.plans.cost.tornado import TORNADO
from placewire.plans.leaves import Leaves
from placewire.plans.ref import write_plan
from placewire.plans.sample.sample import make_sample
from placewire.plans.sample.sampler import Reservoir, choose_evenly
from placewire.plans.sample.survey import Survey, survey_files

ALL, AUTO, SHARED = "all", "auto", "shared"
KERNEL_ROWS = 500  # so few rows are enough to load every kernel before anything is timed
HOW_TO_DRAW = "pictures need matplotlib: pip install 'placewire[draw]'"
NONE = "-"


class PlanOptions(NamedTuple):
    """What the user typed."""

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


class Made(NamedTuple):
    """A plan that was made and measured."""

    leaves: Leaves
    cost: LoadModel
    measures: Measures
    score: Score
    build_s: float


LOAD = ("load", "")
LOAD_UNITS = {  # of each cost model, what the heading says and how much it is
    "load": ("ms", 1e6),
    TORNADO.name: ("1000", 1e3),
    SSTD.name: ("", 1.0),
}
HEADINGS = (
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


def run_plan(options: PlanOptions) -> None:
    """Make the plans, print their table, write their files; raises Unusable."""
    names = names_of(options.plan)
    if options.cost not in LOAD_UNITS:
        raise Unusable(f"cost: must be one of {', '.join(LOAD_UNITS)}, got {options.cost!r}")
    for path in (options.objects, options.subscriptions):
        detect_form(path)
    if options.out is not None:
        make_folder(options.out)
    # A plan's terms are hashes: whoever takes a saved one over takes its secret key over too.
    key = (secrets.randbits(64), secrets.randbits(64))
    survey = read_files(options, key)
    made = make_plans(names, survey, options)
    choice = choose(made, options) if options.plan in (ALL, AUTO) else None
    if options.json:
        written = write_files(options.out, made, survey, key) if options.out and made else None
        print(json.dumps(to_facts(survey, made, choice, written)))
        return
    console = Console()
    for line in describe(survey, options):
        console.print(Text(line), soft_wrap=True)
    console.print()
    if options.statistics:
        print_statistics(console, make_sample(*survey.objects, survey.rows))
        console.print()
    print_table(console, made, choice, options)
    if choice is not None:
        console.print()
        console.print(Text(f"auto takes {choice.why}"), soft_wrap=True)
    if options.out is not None and made:
        console.print()
        console.print(Text(write_files(options.out, made, survey, key)), soft_wrap=True)


def to_facts(
    survey: Survey, made: list[Made], choice: Choice | None, written: str | None
) -> dict[str, Any]:
    """The table as one JSON object; loads are those of the cost model, in its own unit."""
    facts: dict[str, Any] = {
        "objects": int(survey.objects.codes.size),
        "subscriptions": survey.rows.total,
        "invalid": sum(file.invalid for file in survey.files),
        "plans": [facts_of(each) for each in made],
    }
    if choice is not None:
        taken = SHARED if choice.leaves is None else choice.leaves.name
        facts["auto"] = {"plan": taken, "why": choice.why}
    return facts | ({"written": written} if written is not None else {})


def facts_of(made: Made) -> dict[str, Any]:
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


def names_of(plan: str) -> tuple[str, ...]:
    """The methods to measure; raises Unusable."""
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
    """Make the folder of pictures and plans; raises Unusable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unusable(f"out {path}: cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise Unusable(f"out {path}: cannot be written: permission denied")


def read_files(options: PlanOptions, key: tuple[int, int]) -> Survey:
    """Read both files and say how far it is."""
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


def make_plans(names: tuple[str, ...], survey: Survey, options: PlanOptions) -> list[Made]:
    """Make and measure each plan; what all have in common is done once.

    Every plan is made as `placewire replay` makes it; loads are measured as the user likes.
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
            made.append(Made(leaves, cost, measures, score, build_s))
    return made


def model_of(name: str, load: LoadModel) -> CostModel:
    """The cost model of that name; `load` is PS2Stream's as measured here."""
    models: tuple[CostModel, ...] = (load, TORNADO, SSTD)
    return next(model for model in models if model.name == name)


def load_kernels(
    names: tuple[str, ...], survey: Survey, options: PlanOptions, cost: LoadModel
) -> None:
    """Plan for a handful of the data, so that the times of all of it are those of work alone."""
    few = Reservoir(KERNEL_ROWS)
    few.add(*survey.objects)
    objects = Objects(*few.in_order())
    rows = take_rows(survey.rows, choose_evenly(np.arange(survey.rows.total), KERNEL_ROWS))
    sample, posted = make_sample(*objects, rows, cost.posting_work), post_rows(rows)
    for name in names:
        leaves = METHODS[name](sample, options.workers, cost)
        measure_plan(leaves, objects, posted, sample, model_of(options.cost, cost))


def machines_of(options: PlanOptions) -> Machines:
    """What the workers are to run on: machines like this one."""
    return spread_workers(options.workers, options.machines, memory_of_machine())


def choose(made: list[Made], options: PlanOptions) -> Choice:
    """What `auto` takes, by the measures that are there already."""
    measured = {each.leaves.name: each for each in made}
    return choose_plan(
        [measured[name].leaves for name in CANDIDATES],
        lambda leaves: measured[leaves.name].measures,
        options.workers,
        calibrate().prices,
        machines_of(options),
    )


def describe(survey: Survey, options: PlanOptions) -> list[str]:
    """What the table is about: how much of what, and what was left out."""
    objects, rows = int(survey.objects.codes.size), survey.rows.total
    for what, count in (("objects", objects), ("subscriptions", rows)):
        if count == 0:
            print(f"placewire: no {what} were found: the plans say little", file=sys.stderr)
    lines = [
        f"objects {taken(objects, survey.objects_seen)},"
        f" subscriptions {taken(rows, survey.subscriptions_seen)}, workers {options.workers}"
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


def taken(some: int, of_all: int) -> str:
    return f"{some:,}" if some == of_all else f"{some:,} of {of_all:,}"


def print_table(
    console: Console, made: list[Made], choice: Choice | None, options: PlanOptions
) -> None:
    """A line a plan; on a terminal the one that `auto` takes is bright."""
    unit, size = LOAD_UNITS[options.cost]
    rows = [cells_of(each, size) for each in made]
    if options.plan in (ALL, AUTO, SHARED):
        rows.insert(0, cells_of_shared(choice.scores[0] if choice is not None else None))
    best = None
    if choice is not None:
        best = SHARED if choice.leaves is None else choice.leaves.name
    headings = [("load", unit) if heading == LOAD else heading for heading in HEADINGS]
    print_rows(console, headings, rows, best)


def cells_of(made: Made, load_size: float) -> list[str]:
    """A plan's line; loads are told in units of `load_size`."""
    measures = made.measures
    return [
        measures.name,
        str(measures.leaves),
        figure(measures.subscriptions_replicated),
        figure(measures.objects_replicated),
        figure(100 * measures.dropped / max(measures.objects, 1)),
        figure(measures.workload / load_size),
        figure(measures.balance),
        figure(measures.router_bytes / 1e6),
        figure(made.build_s),
        f"{measures.route_ns:.0f}",
        f"{measures.follow_ns:.0f}",
        f"{made.score.total:.0f}",
    ]


def cells_of_shared(score: Score | None) -> list[str]:
    """The line of `shared`: nothing is cut, sent or remembered, it only costs."""
    cost = NONE if score is None else f"{score.total:.0f}"
    return [SHARED, *[NONE] * (len(HEADINGS) - 2), cost]


def write_files(out: Path, made: list[Made], survey: Survey, key: tuple[int, int]) -> str:
    """Write each plan and, if that is possible, its picture; says what there is now."""
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


def save_plan(path: Path, made: Made, key: tuple[int, int]) -> None:
    """Write a plan in the place of an older one, which a running replay may have mapped."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_plan(fresh, made.leaves, key, made.cost)
        os.replace(fresh, path)
    except OSError as error:
        raise Unusable(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        fresh.unlink(missing_ok=True)
