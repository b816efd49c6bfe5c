"""Latency of snapshot queries by each of their parameters, after section 7.3 of the SSTD paper."""

from __future__ import annotations

from bench.nearest import say
from bench.settings import Choice
from bench.snapshot_data import retain
from bench.snapshot_engines import FRONT_DOOR, is_ours_there, is_tantivy_there, open_engines
from bench.snapshot_queries import KINDS, Setting, draw_sources, make_queries, mix_kinds, sweep
from bench.snapshot_timing import HEADER, Timing, find_base, time_engines, warm_up, with_ratios
from bench.tables import draw_lines, save_table
from placewire.spark.session import make_session

OBJECTS, MANY = 100_000, 1_000_000
QUERIES, MORE_QUERIES = 200, 1_000
LABELS = {"share": "region, % of the space", "keywords": "keywords", "k": "k", "hours": "last, h"}

Sweep = dict[Setting, list[Timing]]


def run(choice: Choice) -> None:
    """Every kind of query: one parameter at a time, the others as in the paper."""
    tell_who()
    retained = retain(choice, MANY if choice.full else OBJECTS)
    sources = draw_sources(retained, MORE_QUERIES if choice.full else QUERIES)
    session = make_session("local[2]")
    with open_engines(retained, choice.folder / "snapshot", session) as opened:
        say(", ".join(f"{engine.name} loaded in {load_s:.1f} s" for engine, load_s in opened))
        warm_up(opened, mix_kinds(retained, sources))
        for kind in KINDS:
            parameters = sweep(kind)
            timed: Sweep = {}
            for setting in dict.fromkeys(s for settings in parameters.values() for s in settings):
                timed[setting] = time_engines(opened, make_queries(retained, sources, setting))
                say(f"{kind}, {describe(setting)}")
            save_kind(kind, parameters, timed)
    session.stop()


def tell_who() -> None:
    if not is_ours_there():
        say(f"placewire.api has no {FRONT_DOOR} yet: the peers alone")
    if not is_tantivy_there():
        say("tantivy is not installed and left out")


def describe(setting: Setting) -> str:
    """What differs from the defaults."""
    usual = Setting(setting.kind)
    changed = [
        f"{name} {value}"
        for name, value in setting._asdict().items()
        if value != getattr(usual, name)
    ]
    return ", ".join(changed) or "as in the paper"


def save_kind(kind: str, parameters: dict[str, tuple[Setting, ...]], timed: Sweep) -> None:
    """A table of all settings of a kind, and a plot for each parameter."""
    base = find_base(next(iter(timed.values())))
    print(f"\n{kind}\n")
    save_table(
        f"snapshot-{kind}",
        ("setting", *HEADER, f"p50 / {base}", f"p95 / {base}"),
        [
            (describe(setting), *row)
            for setting, timings in timed.items()
            for row in with_ratios(timings, base)
        ],
    )
    for name, settings in parameters.items():
        if name in LABELS:
            draw_parameter(kind, name, {getattr(s, name): timed[s] for s in settings})


def draw_parameter(kind: str, name: str, timed: dict[float, list[Timing]]) -> None:
    series: dict[str, list[tuple[float, float]]] = {}
    for value, timings in timed.items():
        for timing in timings:
            series.setdefault(timing.engine, []).append((value, timing.p50))
    draw_lines(
        f"snapshot-{kind}-{name}",
        series,
        x_label=LABELS[name],
        y_label=f"{kind}, p50, ms",
        x_scale="log" if name == "share" else "linear",
    )
