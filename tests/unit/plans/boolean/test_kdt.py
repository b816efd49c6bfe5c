"""The plan `kdt`: text where words are apart, space where regions are, level over workers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.plans.boolean.kdt import (
    KdtNode,
    count_partitions,
    cut_by_similarity,
    cut_by_text,
    finish_plan,
    join_leaves,
    make_node,
    merge_subsets,
    plan_kdt,
    price_parts,
    without_dropped,
)
from placewire.plans.boolean.subset import (
    NOTHING_TO_COMPARE,
    WORLD,
    SampleSubset,
    cut_space,
    cut_terms,
    find_cut,
    halve_box,
    price_space,
    price_text,
    split_by_parts,
    take_box,
    text_similarity,
    weigh_terms,
    whole_sample,
)
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import BY_CELL, Leaves, check_leaves, make_leaves
from placewire.plans.sample.sample import ANY, SIDE, Sample
from profiles import examples
from town_samples import clustered, make, scattered, words

COST = LoadModel()
EVERYWHERE = (0, 0, SIDE - 1, SIDE - 1)


def mixed() -> Sample:
    """Both regions, far apart: the paper's second figure."""
    text, space = clustered(0, 200, 1), scattered(6000, 2)
    return make(text[0] + space[0], text[1] + space[1])


ODD = {
    "nothing": make([], []),
    "no subscriptions": make([(i * 7, i * 5, [i % 3]) for i in range(50)], []),
    "no objects": make([], [((i, i, i + 2, i + 2), [i % 5]) for i in range(50)]),
    "one cell": make([(9, 9, [i % 4]) for i in range(40)], [((9, 9, 9, 9), [1])] * 9),
    "one term": make([(9, 9, [0])] * 40, [((9, 9, 9, 9), [0])] * 9),
    "round the world": make(
        [(i * 160, 4000, [i % 6]) for i in range(51)],
        [((8000, 3900, 100, 4100), [i % 6]) for i in range(20)] + [(EVERYWHERE, [1, 2])] * 5,
    ),
    "no term": make([(i * 99, 70, [i % 6]) for i in range(50)], [(EVERYWHERE, [])] * 9),
    "termless objects": make([(i * 99, 70, []) for i in range(50)], [(EVERYWHERE, [0])] * 9),
    "some without term": make(
        [(i * 99, 70, [i % 6]) for i in range(50)],
        [(EVERYWHERE, [])] * 3 + [(EVERYWHERE, [i % 6, i * i % 6]) for i in range(30)],
    ),
}


def touches(cells: Sequence[int], box: Sequence[int]) -> bool:
    first, low, last, high = cells
    if low >= box[3] or high < box[1]:
        return False
    if first <= last:
        return first < box[2] and last >= box[0]
    return first < box[2] or last >= box[0]


def loads_of(sample: Sample, leaves: Leaves, cost: LoadModel = COST) -> np.ndarray:
    """Each worker's load, from what the plan says of every row alone."""
    objects: list[set[int]] = [set() for _ in range(leaves.workers)]
    subscriptions: list[set[int]] = [set() for _ in range(leaves.workers)]
    for i, box in enumerate(leaves.box.tolist()):
        worker = leaves.part_worker[leaves.part_offsets[i] : leaves.part_offsets[i + 1]]
        listed = slice(leaves.term_offsets[i], leaves.term_offsets[i + 1])
        part_of = dict(
            zip(leaves.terms[listed].tolist(), leaves.term_part[listed].tolist(), strict=True)
        )
        inside = [
            o
            for o in range(sample.objects)
            if box[0] <= sample.object_column[o] < box[2]
            and box[1] <= sample.object_row[o] < box[3]
        ]
        posted = set()
        for s in range(sample.subscriptions):
            if not touches(sample.cell[s].tolist(), box):
                continue
            for t in sample.posts[sample.post_offsets[s] : sample.post_offsets[s + 1]].tolist():
                # A leaf lists every term that it has subscriptions for.
                part = 0 if t == ANY or worker.size == 1 else part_of[1000 + t]
                subscriptions[worker[part]].add(s)
                posted.add(t)
        for o in inside:
            terms = sample.terms[sample.term_offsets[o] : sample.term_offsets[o + 1]].tolist()
            if worker.size == 1 or ANY in posted:
                objects[worker[0]].add(o)
            if worker.size > 1:
                for t in posted.intersection(terms):
                    objects[worker[part_of[1000 + t]]].add(o)
    return np.array(
        [cost.of_counts(len(o), len(s)) for o, s in zip(objects, subscriptions, strict=True)]
    )


