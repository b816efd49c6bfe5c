"""Routes: every place and term has one owner, and nothing live is ever dropped."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.kernels.space.cells import points_to_codes
from placewire.kinds.boolean.kind import make_boolean_segment
from placewire.kinds.boolean.match import make_probe, match_segment
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.boolean.methods import METHODS
from placewire.plans.cost.measures import (
    Machines,
    choose_plan,
    find_holders,
    measure_plan,
    post_rows,
    spread_workers,
)
from placewire.plans.cost.model import LoadModel, Prices
from placewire.plans.cost.sstd import SSTD
from placewire.plans.cost.tornado import TORNADO
from placewire.plans.kernels.owners import NO_WORKER
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import (
    BY_CELL,
    BY_LEAF,
    BY_WORKER,
    NO_SPLIT,
    NOTHING,
    Leaves,
    TextSplit,
    check_leaves,
    make_leaves,
)
from placewire.plans.route.leaf_route import LeafRoute, SpreadRoute, leaves_to_ranges, make_tables
from placewire.plans.route.live_terms import LiveTerms
from placewire.plans.sample.sample import PLAN_LEVEL, SIDE, count_near, make_sample
from placewire.plans.sample.sampler import Reservoir
from profiles import examples
from routes import ANALYZER, asks, city, objects_of, placed, places, rows_of, single_leaf, tilings


def route_of(leaves: Leaves, *parts: SubscriptionRows) -> LeafRoute:
    live = LiveTerms(leaves)
    live.rebuild(parts)
    return LeafRoute(leaves.workers, leaves.summary, make_tables(leaves), live.tables)


def matches_of(objects, lon, lat, rows, shares) -> list[tuple[int, int]]:
    """What the workers find of their shares, in order."""
    segment = make_boolean_segment(rows)
    found = []
    for share in shares:
        probe = make_probe(
            objects.codes[share.objects],
            lon[share.objects],
            lat[share.objects],
            np.zeros(share.objects.size, np.int64),
            share.term_offsets,
            share.terms,
            share.probed,
            share.alone,
        )
        matches = match_segment(probe, segment)
        found += zip(share.objects[matches.object].tolist(), matches.row.tolist(), strict=True)
    return sorted(found)


@settings(max_examples=examples(200))
@given(tilings(), placed, st.lists(asks(), min_size=1, max_size=5))
def test_workers_together_find_every_match_once(leaves, placed, asked):
    check_leaves(leaves)
    objects, lon, lat = objects_of(placed)
    rows = rows_of(asked)
    everything = matches_of(objects, lon, lat, rows, SpreadRoute(1).cut(objects))
    route = pickle.loads(pickle.dumps(route_of(leaves, rows)))
    assert matches_of(objects, lon, lat, rows, route.cut(objects)) == everything
    assert matches_of(objects, lon, lat, rows, SpreadRoute(3).cut(objects)) == everything


@settings(max_examples=examples(200))
@given(tilings(), placed, st.lists(asks(), min_size=2, max_size=12))
def test_what_is_live_follows_inserts(leaves, placed, asked):
    """Parts added one by one drop nothing that the whole would keep."""
    objects, lon, lat = objects_of(placed)
    one, two = rows_of(asked[::2]), rows_of(asked[1::2])
    live = LiveTerms(leaves)
    for part in (one, two):
        live.add(part)
    route = LeafRoute(leaves.workers, leaves.summary, make_tables(leaves), live.tables)
    for rows in (one, two):
        everything = matches_of(objects, lon, lat, rows, SpreadRoute(1).cut(objects))
        assert matches_of(objects, lon, lat, rows, route.cut(objects)) == everything


@settings(max_examples=examples(200))
@given(tilings(), st.lists(places, max_size=50))
def test_ranges_name_the_leaf_of_every_point(leaves, points):
    start, owner = leaves_to_ranges(leaves.box)
    assert start[0] == 0
    assert (np.diff(start.astype(np.int64)) > 0).all()
    for lon, lat in points:
        code = points_to_codes(np.array([lon]), np.array([lat]))[0]
        leaf = owner[np.searchsorted(start, code, side="right") - 1]
        x = min(int((lon + 180) / 360 * SIDE), SIDE - 1)
        y = min(int((lat + 90) / 180 * SIDE), SIDE - 1)
        west, south, east, north = leaves.box[leaf]
        assert west <= x < east
        assert south <= y < north


@given(tilings(), st.data())
def test_leaves_that_do_not_tile_the_world_are_refused(leaves, data):
    """One edge of one leaf is moved: it overlaps another, or leaves a hole."""
    check_leaves(leaves)
    at, edge = data.draw(st.integers(0, leaves.total - 1)), data.draw(st.integers(0, 3))
    moved = leaves.box.copy()
    moved[at, edge] = data.draw(st.integers(-1, SIDE + 1).filter(lambda x: x != moved[at, edge]))
    with pytest.raises(ValueError, match=r"plan any: .*world"):
        check_leaves(leaves._replace(box=moved))


@pytest.mark.parametrize(
    "boxes",
    [
        [(0, 0, SIDE, SIDE // 2)] * 2,
        [(0, 0, SIDE // 2, SIDE), (0, 0, SIDE, SIDE // 2)],
        [(0, 0, SIDE, SIDE), (0, 0, SIDE, SIDE)],
        [],
    ],
    ids=["one half twice", "two halves across", "the world twice", "none"],
)
def test_leaves_may_not_overlap_even_if_their_areas_add_up(boxes):
    leaves = make_leaves("any", 2, NOTHING, boxes, [NO_SPLIT] * len(boxes), [0] * len(boxes))
    with pytest.raises(ValueError, match="do not cover the world once"):
        check_leaves(leaves)


@pytest.mark.parametrize("summary", [BY_CELL, BY_LEAF, BY_WORKER])
def test_objects_without_a_live_term_are_dropped(summary):
    leaves = single_leaf()._replace(summary=summary)
    objects, _, _ = objects_of([(10, 10, "coffee"), (10, 10, "tea"), (10, 10, "")])
    route = route_of(leaves, rows_of([{"where": "coffee AND milk"}, {"where": "coffee"}]))
    (share,) = route.cut(objects)
    assert share.objects.size == 1
    assert share.terms[share.probed == 1].tolist() == ANALYZER.hash_terms(["coffee"]).tolist()
    # One subscription that needs no term, and none may be dropped.
    route = route_of(leaves, rows_of([{"where": "coffee"}, {"where": "NOT milk"}]))
    (share,) = route.cut(objects)
    assert share.objects.size == 3
    assert share.alone.tolist() == [1, 1, 1]


def test_a_subscription_without_a_term_keeps_only_the_objects_of_its_place():
    leaves = single_leaf()._replace(summary=BY_CELL)
    objects, lon, _ = objects_of([(10, 10, "tea"), (-100, 10, "tea")])
    route = route_of(leaves, rows_of([{"region": {"box": [9, 9, 11, 11]}}]))
    (share,) = route.cut(objects)
    assert lon[share.objects].tolist() == [10]


def test_ends_are_forgotten_when_it_is_made_anew():
    leaves = single_leaf()._replace(summary=BY_LEAF)
    live = LiveTerms(leaves)
    for n in range(200):
        live.add(rows_of([{"where": f"x{n}y{k}"} for k in range(20)]))
    assert live.crowded
    kept = rows_of([{"where": "coffee"}])
    live.rebuild([kept])
    assert not live.crowded
    assert live.keys == 1
    assert np.count_nonzero(live.tables.live) == 1


def test_wide_regions_are_noted_once():
    box = (0, 0, SIDE, SIDE // 128)
    boxes = [(0, k * box[3], SIDE, (k + 1) * box[3]) for k in range(128)]
    leaves = make_leaves("rows", 3, BY_LEAF, boxes, [NO_SPLIT] * 128, [k % 3 for k in range(128)])
    live = LiveTerms(leaves)
    words = [f"wide{k}" for k in range(3000)]
    for first in range(0, 3000, 500):
        live.add(rows_of([{"where": word} for word in words[first : first + 500]]))
    assert live.keys == 3000
    assert not live.tables.live.any()
    route = LeafRoute(3, BY_LEAF, make_tables(leaves), live.tables)
    objects, _, _ = objects_of([(0, 0, word) for word in words])
    assert (route.own(objects).of_pair != NO_WORKER).all()


def test_a_term_that_no_list_names_has_an_owner_by_its_hash():
    leaves = make_leaves(
        "text", 5, NOTHING, [(0, 0, SIDE, SIDE)], [TextSplit(5, NO_SPLIT.terms, NO_SPLIT.part)],
        list(range(5)),
    )  # fmt: skip
    objects, _, _ = objects_of([(0, 0, f"word{k}") for k in range(500)])
    owners = route_of(leaves).own(objects)
    assert np.bincount(owners.of_pair, minlength=5).min() > 50


def test_the_reservoir_is_fair_and_bounded():
    reservoir = Reservoir(capacity=200, seed=1)
    for block in range(100):
        codes = np.full(50, block, np.uint32)
        reservoir.add(codes, np.arange(51, dtype=np.int64), codes.astype(np.uint64))
    codes, offsets, terms = reservoir.in_order()
    assert codes.size == 200
    assert (codes == terms).all()
    assert (np.diff(codes.astype(np.int64)) >= 0).all()
    early = int((codes < 50).sum())
    assert 60 < early < 140
    assert offsets.tolist() == list(range(201))


def test_the_reservoir_keeps_all_of_the_first():
    reservoir = Reservoir(capacity=100)
    for block in range(3):
        reservoir.add(np.full(30, block, np.uint32), np.zeros(31, np.int64), np.empty(0, np.uint64))
    codes, _, _ = reservoir.in_order()
    assert np.bincount(codes).tolist() == [30, 30, 30]


def test_a_fading_reservoir_follows_what_comes():
    reservoir = Reservoir(capacity=1000, seed=2)
    for block in range(200):
        reservoir.fading = block >= 50
        codes = np.full(20, block, np.uint32)
        reservoir.add(codes, np.arange(21, dtype=np.int64) * 2, np.repeat(codes, 2).astype("u8"))
    assert reservoir.seen == 4000
    codes, offsets, terms = reservoir.in_order()
    assert codes.size == 1000
    assert np.array_equal(np.repeat(codes, 2), terms)
    assert offsets.tolist() == list(range(0, 2001, 2))
    # 3000 newcomers for 1000 places: one in e^3 of the first 50 blocks is left.
    assert 20 < (codes < 50).sum() < 90
    assert (codes >= 150).sum() > 550


def test_a_few_that_come_in_many_blocks_are_as_good_as_many_in_one():
    codes = np.arange(3000, dtype=np.uint32)
    offsets, terms = np.arange(3001, dtype=np.int64), codes.astype(np.uint64)
    once, often = Reservoir(100_000), Reservoir(100_000)
    once.add(codes, offsets, terms)
    for at in range(0, 3000, 10):
        often.add(codes[at : at + 10], offsets[:11], terms[at : at + 10])
    for one, other in zip(once.in_order(), often.in_order(), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("workers", [1, 4])
def test_measures_count_what_routing_does(name, workers):
    (objects, lon, lat), rows = city(400, 300)
    sample = make_sample(*objects, rows)
    leaves = METHODS[name](sample, workers, LoadModel())
    check_leaves(leaves)
    measures = measure_plan(leaves, objects, post_rows(rows), sample, LoadModel())
    shares = list(route_of(leaves, rows).cut(objects))
    sent = np.zeros(workers, np.int64)
    for share in shares:
        sent[share.worker] = share.objects.size
    assert measures.sent.tolist() == sent.tolist()
    assert measures.dropped == 400 - len(set(np.concatenate([s.objects for s in shares]).tolist()))
    assert measures.subscriptions_replicated >= 1
    assert measures.route_ns > 0
    assert measures.follow_ns > 0, "a plan that notes nothing has workers to find all the same"
    # Whoever finds a match holds its subscription: per worker, rows matched are at most rows held.
    for share in shares:
        found = {row for _, row in matches_of(objects, lon, lat, rows, [share])}
        assert len(found) <= measures.held[share.worker]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("model", [LoadModel(per_posting=8.0), TORNADO, SSTD], ids=lambda m: m.name)
def test_workers_are_charged_by_any_model(name, model):
    """By what each worker sees and holds, or by its parts, each as if it were a worker."""
    (objects, _, _), rows = city(400, 300)
    sample, posted = make_sample(*objects, rows), post_rows(rows)
    leaves = METHODS[name](sample, 4, LoadModel())
    loads = measure_plan(leaves, objects, posted, sample, model).loads
    parts = np.arange(leaves.part_worker.size, dtype=np.int32)
    split = leaves._replace(workers=parts.size, part_worker=parts) if model.by_part else leaves
    tables = make_tables(split)
    offsets, held = find_holders(split, posted, tables=tables)
    seen = {s.worker: s for s in route_of(split, rows).cut(objects)}
    expected = np.zeros(4)
    for worker in range(split.workers):
        share = seen.get(worker)
        some = np.empty(0, np.int64) if share is None else share.objects
        postings = 0.0
        if share is not None:
            received = Objects(objects.codes[some], share.term_offsets, share.terms)
            of_pair, alone = count_near(received, posted.near)
            postings = (of_pair * share.probed).sum() + (alone * share.alone).sum()
        charged = model.cost(sample, some, held[offsets[worker] : offsets[worker + 1]], postings)
        expected[leaves.part_worker[worker] if model.by_part else worker] += charged
    assert loads == pytest.approx(expected)
    assert loads.sum() > 0


def test_the_choice_takes_shared_on_one_machine_and_cuts_what_does_not_fit():
    (objects, _, _), rows = city(400, 300)
    sample = make_sample(*objects, rows)
    posted = post_rows(rows)
    candidates = [METHODS[name](sample, 4, LoadModel()) for name in ("kdtree", "kdt")]

    def measure(leaves):
        return measure_plan(leaves, objects, posted, sample, LoadModel())._replace(route_ns=50.0)

    roomy = choose_plan(candidates, measure, 4, Prices(), Machines(4, 1e9))
    assert roomy.leaves is None
    assert roomy.why.startswith("shared: ")
    cramped = choose_plan(candidates, measure, 4, Prices(), Machines(1, 300 * 220.0 / 2))
    assert cramped.leaves is not None
    assert "next " in cramped.why
    assert PLAN_LEVEL == 13


def test_workers_are_spread_over_machines():
    assert spread_workers(8, 1, 5.0) == Machines(8, 5.0)
    assert spread_workers(8, 3, 5.0) == Machines(3, 5.0)
    assert spread_workers(3, 8, 5.0) == Machines(1, 5.0)
