"""The experiments after SSTD: a cluster answers as the whole store, and figures add up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from peers import need_peers

need_peers("duckdb")
from bench.harness import Setup
from bench.papers.sstd import continuous
from bench.papers.sstd import plans as snapshot_plans
from bench.papers.sstd import stream as snapshot_stream
from bench.papers.sstd.cluster import EVERYTHING, Trace, ask, make_cluster, whole_section
from bench.papers.sstd.queries import (
    BOOLEAN,
    NEAREST,
    TRENDING,
    Setting,
    draw_sources,
    make_queries,
)
from bench.product import recovery
from bench.product import soak as endless
from placewire.queries.answer import answer_query


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> snapshot_plans.ReplayedMonth:
    setup = Setup(None, tmp_path_factory.mktemp("snapshot-plans"))
    return snapshot_plans.read_ground(setup, 3_000)


def test_clusters_answer_as_the_whole_store(ground: snapshot_plans.ReplayedMonth) -> None:
    sources = draw_sources(ground.retained, 30)
    whole = whole_section(ground.rows, ground.words)
    settings = [Setting(kind, share=1.0, hours=24) for kind in (BOOLEAN, NEAREST, TRENDING)]
    queries = {s.kind: make_queries(ground.retained, sources, s) for s in settings}
    questions = {
        kind: snapshot_plans.ask_questions(ground, whole, of) for kind, of in queries.items()
    }
    for name, leaves in snapshot_plans.make_plans(ground, questions).items():
        cluster = make_cluster(leaves, ground.rows, ground.words)
        assert cluster.objects.sum() == 3_000
        for query in [query for of in queries.values() for query in of]:
            asked = snapshot_plans.read(ground, query)
            expected = answer_query(asked.query, EVERYTHING, [whole])
            assert ask(cluster, asked).answer == expected, (name, query)


def test_critical_path() -> None:
    trace = Trace({}, 1.0, np.array([[2.0, 0.0, 0.0], [0.0, 3.0, 4.0]]), 5.0, 9)
    assert (trace.critical_s, trace.total_s, trace.asked) == (12.0, 15.0, 3)
    faster = trace._replace(merge_s=1.0, busy_s=trace.busy_s / 2)
    [least] = snapshot_plans.take_least([[trace], [faster]])
    assert (least.merge_s, least.busy_s[1, 2]) == (1.0, 2.0)
    load = snapshot_plans.weigh([trace, trace])
    assert (load.critical, load.workers, load.parts) == (12_000.0, 3.0, 9.0)
    assert load.speed == 2 / 8.0


def test_tenths_of_a_run() -> None:
    step_us = endless.RETENTION_S * 1_000_000
    noted = [
        endless.Noted(endless.BEGIN_US + n * step_us, n * 10**6, 0, 0, n, 0, 0, float(n))
        for n in range(20)
    ]
    rows = endless.tell_tenths(noted)
    assert len(rows) == 10
    assert rows[3][:4] == (4, 7.0, 6.5, 7.0)
    assert rows[3][-1] == 1.0


def test_memory_of_a_process() -> None:
    status = "Name:\tpython\nRssAnon:\t     12 kB\nRssFile:\t       3 kB\nThreads:\t1\n"
    assert endless.read_memory(status) == {"RssAnon": 12 * 1024, "RssFile": 3 * 1024}


def test_boxes_of_a_share() -> None:
    row = {"west": 9.0, "east": 11.0, "south": 49.0, "north": 51.0}
    resized = continuous.resize(row, (0.0, 0.0, 100.0, 50.0), 1.0)
    assert resized == {"west": 5.0, "east": 15.0, "south": 47.5, "north": 52.5}
    north = continuous.resize(row | {"north": 129.0}, (0.0, 0.0, 100.0, 50.0), 1.0)
    assert (north["south"], north["north"]) == (86.5, 90)


def test_timings_of_several_rounds() -> None:
    one = snapshot_stream.Timed([1.0], [0.5], [], {1})
    both = snapshot_stream.join(one, snapshot_stream.Timed([3.0], [2.5], [1.0], {2}))
    assert both == ([1.0, 3.0], [0.5, 2.5], [1.0], {1, 2})
    row = snapshot_stream.row_of("now", BOOLEAN, both, one)
    assert row[:5] == ("now", BOOLEAN, 2, 2.0, pytest.approx(2.9))
    assert row[-3:] == (2, 2.0, pytest.approx(2.9))


def test_descent_of_processes(tmp_path: Path) -> None:
    parents = {5: 4, 4: 3, 3: 1, 9: 1}
    assert recovery.is_under(5, 3, parents)
    assert not recovery.is_under(9, 3, parents)
    (tmp_path / "42").mkdir()
    stat = tmp_path / "42" / "stat"
    stat.write_text("42 (a (b) c) S 7 42 42 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 1 1 1")
    assert recovery.read_stat(stat) == (42, 7, 42)
    assert recovery.read_stat(tmp_path / "43" / "stat") is None