def parts_in(leaves: Leaves, west: int, east: int) -> list[int]:
    """How many parts each leaf that reaches into these columns has."""
    here = (leaves.box[:, 0] < east) & (leaves.box[:, 2] > west)
    return np.diff(leaves.part_offsets)[here].tolist()


def plan_space(sample: Sample, workers: int) -> Leaves:
    boxes = [p.box for p in cut_space(sample, whole_sample(sample), workers, COST)]
    splits = [split_by_parts(sample, np.full(sample.lexicon.size, -1, np.int32), 1)] * len(boxes)
    return make_leaves("space", workers, BY_CELL, boxes, splits, list(range(len(boxes))))


def plan_text(sample: Sample, workers: int) -> Leaves:
    part = cut_terms(sample, whole_sample(sample), workers, COST)
    split = split_by_parts(sample, part, workers)
    return make_leaves("text", workers, BY_CELL, [WORLD], [split], list(range(workers)))


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("workers", [1, 2, 7, 70])
def test_odd_samples_are_planned(name: str, workers: int) -> None:
    for delta in (None, 0.0, 0.01, 1.1):
        leaves = plan_kdt(ODD[name], workers, COST, delta=delta, theta=40)
        check_leaves(leaves)
        assert leaves.workers == workers
        loads_of(ODD[name], leaves)


def test_plan_is_named_and_kept_by_cell() -> None:
    leaves = plan_kdt(mixed(), 4, COST)
    assert (leaves.name, leaves.summary) == ("kdt", BY_CELL)


def test_clustered_region_is_cut_by_text() -> None:
    leaves = plan_kdt(make(*clustered(3000, 200, 3)), 4, COST)
    assert parts_in(leaves, 0, SIDE) == [4]


def test_scattered_region_is_cut_by_space() -> None:
    leaves = plan_kdt(make(*scattered(3000, 3)), 4, COST)
    assert parts_in(leaves, 0, SIDE) == [1, 1, 1, 1]


def test_similar_words_are_still_cut_by_text_where_that_costs_less() -> None:
    # Objects and subscriptions speak alike, but a cut in space would copy every subscription.
    words = 60
    objects = [(100 + i % 50, 100 + i % 37, [i % words]) for i in range(600)]
    sample = make(objects, [((0, 0, 999, 999), [i % words]) for i in range(600)])
    assert text_similarity(sample, whole_sample(sample)) > 0.9
    assert parts_in(plan_kdt(sample, 4, COST), 0, SIDE) == [4]


def test_what_nobody_asks_for_nearby_is_not_sent() -> None:
    objects = [(10, 10, [0, 1]), (5000, 10, [0, 1]), (8000, 10, [0, 1])]
    sample = make(objects, [((0, 0, 20, 20), [0]), ((4990, 0, 5010, 20), [1])])
    assert without_dropped(sample) is sample
    sent = without_dropped(
        sample._replace(
            pair_work=np.array([3.0, 0.0, 0.0, 3.0, 0.0, 0.0]),
            object_work=np.array([4.0, 4.0, 1.0]),
        )
    )
    assert sent.terms.tolist() == [0, 1]
    assert sent.term_offsets.tolist() == [0, 1, 2, 2]
    assert sent.pair_work.tolist() == [3.0, 3.0]
    assert sent.object_work.tolist() == [4.0, 4.0, 0.0]


def test_mixed_world_is_cut_by_text_here_and_by_space_there() -> None:
    leaves = plan_kdt(mixed(), 6, COST)
    check_leaves(leaves)
    assert max(parts_in(leaves, 0, 1000)) > 1
    there = parts_in(leaves, 6000, 7000)
    assert len(there) > 1
    assert max(there) == 1


@pytest.mark.parametrize("workers", [4, 6, 8])
def test_mixed_world_has_less_load_than_one_way_of_cutting(workers: int) -> None:
    sample = mixed()
    hybrid = loads_of(sample, plan_kdt(sample, workers, COST)).sum()
    assert hybrid < loads_of(sample, plan_space(sample, workers)).sum()
    assert hybrid < loads_of(sample, plan_text(sample, workers)).sum()


@pytest.mark.parametrize("delta", [None, 0.0, 0.8])
@pytest.mark.parametrize("sigma", [1.1, 1.5])
def test_workers_are_level(delta: float | None, sigma: float) -> None:
    for workers in (3, 5, 8):
        loads = loads_of(mixed(), plan_kdt(mixed(), workers, COST, delta=delta, sigma=sigma))
        assert loads.max() / loads.min() <= sigma


