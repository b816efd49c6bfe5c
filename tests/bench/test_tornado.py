"""Tornado's experiments: the queries are what they say, plans agree, tables have their shape."""

import numpy as np
import pytest

from bench import workload as workloads
from bench.harness import STOP_WORDS, Setup
from bench.papers.ps2stream.queries import Drawn, draw
from bench.papers.tornado import claims as tornado
from bench.papers.tornado import cluster as tornado_cluster
from bench.papers.tornado import routing as tornado_routing
from bench.papers.tornado import sweeps as tornado_sweeps
from bench.papers.tornado.queries import (
    BAND,
    BY_AREA,
    ask_all,
    ask_band,
    drop_stop_words,
    find_band,
    make_queries,
    read_range,
    scatter_places,
    take_objects,
)
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import match_segment, scan_segment
from placewire.plans.boolean.space_methods import plan_agrid
from placewire.plans.leaves import NOTHING, check_leaves

OBJECTS, SUBSCRIPTIONS = 600, 300


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    folder = tmp_path_factory.mktemp("tornado")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workloads, "CACHE", folder / "cache")
        return draw(Setup(None, folder), OBJECTS, SUBSCRIPTIONS)


@pytest.mark.parametrize("keywords", [1, 3, 7])
def test_queries_have_distinct_keywords_their_own_first(drawn: Drawn, keywords: int) -> None:
    rows = make_queries(drawn, SUBSCRIPTIONS, 50.0, keywords)
    given = drawn.rows
    for row in range(SUBSCRIPTIONS):
        asked = rows.literal_term[rows.literal_offsets[row] : rows.literal_offsets[row + 1]]
        own = given.literal_term[given.literal_offsets[row] : given.literal_offsets[row + 1]]
        assert np.unique(asked).size == keywords == asked.size
        assert np.array_equal(asked[: own.size], own[:keywords])


def test_any_and_all_mean_what_they_say(drawn: Drawn) -> None:
    side = read_range(drawn.objects, 1.0, BY_AREA).side_km
    some = make_queries(drawn, SUBSCRIPTIONS, side, 2)
    found = {}
    for name, rows, needed in (("any", some, 1), ("all", ask_all(some), 2)):
        segment = make_boolean_segment(rows)
        matches = scan_segment(drawn.objects, segment)
        found[name] = matches.object.size
        assert match_segment(drawn.objects, segment).object.size == matches.object.size
        o = drawn.objects
        for at, row in zip(matches.object[:50].tolist(), matches.row[:50].tolist(), strict=True):
            has = o.terms[o.term_offsets[at] : o.term_offsets[at + 1]]
            asked = rows.literal_term[rows.literal_offsets[row] : rows.literal_offsets[row + 1]]
            assert np.isin(asked, has).sum() >= needed
    assert found["any"] > found["all"] > 0


def test_a_share_by_area_is_the_square_of_a_share_by_side(drawn: Drawn) -> None:
    by_area = read_range(drawn.objects, 1.0, BY_AREA)
    assert by_area.side_km == pytest.approx(read_range(drawn.objects, 10.0).side_km)
    box = make_queries(drawn, 10, by_area.side_km).box
    assert (box[:, 3] - box[:, 1]) * workloads.KM_PER_DEG == pytest.approx(by_area.side_km)


def test_bands_go_from_absent_to_frequent(drawn: Drawn) -> None:
    bands = [find_band(drawn, quantile) for quantile in (0.0, 0.5, 1.0)]
    shares = [band.per_object for band in bands]
    assert shares == sorted(shares)
    assert shares[0] < shares[1] < shares[2]
    for band in bands:
        assert band.terms.size == BAND
        rows = ask_band(make_queries(drawn, 100, 5.0), band)
        asked = np.sort(rows.literal_term.reshape(100, 3), axis=1)
        assert np.isin(asked, band.terms).all()
        assert (asked[:, 1:] != asked[:, :-1]).all()


