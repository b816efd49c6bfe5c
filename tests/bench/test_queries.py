"""PS2Stream's query sets and stream are what the benchmark says of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import workload as workloads
from bench.columns import KEY, rows_of
from bench.harness import Setup
from bench.papers.ps2stream.queries import (
    REGIONS,
    Drawn,
    as_workload,
    draw,
    draw_words,
    make_stream,
    most_frequent,
    query_set,
    regions,
)
from bench.workload import Workload
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import match_segment
from placewire.text.analyzer import Analyzer

COUNT = 1500
SETUP = Setup(None, Path())


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workloads, "CACHE", tmp_path_factory.mktemp("cache"))
        return draw_words(SETUP, 3000, COUNT)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workloads, "CACHE", tmp_path_factory.mktemp("cache"))
        return draw(SETUP, 3000, COUNT)


def test_second_set_has_a_keyword_beyond_the_frequent(drawn: Drawn) -> None:
    rows = query_set("Q2", drawn, COUNT).rows
    beyond = ~np.isin(rows.literal_term, most_frequent(drawn))
    assert rows.total == COUNT
    assert np.logical_or.reduceat(beyond, rows.literal_offsets[:-1]).all()


@pytest.mark.parametrize("name", ["Q3", "Q3 at scale"])
def test_third_set_has_in_each_region_what_the_first_has(drawn: Drawn, name: str) -> None:
    """Regions are of one kind or the other; how many subscriptions they have does not tell."""
    first, third = (query_set(n, drawn, COUNT).rows for n in ("Q1", name))
    assert third.total == COUNT
    shares = []
    for rows in (first, third):
        column, row = regions(drawn, rows)
        shares.append(np.bincount(column * REGIONS + row, minlength=REGIONS**2) / rows.total)
    assert np.abs(shares[0] - shares[1]).sum() < 0.2  # other rows of Q1 differ by 0.28


@pytest.mark.parametrize("name", ["Q1", "Q2", "Q3"])
def test_logged_set_matches_what_the_set_matches(drawn: Drawn, words: Workload, name: str) -> None:
    queries = query_set(name, drawn, COUNT)
    logged = rows_of(as_workload(queries, words), Analyzer(*KEY))
    found = [
        match_segment(queries.objects, make_boolean_segment(rows)).object.size
        for rows in (queries.rows, logged)
    ]
    assert found[0] == found[1] > 0


def test_stream_has_five_objects_to_a_change(drawn: Drawn, words: Workload) -> None:
    stream = make_stream(as_workload(query_set("Q3", drawn, COUNT), words), 1000)
    events = [json.loads(line) for line in stream.tuples]
    kinds = [event["type"] for event in events]
    assert len(stream.standing) == 1000
    assert kinds.count("object") == 3000
    assert kinds.count("subscribe") == kinds.count("unsubscribe") == 300
    live = {json.loads(line)["id"] for line in stream.standing}
    for event in events:
        if event["type"] == "subscribe":
            live.add(event["id"])
        elif event["type"] == "unsubscribe":
            live.remove(event["id"])  # nobody leaves before coming, or twice
    assert len(live) == 1000