def test_cutting_ends_at_theta_nodes() -> None:
    sample = mixed()
    for theta in (12, 30):
        leaves = plan_kdt(sample, 3, COST, delta=0.8, sigma=1.0, theta=theta)
        assert leaves.part_worker.size == theta


def test_search_by_similarity_keeps_within_its_limit() -> None:
    for most in (1, 2, 5):
        assert 1 <= len(cut_by_similarity(mixed(), COST, 0.8, 0.2, most)) <= most
    kinds = {by_text for _, by_text in cut_by_similarity(mixed(), COST, 0.8, 0.2, 64)}
    assert kinds == {True, False}


def test_a_node_that_cannot_be_cut_ends_the_levelling() -> None:
    # One cell has nearly everything under one word: copies elsewhere would help nobody.
    heavy = [(4, 4, [0])] * 500
    light = [(4000 + i, 4000, [1]) for i in range(20)]
    sample = make(heavy + light, [((4, 4, 4, 4), [0])] * 500 + [((4000, 4000, 4020, 4000), [1])])
    assert plan_kdt(sample, 4, COST, theta=200).part_worker.size < 8


def test_plans_are_the_same_every_time() -> None:
    once, again = (plan_kdt(mixed(), 5, COST, delta=0.8, sigma=1.05) for _ in range(2))
    for a, b in zip(once, again, strict=True):
        assert np.array_equal(a, b)


def test_loads_of_the_merged_nodes_are_the_plan_s() -> None:
    for sample in (mixed(), ODD["some without term"], ODD["round the world"]):
        boxes = cut_by_similarity(sample, COST, 0.8, 0.2, 8)
        nodes, merged = finish_plan(sample, boxes, 6, COST, 1.05, 40)
        loads = loads_of(sample, join_leaves(sample, nodes, merged, 6))
        np.testing.assert_allclose(loads, merged.loads)


def test_a_part_is_cut_again_among_its_own_terms() -> None:
    sample = ODD["some without term"]
    whole = make_node(sample, whole_sample(sample), COST, by_text=True)
    first, second = cut_by_text(sample, whole, 2, COST)
    again = cut_by_text(sample, second, 2, COST)
    assert sorted(np.concatenate([part.terms for part in again])) == sorted(second.terms)
    assert not set(first.terms) & set(second.terms)
    # Who needs no term stays in the first part and draws every object there.
    assert set(first.subset.objects) == set(range(50))
    assert not set(range(3)) & set(second.subset.subscriptions)


@settings(max_examples=examples(60))
@given(st.data())
def test_counts_of_partitions_are_the_cheapest(data: st.DataObject) -> None:
    nodes, most = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    price = st.one_of(st.integers(1, 20).map(float), st.just(np.inf))
    prices = np.array(
        data.draw(
            st.lists(st.lists(price, min_size=most, max_size=most), min_size=nodes, max_size=nodes)
        )
    )
    prices[:, 0] = 5.0
    total = nodes + most - 1
    counts = count_partitions(prices, total)

    def price_of(choice: Sequence[int]) -> float:
        return float(sum(prices[i, k - 1] for i, k in enumerate(choice)))

    can = [
        choice
        for choice in itertools.product(range(1, most + 1), repeat=nodes)
        if sum(choice) <= total and np.isfinite(price_of(choice))
    ]
    parts = max(map(sum, can))
    assert sum(counts) == parts
    assert price_of(counts) == min(price_of(choice) for choice in can if sum(choice) == parts)


def test_prices_are_those_of_the_parts() -> None:
    sample = mixed()
    root = whole_sample(sample)
    node = make_node(sample, root, COST, by_text=False)
    text = price_text(sample, root, weigh_terms(sample, root, COST), 8, COST)
    space = price_space(sample, root, 8, COST)
    for parts in range(1, 9):
        made = cut_by_text(sample, node, parts, COST)
        assert text[parts - 1] == pytest.approx(sum(part.load for part in made))
    for parts in (1, 2, 4):  # halving gives equal shares here, and so the same boxes
        boxes = cut_space(sample, root, parts, COST)
        whole = sum(COST.cost(sample, box.objects, box.subscriptions) for box in boxes)
        assert space[parts - 1] == pytest.approx(whole, rel=0.05)
    assert (price_parts(sample, node, 8, COST) == np.minimum(text, space)).all()
    assert (price_parts(sample, node._replace(by_text=True), 8, COST) == text).all()


