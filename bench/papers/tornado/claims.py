"""Run Tornado's experiments and compare the results with the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence

from bench.clock import say
from bench.figures import Figures, FiguresAnd, LinePlot, Table
from bench.harness import Setup
from bench.papers.ps2stream.queries import Drawn, draw
from bench.papers.tornado.cluster import (
    ALTERNATIVE_HEADER,
    WORKERS,
    TornadoLoad,
    compare_alternatives,
    make_load,
    tell_heaviest,
)
from bench.papers.tornado.queries import (
    BY_AREA,
    BY_SIDE,
    KEYWORDS,
    RANGE,
    ask_all,
    drop_stop_words,
    make_queries,
    read_range,
    scatter_places,
    take_objects,
)
from bench.papers.tornado.routing import (
    POINT_HEADER,
    RANGE_HEADER,
    ROUTES,
    SUMMARY_HEADER,
    UNIT_HEADER,
    UNITS,
    spread_summaries,
    time_points,
    time_ranges,
    vary_units,
)
from bench.papers.tornado.sweeps import (
    FREQUENCY_HEADER,
    HALVED,
    RANGES,
    SWEEP_HEADER,
    THINNED,
    grow_together,
    vary_frequency,
    vary_keywords,
    vary_ranges,
    vary_workers,
)
from placewire.plans.boolean.space_methods import plan_agrid

ROUTED = 5_000  # ranges: scanning a grid takes a tenth of a millisecond for the widest
SCATTER_KM = 20.0
PLACES = ("as they are", "scattered")
NEARLY = 0.9  # of the fastest: as fast, for one measurement
SPEED = "objects/s, critical path"


def check_claims(
    setup: Setup, subscriptions: int = 100_000, objects: int = 76_000, drawn: int = 200_000
) -> Figures:
    """All tables, then the claims; queries are made of at least `drawn` subscriptions."""
    tables = yield from measure_all(draw(setup, objects, max(subscriptions, drawn)), subscriptions)
    yield from draw_all(tables)
    yield Table("tornado-verdicts", ("claim", "paper", "here"), judge(tables))


def measure_all(drawn: Drawn, count: int) -> FiguresAnd[dict[str, Table]]:
    """Every experiment with so many subscriptions."""
    tables: dict[str, Table] = {}

    def keep(name: str, header: Sequence[str], rows: list[tuple[object, ...]]) -> Figures:
        tables[name] = Table(f"tornado-{name}", header, rows)
        yield tables[name]

    objects = drawn.objects
    usual, wide = (read_range(objects, RANGE, of) for of in (BY_SIDE, BY_AREA))
    rows = make_queries(drawn, count, usual.side_km)
    load = make_load(objects, rows)
    say(
        f"{count:,} subscriptions to any of {KEYWORDS} keywords, {RANGE}% wide"
        f" ({usual.side_km:.1f} km; {wide.side_km:.0f} km where it is {RANGE}% of the area),"
        f" {WORKERS} workers, {UNITS} routing units\n"
    )
    loads = {
        "alternatives": load,
        "alternatives-area": make_load(
            take_objects(objects, THINNED), make_queries(drawn, count, wide.side_km)
        ),
        "alternatives-scattered": scatter_load(drawn, count, usual.side_km),
    }
    runs = {}
    for name, some in loads.items():
        rows_of_it, runs[name] = compare_alternatives(some)
        yield from keep(name, ALTERNATIVE_HEADER, rows_of_it)
        say(tell_heaviest(some))
    half = drawn._replace(objects=take_objects(objects, HALVED))
    yield from keep("frequency", FREQUENCY_HEADER, vary_frequency(half, rows))

    yield from keep("points", POINT_HEADER, time_points(objects, load.sample))
    readings = [read_range(objects, s, of) for of in (BY_SIDE, BY_AREA) for s in RANGES[1:]]
    few = min(count, ROUTED)
    sets = [(reading, make_queries(drawn, few, reading.side_km, 1)) for reading in readings]
    yield from keep("ranges", RANGE_HEADER, time_ranges(objects, load.sample, sets, WORKERS))
    yield from keep("units", UNIT_HEADER, vary_units(runs["alternatives"]))
    leaves = plan_agrid(load.sample, WORKERS)
    summaries = [
        *spread_summaries(leaves, "any", rows),
        *spread_summaries(leaves, "all", ask_all(rows)),
    ]
    yield from keep("summaries", SUMMARY_HEADER, summaries)

    sizes = ("range, %", "of the", "side, km", *SWEEP_HEADER)
    yield from keep("extent", sizes, vary_ranges(half, count))
    yield from keep(
        "keywords", ("keywords", *SWEEP_HEADER), vary_keywords(half, count, usual.side_km)
    )
    rare = drop_stop_words(half)
    yield from keep("extent-rare", sizes, vary_ranges(rare, count, (BY_SIDE,)))
    yield from keep(
        "keywords-rare", ("keywords", *SWEEP_HEADER), vary_keywords(rare, count, usual.side_km)
    )
    places = {PLACES[0]: load, PLACES[1]: loads["alternatives-scattered"]}
    yield from keep("workers", ("workers", "places", *SWEEP_HEADER), vary_workers(places))
    yield from keep(
        "growth", ("workers", "subscriptions", *SWEEP_HEADER), grow_together(half, rows)
    )
    return tables


def scatter_load(drawn: Drawn, count: int, side_km: float) -> TornadoLoad:
    """The usual load, with every place spread to the size of a city."""
    scattered = scatter_places(drawn, SCATTER_KM)
    return make_load(scattered.objects, make_queries(scattered, count, side_km))


def draw_all(tables: dict[str, Table]) -> Figures:
    """A plot for every sweep."""
    frequency, points, ranges = tables["frequency"], tables["points"], tables["ranges"]
    quantile, speed = FREQUENCY_HEADER[0], "objects/s on the critical path"
    lines = {title: frequency.points(quantile, title) for title in FREQUENCY_HEADER[4:6]}
    # A log axis has no 0.
    lines = {k: [(max(x, 1.0), y) for x, y in line] for k, line in lines.items()}
    yield LinePlot("tornado-frequency", lines, x_label="quantile, % (0 drawn at 1)", y_label=speed)
    ways = {route: points.points("partitions", f"{route}, ns a point") for route in ROUTES}
    yield LinePlot("tornado-points", ways, x_label="partitions", y_label="ns a point")
    ways = {route: sorted(ranges.points("side, km", f"{route}, ns a range")) for route in ROUTES}
    yield LinePlot("tornado-ranges", ways, x_label="side of a range, km", y_label="ns a range")
    units = {title: tables["units"].points("routing units", title) for title in UNIT_HEADER[1::2]}
    yield LinePlot("tornado-units", units, x_label="routing units", y_label="objects/s")
    told = {
        f"{manner.split(',')[0]}, {operator}": tables["summaries"].points(
            "routing units", manner, operator
        )
        for manner in SUMMARY_HEADER[2:4]
        for operator in ("any", "all")
    }
    yield LinePlot("tornado-summaries", told, x_label="routing units", y_label="queries/s")
    both = {
        f"by {of}": tables["extent"].points("side, km", SPEED, of=of) for of in ("side", "area")
    }
    both["by side, no stop words"] = tables["extent-rare"].points("side, km", SPEED)
    yield LinePlot("tornado-extent", both, x_label="side of a range, km", y_label=speed)
    both = {
        label: tables[name].points("keywords", SPEED)
        for label, name in (("all", "keywords"), ("no stop words", "keywords-rare"))
    }
    yield LinePlot("tornado-keywords", both, x_label="keywords", y_label=speed)
    both = {name: tables["workers"].points("workers", SPEED, name) for name in PLACES}
    yield LinePlot("tornado-workers", both, x_label="workers", y_label=speed)


def judge(tables: dict[str, Table]) -> list[tuple[str, str, str]]:
    """Each claim, the paper's figure, and the figure here."""
    alternatives = [table for name, table in tables.items() if name.startswith("alternatives")]
    frequency, points, ranges = tables["frequency"], tables["points"], tables["ranges"]
    units, summaries = tables["units"], tables["summaries"]
    workers, growth = tables["workers"], tables["growth"]

    def beside(other: str, title: str = SPEED) -> str:
        ratios = (table.at(title, "agrid") / table.at(title, other) for table in alternatives)
        return " / ".join(f"{ratio:.3g} x" for ratio in ratios)

    def grows(route: str) -> str:
        title = f"{route}, ns a point"
        return f"{route} {points.at(title, 100) / points.at(title, 4):.2g} x"

    def slower(route: str, of: str) -> str:
        ns = (ranges.at(f"{name}, ns a range", 1.5, of) for name in (route, "A-Grid"))
        return f"{route} {next(ns) / next(ns):.3g} x"

    enough = []
    for name in PLACES:
        line = workers.points("workers", SPEED, name)
        fastest = max(speed for _, speed in line)
        enough.append(min(count for count, speed in line if speed > NEARLY * fastest))
    share = "of the workers alone, %"
    forward = "forward/broadcast"
    extents = [
        table.at(SPEED, 1.5, of) / table.at(SPEED, 0.01, of)
        for table, of in (
            (tables["extent"], BY_SIDE),
            (tables["extent"], BY_AREA),
            (tables["extent-rare"], BY_SIDE),
        )
    ]
    asked = [
        tables[name].at(SPEED, 7) / tables[name].at(SPEED, 1)
        for name in ("keywords", "keywords-rare")
    ]
    spread = growth.points("workers", SPEED)
    rises = [
        frequency.at(title, 0.0) / frequency.at(title, 100.0) for title in FREQUENCY_HEADER[4:6]
    ]
    return [
        ("A-Grid over native with a list (by side / by area / scattered)", "> 100 x",
         beside("native, list")),
        ("A-Grid over native with tests of boxes alone", "-", beside("native, boxes alone")),
        ("A-Grid over native with an index", "-", beside("native, index")),
        ("A-Grid over uniform space", "2 x", beside("uniform")),
        ("A-Grid over uniform space with summary", "-", beside("uniform, summary")),
        ("A-Grid over term hash", "2 x", beside("termhash")),
        ("rarest over most frequent keywords (summary / none)", "rises",
         " / ".join(f"{ratio:.3g} x" for ratio in rises)),
        ("summary over none, rarest keywords", "> 1 x",
         f"{frequency.at('summary/none', 0.0):.3g} x"),
        ("a point with 100 partitions over 4", "only R-tree grows",
         ", ".join(grows(route) for route in ROUTES)),
        ("a range of 1.5% over A-Grid's (side)", "> 1 x",
         ", ".join(slower(route, BY_SIDE) for route in ROUTES[1:])),
        ("a range of 1.5% over A-Grid's (area)", "> 1 x",
         ", ".join(slower(route, BY_AREA) for route in ROUTES[1:])),
        ("speed of the workers alone reached, by routing units", "at 7",
         ", ".join(f"{units.at(share, some):.0f}% with {some}" for some in (1, 7, 12))),
        ("forward over broadcast (7 / 12 units)", "up to 5 x",
         f"{summaries.at(forward, 7, 'any'):.2g} x / {summaries.at(forward, 12, 'any'):.2g} x"),
        ("range of 1.5% over 0.01% (side / area / side, no stop words)", "about 1",
         " / ".join(f"{ratio:.2g} x" for ratio in extents)),
        ("7 keywords over 1 (all / no stop words)", "about 1",
         " / ".join(f"{ratio:.2g} x" for ratio in asked)),
        ("workers beyond which it is no faster (places as they are / scattered)", "25",
         " / ".join(f"{some:.0f}" for some in enough)),
        ("25 workers over 4, 5 x the subscriptions", "rises",
         f"{spread[-1][1] / spread[0][1]:.2g} x"),
    ]  # fmt: skip
