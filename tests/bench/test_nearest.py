"""The DkM-SKS experiments: the data is what it says, and plans decide how fast, never what."""

import numpy as np
import pytest

from bench.harness import Setup
from bench.papers.dkm_sks.cluster import TickChanges
from bench.papers.dkm_sks.data import (
    KEYWORDS,
    MADE_UP,
    TICK_OBJECTS,
    NearestSource,
    StandingResults,
    draw_rows,
    read_source,
    stand,
)
from bench.papers.dkm_sks.plans import OURS, PAPER, Plans, find_subsets, run_plan
from placewire.kernels.jit import read_only
from placewire.kernels.space.circles import circles_to_rectangles
from placewire.kinds.boolean.match import make_probe
from placewire.kinds.nearest.kernels.match import objects_near_rows
from placewire.kinds.nearest.match import predicates_of
from placewire.kinds.nearest.rows import nearest_columns
from placewire.plans.nearest.baselines import plan_sop

INITIAL, SUBSCRIPTIONS, TICKS, WORKERS = 4_000, 600, 3, 5


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> NearestSource:
    setup = Setup(None, tmp_path_factory.mktemp("nearest"))
    return read_source(setup, MADE_UP, TICKS, initial=INITIAL)


def slices(offsets: np.ndarray, values: np.ndarray) -> list[list[int]]:
    return [part.tolist() for part in np.split(values, offsets[1:-1])]


def test_objects_are_divided_into_initial_stream_and_askers(source: NearestSource) -> None:
    assert source.initial.lon.size == INITIAL
    assert source.stream.lon.size == TICKS * TICK_OBJECTS
    assert source.askers.lon.size == INITIAL
    for columns in (source.initial, source.stream, source.askers):
        for terms in slices(columns.term_offsets, columns.terms):
            assert terms == sorted(set(terms))
            assert 1 <= len(terms) <= KEYWORDS
    code = source.census.lon, source.census.lat
    assert np.array_equal(code, (source.initial.lon[source.seqs], source.initial.lat[source.seqs]))


@pytest.mark.parametrize("k_max", [1, 10])
def test_subscriptions_have_place_and_words_of_an_asker(source: NearestSource, k_max: int) -> None:
    rows = draw_rows(source, SUBSCRIPTIONS, seed=1, k_max=k_max)
    askers = {}
    for lon, lat, terms in zip(
        source.askers.lon,
        source.askers.lat,
        slices(source.askers.term_offsets, source.askers.terms),
        strict=True,
    ):
        askers.setdefault((lon, lat), []).append(set(terms))
    own = nearest_columns(rows)
    literals = slices(rows.literal_offsets, rows.literal_term)
    for lon, lat, terms in zip(own.lon, own.lat, literals, strict=True):
        assert 1 <= len(set(terms)) == len(terms) <= KEYWORDS
        assert any(set(terms) <= asker for asker in askers[lon, lat])
    assert rows.k.min() == 1
    assert rows.k.max() == k_max


@pytest.mark.parametrize("within_m", [np.inf, 50_000.0])
def test_first_results_are_the_k_nearest(source: NearestSource, within_m: float) -> None:
    standing = stand(source, 200, within_m=within_m)
    rows, o = standing.rows, source.initial
    codes, nows = np.zeros(o.lon.size, np.uint32), np.zeros(o.lon.size, np.int64)
    probe = make_probe(codes, o.lon, o.lat, nows, o.term_offsets, o.terms)
    none_dead = read_only(np.empty(0, np.uint64))
    objects, of, distances = objects_near_rows(probe, predicates_of(rows), none_dead)
    n = standing.neighbours
    for row in range(rows.total):
        met = of == row
        best = sorted(zip(distances[met], objects[met].tolist(), strict=True))[: rows.k[row]]
        held = slice(n.offsets[row], n.offsets[row] + n.counts[row])
        assert list(zip(n.distance[held], n.seq[held].tolist(), strict=True)) == best
        assert standing.radius[row] == (best[-1][0] if len(best) == rows.k[row] else within_m)


@pytest.fixture(scope="module", params=[np.inf, 50_000.0], ids=["any distance", "50 km"])
def standing(request: pytest.FixtureRequest, source: NearestSource) -> StandingResults:
    return stand(source, SUBSCRIPTIONS, within_m=request.param)


def test_all_plans_let_the_same_objects_enter(standing: StandingResults) -> None:
    plans, changes = Plans(standing, WORKERS), TickChanges(standing, TICKS)
    told = {
        name: [(tick.entered, tick.checksum) for tick in run_plan(name, plans, changes).ticks]
        for name in (*PAPER, *OURS)
    }
    assert told["shared"][-1][0] > 0
    for name, ticks in told.items():
        assert ticks == told["shared"], name


def test_only_the_pruned_broadcast_sends_less_than_all(standing: StandingResults) -> None:
    plans, changes = Plans(standing, WORKERS), TickChanges(standing, 1)
    copies = {
        name: run_plan(name, plans, changes).ticks[0].copies
        for name in ("dkm broadcast", "dkm balls", "shared")
    }
    assert copies["dkm broadcast"] == WORKERS
    assert copies["dkm balls"] < WORKERS
    assert copies["shared"] == 1


def test_subsets_hold_every_ball_of_their_rows(standing: StandingResults) -> None:
    sample = standing.sample()
    assignment = plan_sop(sample, WORKERS)
    subsets = find_subsets(sample, assignment)
    assert np.array_equal(subsets.worker[subsets.of_row], assignment.worker)
    around = subsets.rectangles[subsets.of_row]
    own = circles_to_rectangles(sample.lon, sample.lat, sample.radius_m)
    assert (around[:, :2] <= own[:, :2]).all()
    assert (around[:, 2:] >= own[:, 2:]).all()