cells = st.tuples(*[st.integers(0, 12)] * 4).map(
    lambda c: (c[0], min(c[1], c[3]), c[2], max(c[1], c[3]))
)
samples = st.builds(
    make,
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), words), max_size=25),
    st.lists(st.tuples(cells, words), max_size=25),
)


@settings(max_examples=examples(120))
@given(samples, st.integers(1, 9), st.sampled_from([0.0, 0.3, 1.1]), st.integers(1, 40))
def test_any_sample_is_planned(sample: Sample, workers: int, delta: float, theta: int) -> None:
    leaves = plan_kdt(sample, workers, COST, delta=delta, sigma=1.1, theta=theta)
    check_leaves(leaves)
    loads_of(sample, leaves)


@settings(max_examples=examples(120))
@given(samples, st.sampled_from([0, 1]), st.sampled_from([0.25, 0.5]))
def test_a_cut_is_the_best_there_is(sample: Sample, axis: int, share: float) -> None:
    subset = take_box(sample, whole_sample(sample), (1, 2, 11, 10))

    def loads_at(at: int) -> tuple[float, float]:
        low, high = (take_box(sample, subset, b) for b in halve_box(subset.box, axis, at))
        return (
            COST.cost(sample, low.objects, low.subscriptions),
            COST.cost(sample, high.objects, high.subscriptions),
        )

    whole = COST.cost(sample, subset.objects, subset.subscriptions)
    priced = {at: loads_at(at) for at in range(subset.box[axis] + 1, subset.box[axis + 2])}
    worst = {
        at: max(low / share, high / (1 - share))
        for at, (low, high) in priced.items()
        if max(low, high) < whole
    }
    cut = find_cut(sample, subset, COST, axis, share)
    if cut is None:
        assert not worst
    else:
        assert worst[cut.at] == pytest.approx(min(worst.values()))
        assert cut.worst == pytest.approx(worst[cut.at])


def test_similarity_is_the_cosine_of_counts() -> None:
    alike = make([(1, 1, [0]), (1, 1, [1])], [(EVERYWHERE, [0]), (EVERYWHERE, [1])])
    apart = make([(1, 1, [0])], [(EVERYWHERE, [1])])
    half = make([(1, 1, [0, 1])], [(EVERYWHERE, [0])])
    assert text_similarity(alike, whole_sample(alike)) == pytest.approx(1.0)
    assert text_similarity(apart, whole_sample(apart)) == 0.0
    assert text_similarity(half, whole_sample(half)) == pytest.approx(0.5**0.5)
    for name in ("nothing", "no objects", "no subscriptions", "no term"):
        assert text_similarity(ODD[name], whole_sample(ODD[name])) == NOTHING_TO_COMPARE


def test_portions_are_merged_to_the_worker_that_has_their_rows() -> None:
    sample = make([], [(EVERYWHERE, [0])] * 100)
    cuts = [(0, 50), (50, 90), (90, 100), (0, 10), (50, 60)]
    subsets = [SampleSubset(WORLD, np.arange(0), np.arange(*cut)) for cut in cuts]
    merged = merge_subsets(sample, subsets, 2, COST)
    # The third goes to the lighter worker; the others cost nothing where their rows are.
    assert merged.worker.tolist() == [0, 1, 1, 0, 1]
    assert merged.balance == 1.0


def test_portions_go_to_the_lightest_when_sharing_would_tilt() -> None:
    sample = make([], [(EVERYWHERE, [0])] * 100)
    cuts = [(0, 50), (50, 90), (30, 65)]
    subsets = [SampleSubset(WORLD, np.arange(0), np.arange(*cut)) for cut in cuts]
    merged = merge_subsets(sample, subsets, 2, COST)
    # 15 new rows for the first, 20 for the second; only the second keeps the balance.
    assert merged.worker.tolist() == [0, 1, 1]
    assert merged.loads.tolist() == [COST.of_counts(0, 50), COST.of_counts(0, 60)]


def test_more_than_64_workers_share_rows_too() -> None:
    sample = make([(i, i, [0]) for i in range(70)], [])
    subsets = [SampleSubset(WORLD, np.arange(i, i + 1), np.arange(0)) for i in range(70)]
    merged = merge_subsets(sample, [*subsets, subsets[69]], 70, COST)
    assert merged.worker[-1] == merged.worker[69]
    assert (merged.loads == COST.of_counts(1, 0)).all()


def test_nodes_are_plain_data() -> None:
    node = make_node(ODD["nothing"], whole_sample(ODD["nothing"]), COST, by_text=False)
    assert node == KdtNode(node.subset, 0.0, False, None, False)