def test_no_stop_word_is_asked_for(drawn: Drawn) -> None:
    terms, counts = np.unique(drawn.objects.terms, return_counts=True)
    rows = make_queries(drop_stop_words(drawn), SUBSCRIPTIONS, 5.0)
    most = counts[np.isin(terms, rows.literal_term)].max()
    assert most <= np.sort(counts)[-STOP_WORDS]
    assert (np.diff(rows.literal_offsets) == 3).all()


def test_taken_and_scattered_objects_keep_their_terms(drawn: Drawn) -> None:
    third = take_objects(drawn.objects, 3, 50)
    assert third.codes.size == 50
    assert third.lon[7] == drawn.objects.lon[21]
    scattered = scatter_places(drawn, 20.0)
    o, moved = drawn.objects, scattered.objects
    assert np.array_equal(np.sort(moved.terms), np.sort(o.terms))
    assert (np.diff(moved.codes.astype(np.int64)) >= 0).all()
    assert abs(float(moved.lat.mean() - o.lat.mean())) < 20.0 / workloads.KM_PER_DEG
    assert not np.array_equal(np.sort(moved.lat), np.sort(o.lat))


@pytest.mark.parametrize("workers", [1, 4, 7, 25])
def test_uniform_plans_are_plans(drawn: Drawn, workers: int) -> None:
    leaves = tornado_routing.plan_uniform(drawn.objects, workers, NOTHING)
    check_leaves(leaves)
    assert leaves.total == workers


def test_forwarding_sends_each_new_keyword_once(drawn: Drawn) -> None:
    rows = make_queries(drawn, SUBSCRIPTIONS, 5.0)
    load = tornado_cluster.make_load(drawn.objects, rows)
    one = plan_agrid(load.sample, 1)
    lines = tornado_routing.spread_summaries(one, "any", rows)
    sent = tornado_routing.SUMMARY_HEADER.index("keywords sent a query")
    assert lines[0][sent] == np.unique(rows.literal_term).size / rows.total


def test_every_table_is_whole(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs everything, which also asserts that all plans find what one index finds."""
    for module in (tornado, tornado_cluster, tornado_sweeps):
        monkeypatch.setattr(module, "WORKERS", 4)
    monkeypatch.setattr(tornado_cluster, "PASSES", 1)
    for name, few in (
        ("PARTITIONS", (4, 9)),
        ("RANGES", (0.01, 1.5)),
        ("SOME_KEYWORDS", (1, 7)),
        ("QUANTILES", (0.0, 1.0)),
    ):
        monkeypatch.setattr(tornado_sweeps, name, few)
    made = {t.name.removeprefix("tornado-"): t for t in tornado.measure_all(drawn, SUBSCRIPTIONS)}
    for name, table in made.items():
        assert table.rows, name
        assert all(len(row) == len(table.columns) for row in table.rows), name

    alternatives = made["alternatives"]
    assert alternatives.at("copies an object", "agrid, no summary") == 1.0
    assert alternatives.at("copies an object", "termhash") > 1.0
    assert alternatives.at("dropped, %", "agrid") > alternatives.at("dropped, %", "uniform") == 0.0
    assert alternatives.at("copies a subscription", "native, index") == 4 + tornado_routing.UNITS

    rows = made["frequency"].rows
    forwarded = [row[list(made["frequency"].columns).index("forwarded/objects")] for row in rows]
    assert forwarded[0] < 0.1 < forwarded[-1]
    steps = [made["ranges"].at("grid, steps", share, BY_AREA) for share in (0.05, 1.5)]
    assert steps[0] < steps[1]
    speeds = [row[1] for row in made["units"].rows]
    assert speeds == sorted(speeds)
    matches = [made["extent"].at("matches an object", share, BY_AREA) for share in (0.01, 1.5)]
    assert matches[0] < matches[1]

    plots = {plot.name: plot.series for plot in tornado.draw_all(made)}
    assert len(plots) == 8
    for name, lines in plots.items():
        assert all(len(line) > 1 for line in lines.values()), name
        assert all(x > 0 and y > 0 for line in lines.values() for x, y in line), name
    claims = tornado.judge(made)
    assert all(len(claim) == 3 and all(claim) for claim in claims)
