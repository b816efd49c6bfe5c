"""Latency of snapshot queries by parameter, number of objects and data set (SSTD, section 7)."""

from __future__ import annotations

import shutil

from pyspark.sql import SparkSession

from bench.clock import free_bytes, say
from bench.figures import Figures, LinePlot, Table
from bench.harness import Setup
from bench.papers.sstd.data import GAUSSIAN, REAL, TRAFFIC, UNIFORM, retain
from bench.papers.sstd.engines import (
    FRONT_DOOR,
    HEADER,
    Timing,
    find_base,
    is_ours_there,
    is_tantivy_there,
    open_engines,
    time_engines,
    warm_up,
    with_ratios,
)
from bench.papers.sstd.queries import (
    KINDS,
    SHARES,
    Setting,
    draw_sources,
    make_queries,
    mix_kinds,
    sweep,
)
from placewire.spark.session import make_session

QUERIES = 200
LABELS = {"share": "region, % of the space", "keywords": "keywords", "k": "k", "hours": "last, h"}

Sweep = dict[Setting, list[Timing]]


def vary_queries(setup: Setup, objects: int = 100_000, queries: int = QUERIES) -> Figures:
    """Every kind of query: one parameter at a time, the others as in the paper."""
    tell_who()
    retained = retain(setup, objects)
    sources = draw_sources(retained, queries)
    session = make_session("local[2]")
    with open_engines(retained, setup.folder / "snapshot", session) as opened:
        say(", ".join(f"{engine.name} loaded in {load_s:.1f} s" for engine, load_s in opened))
        warm_up(opened, mix_kinds(retained, sources))
        for kind in KINDS:
            parameters = sweep(kind)
            timed: Sweep = {}
            for setting in dict.fromkeys(s for settings in parameters.values() for s in settings):
                timed[setting] = time_engines(opened, make_queries(retained, sources, setting))
                say(f"{kind}, {describe(setting)}")
            yield from save_kind(kind, parameters, timed)
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


def save_kind(kind: str, parameters: dict[str, tuple[Setting, ...]], timed: Sweep) -> Figures:
    """A table of all settings of a kind, and a plot for each parameter."""
    base = find_base(next(iter(timed.values())))
    say(f"{kind}")
    yield Table(
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
            yield from draw_parameter(kind, name, {getattr(s, name): timed[s] for s in settings})


def draw_parameter(kind: str, name: str, timed: dict[float, list[Timing]]) -> Figures:
    series: dict[str, list[tuple[float, float]]] = {}
    for value, timings in timed.items():
        for timing in timings:
            series.setdefault(timing.engine, []).append((value, timing.p50))
    yield LinePlot(
        f"snapshot-{kind}-{name}",
        series,
        x_label=LABELS[name],
        y_label=f"{kind}, p50, ms",
        x_scale="log" if name == "share" else "linear",
    )


BYTES_EACH = 1_500  # about what an object takes while all engines are loaded
SPARK_MOST = 1_000_000  # objects: more do not fit the memory of the session's JVM


def vary_objects(
    setup: Setup,
    sizes: tuple[int, ...] = (100_000, 300_000, 1_000_000),
    queries: int = QUERIES,
) -> Figures:
    """All kinds with the paper's settings, against the number of objects; tables by size."""
    tell_who()
    session = make_session("local[2]")
    timed: dict[str, dict[float, list[Timing]]] = {kind: {} for kind in KINDS}
    for size in sizes:
        if size * BYTES_EACH > free_bytes():
            say(f"{size:,} objects: left out, {free_bytes() / 1e9:.1f} GB are free")
            continue
        spark = session if size <= SPARK_MOST else None
        settings = [Setting(kind) for kind in KINDS]
        seconds, timings = time_settings(setup, size, REAL, settings, spark, queries)
        yield Table(f"snapshot-loading-{size}", ("engine", "loading, s"), seconds.items())
        of_kind = {kind: timings[Setting(kind)] for kind in KINDS}
        yield from save_timings(f"snapshot-growth-{size}", f"{size:,} objects", of_kind)
        for kind in KINDS:
            timed[kind][size] = of_kind[kind]
    session.stop()
    for kind in KINDS:
        yield from draw_by(f"snapshot-growth-{kind}", timed[kind], "objects", f"{kind}, p50, ms")


def vary_data(setup: Setup, objects: int = 100_000, queries: int = QUERIES) -> Figures:
    """SRQ by the size of the region on each set, as in the paper, and the other kinds."""
    tell_who()
    session = make_session("local[2]")
    names = (REAL, TRAFFIC, UNIFORM, GAUSSIAN) if setup.data else (REAL, UNIFORM, GAUSSIAN)
    boolean = [Setting(KINDS[0], share=share) for share in SHARES]
    others = [Setting(kind) for kind in KINDS[1:]]
    timed = {}
    for name in names:
        _, timings = time_settings(setup, objects, name, [*boolean, *others], session, queries)
        timed |= {f"{name}: {s.kind}, {s.share}%": t for s, t in timings.items() if s in boolean}
        timed |= {f"{name}: {s.kind}": t for s, t in timings.items() if s in others}
        of_share = {s.share: timings[s] for s in boolean}
        yield from draw_by(
            f"snapshot-data-{name}", of_share, "region, % of the space", f"{name}, p50, ms"
        )
    session.stop()
    yield from save_timings("snapshot-data", "data: kind, region", timed)


def time_settings(
    setup: Setup,
    size: int,
    name: str,
    settings: list[Setting],
    session: SparkSession | None,
    queries: int,
) -> tuple[dict[str, float], dict[Setting, list[Timing]]]:
    """Seconds to load, by engine, and the timings of each setting."""
    retained = retain(setup, size, name)
    sources = draw_sources(retained, queries)
    folder = setup.folder / f"snapshot-{name}-{size}"
    timed = {}
    with open_engines(retained, folder, session) as opened:
        seconds = {engine.name: load_s for engine, load_s in opened}
        say(f"{name}, {size:,} objects: loaded in {sum(seconds.values()):.0f} s")
        warm_up(opened, mix_kinds(retained, sources))
        for setting in settings:
            timed[setting] = time_engines(opened, make_queries(retained, sources, setting))
            say(f"{name}, {size:,} objects: {setting.kind}")
    shutil.rmtree(folder)
    return seconds, timed


def save_timings(file: str, label: str, timed: dict[str, list[Timing]]) -> Figures:
    base = find_base(next(iter(timed.values())))
    say(f"{label}")
    rows = [(value, *row) for value, timings in timed.items() for row in with_ratios(timings, base)]
    yield Table(file, (label, *HEADER, f"p50 / {base}", f"p95 / {base}"), rows)


def draw_by(file: str, timed: dict[float, list[Timing]], x_label: str, y_label: str) -> Figures:
    """A line for each engine, the median against a number."""
    series: dict[str, list[tuple[float, float]]] = {}
    for value, timings in timed.items():
        for timing in timings:
            series.setdefault(timing.engine, []).append((value, timing.p50))
    yield LinePlot(file, series, x_label=x_label, y_label=y_label)
