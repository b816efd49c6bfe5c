"""Snapshot queries by the number of objects and by where they are: SSTD, sections 7.5 and 7.2."""

from __future__ import annotations

import shutil

from pyspark.sql import SparkSession

from bench.nearest import say
from bench.nearest_growth import free_bytes
from bench.settings import Choice
from bench.snapshot import QUERIES, tell_who
from bench.snapshot_data import GAUSSIAN, REAL, TRAFFIC, UNIFORM, retain
from bench.snapshot_engines import open_engines
from bench.snapshot_queries import KINDS, SHARES, Setting, draw_sources, make_queries, mix_kinds
from bench.snapshot_timing import HEADER, Timing, find_base, time_engines, warm_up, with_ratios
from bench.tables import draw_lines, save_table
from placewire.spark.session import make_session

SIZES, LARGE = (100_000, 300_000, 1_000_000), (3_000_000, 10_000_000)
BYTES_EACH = 1_500  # about what an object takes while all engines are loaded
SPARK_MOST = 1_000_000  # objects: more do not fit the memory of the session's JVM
DATA_OBJECTS = 100_000


def run(choice: Choice) -> None:
    """All kinds with the paper's settings, against the number of objects; tables by size."""
    tell_who()
    session = make_session("local[2]")
    timed: dict[str, dict[float, list[Timing]]] = {kind: {} for kind in KINDS}
    for size in (*SIZES, *LARGE) if choice.full else SIZES:
        if size * BYTES_EACH > free_bytes():
            say(f"{size:,} objects: left out, {free_bytes() / 1e9:.1f} GB are free")
            continue
        spark = session if size <= SPARK_MOST else None
        settings = [Setting(kind) for kind in KINDS]
        seconds, timings = time_settings(choice, size, REAL, settings, spark)
        save_table(f"snapshot-loading-{size}", ("engine", "loading, s"), seconds.items())
        of_kind = {kind: timings[Setting(kind)] for kind in KINDS}
        save_timings(f"snapshot-growth-{size}", f"{size:,} objects", of_kind)
        for kind in KINDS:
            timed[kind][size] = of_kind[kind]
    session.stop()
    for kind in KINDS:
        draw_by(f"snapshot-growth-{kind}", timed[kind], "objects", f"{kind}, p50, ms")


def run_data(choice: Choice) -> None:
    """SRQ by the size of the region on each set, as in the paper, and the other kinds."""
    tell_who()
    session = make_session("local[2]")
    names = (REAL, TRAFFIC, UNIFORM, GAUSSIAN) if choice.data else (REAL, UNIFORM, GAUSSIAN)
    boolean = [Setting(KINDS[0], share=share) for share in SHARES]
    others = [Setting(kind) for kind in KINDS[1:]]
    timed = {}
    for name in names:
        _, timings = time_settings(choice, DATA_OBJECTS, name, [*boolean, *others], session)
        timed |= {f"{name}: {s.kind}, {s.share}%": t for s, t in timings.items() if s in boolean}
        timed |= {f"{name}: {s.kind}": t for s, t in timings.items() if s in others}
        of_share = {s.share: timings[s] for s in boolean}
        draw_by(f"snapshot-data-{name}", of_share, "region, % of the space", f"{name}, p50, ms")
    session.stop()
    save_timings("snapshot-data", "data: kind, region", timed)


def time_settings(
    choice: Choice, size: int, name: str, settings: list[Setting], session: SparkSession | None
) -> tuple[dict[str, float], dict[Setting, list[Timing]]]:
    """Seconds to load, by engine, and the timings of each setting."""
    retained = retain(choice, size, name)
    sources = draw_sources(retained, QUERIES)
    folder = choice.folder / f"snapshot-{name}-{size}"
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


def save_timings(file: str, label: str, timed: dict[str, list[Timing]]) -> None:
    base = find_base(next(iter(timed.values())))
    print(f"\n{label}\n")
    rows = [(value, *row) for value, timings in timed.items() for row in with_ratios(timings, base)]
    save_table(file, (label, *HEADER, f"p50 / {base}", f"p95 / {base}"), rows)


def draw_by(file: str, timed: dict[float, list[Timing]], x_label: str, y_label: str) -> None:
    """A line for each engine, the median against a number."""
    series: dict[str, list[tuple[float, float]]] = {}
    for value, timings in timed.items():
        for timing in timings:
            series.setdefault(timing.engine, []).append((value, timing.p50))
    draw_lines(file, series, x_label=x_label, y_label=y_label)
