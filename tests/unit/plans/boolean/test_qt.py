"""The QT-tree and its halves: every plan is whole, text and space win where they should."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.kernels.space.cells import points_to_codes
from placewire.plans.boolean.qt import (
    BY_TEXT,
    QtNode,
    find_leaves,
    grow_tree,
    plan_qt,
    plan_quadtree,
    plan_text,
)
from placewire.plans.cost.sstd import SSTD
from placewire.plans.leaves import BY_LEAF, Leaves, check_leaves
from placewire.plans.route.leaf_route import make_tables, place_objects
from placewire.plans.sample.questions import add_questions, assume_kind
from placewire.plans.sample.sample import ANY, CRQ, CTQ, SIDE, SKQ, SRQ, STQ, Sample
from plan_samples import TERMS, questions_of, sample_of, samples, traits_drawn
from profiles import examples

EVERYWHERE = (0, 0, SIDE - 1, SIDE - 1)
HALF = SIDE // 2


def scattered(count: int, terms: int = 1) -> list[tuple[int, int, list[int]]]:
    """Objects all over the world, with `terms` random terms each."""
    random = np.random.default_rng(11)
    return [
        (*random.integers(0, SIDE, 2).tolist(), random.permutation(TERMS)[:terms].tolist())
        for _ in range(count)
    ]


def local(count: int, reach: int = 5) -> list[tuple[tuple[int, int, int, int], list[int]]]:
    """Subscriptions to small boxes all over the world, one term each."""
    random = np.random.default_rng(12)
    found = []
    for _ in range(count):
        column, row = random.integers(0, SIDE - reach, 2).tolist()
        found.append(((column, row, column + reach, row + reach), [int(random.integers(TERMS))]))
    return found


ODD = {
    "nothing": sample_of([], []),
    "no objects": sample_of([], local(50)),
    "no subscriptions": sample_of(scattered(50), []),
    "one cell": sample_of([(77, 99, [i % TERMS]) for i in range(60)], [(EVERYWHERE, [3])] * 9),
    "no terms": sample_of([(1, 1, [])] * 30, [(EVERYWHERE, [2])] * 5),
    "any term": sample_of(scattered(80, 3), [(EVERYWHERE, [ANY])] * 5 + local(30)),
    "only any": sample_of(scattered(80), [((5, 5, 6000, 6000), [ANY])] * 5),
    "antimeridian": sample_of(scattered(80), [((8000, 0, 200, SIDE - 1), [1, 2, 3])] * 20),
    "corners": sample_of([(SIDE - 1, SIDE - 1, [0]), (0, 0, [1])] * 20, [(EVERYWHERE, [0, 1])] * 4),
    "ordinary": sample_of(scattered(300, 3), local(300, 400)),
}


def inner_nodes(node: QtNode) -> Iterator[QtNode]:
    """All nodes that have children."""
    if node.children:
        yield node
    for child in node.children:
        yield from inner_nodes(child)


def check_plan(leaves: Leaves, workers: int, name: str = "qt") -> None:
    """What every QT plan must be."""
    check_leaves(leaves)
    assert (leaves.name, leaves.workers, leaves.summary) == (name, workers, BY_LEAF)
    for at in range(leaves.total):
        terms = leaves.terms[leaves.term_offsets[at] : leaves.term_offsets[at + 1]]
        assert (np.diff(terms.astype(object)) > 0).all()
    assert len({tuple(box) for box in leaves.box.tolist()}) == leaves.total


def of_kind(sample: Sample, kind: int) -> Sample:
    """The sample with all rows of one kind."""
    return sample._replace(traits=assume_kind(sample, kind))


def same_plans(one: Leaves, other: Leaves) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("workers", [1, 2, 7, 200])
@pytest.mark.parametrize("name", ODD)
def test_odd_samples(name: str, workers: int) -> None:
    check_plan(plan_qt(ODD[name], workers), workers)


@pytest.mark.parametrize("name", ODD)
def test_odd_samples_with_other_kinds(name: str) -> None:
    for seed in range(2):
        sample = ODD[name]._replace(traits=traits_drawn(ODD[name], seed))
        check_plan(plan_qt(sample, 5), 5)


@settings(max_examples=examples(20))
@given(samples, st.integers(1, 20), st.integers(1, 40), st.booleans())
def test_any_sample(sample: Sample, workers: int, theta: int, snapshot: bool) -> None:
    sample = of_kind(sample, SRQ if snapshot else CRQ)
    plan = plan_qt(sample, workers, theta=theta)
    check_plan(plan, workers)
    assert same_plans(plan, plan_qt(sample, workers, theta=theta))
    root = grow_tree(sample, SSTD, theta)
    for node in inner_nodes(root):
        total = sum(leaf.load for leaf in find_leaves(node))
        assert total <= node.load * (1 + 1e-8)
    loaded = [leaf for leaf in find_leaves(root) if leaf.load > 0]
    # A split adds three leaves at most; without any workload each quarter counts.
    assert len(loaded) < theta + 3


def test_a_split_taken_never_raises_the_total() -> None:
    for sample in ODD.values():
        for kind in (CRQ, SRQ):
            before = np.inf
            for theta in (1, 4, 16):
                root = grow_tree(of_kind(sample, kind), SSTD, theta)
                total = sum(leaf.load for leaf in find_leaves(root))
                assert total <= before * (1 + 1e-9)
                before = total


def test_workers_get_even_loads() -> None:
    sample = ODD["ordinary"]
    root = grow_tree(sample, SSTD, 64)
    loads = [leaf.load for leaf in find_leaves(root)]
    plan = plan_qt(sample, 4)
    assert not plan.terms.size
    assert plan.part_worker.size == len(loads)
    sums = np.bincount(plan.part_worker, loads, minlength=4)
    assert sums.max() - sums.min() <= max(loads)
    assert sums.min() > 0


def test_space_wins_for_local_subscriptions() -> None:
    plan = plan_qt(ODD["ordinary"], 4)
    assert plan.terms.size == 0
    assert plan.total >= 64
    root = grow_tree(ODD["ordinary"], SSTD, 64)
    assert not any(node.by_text for node in inner_nodes(root))


def test_text_wins_for_snapshots_of_everywhere() -> None:
    """Everyone asks about the whole world for one term: quarters would all be asked everything."""
    sample = sample_of(scattered(200), [(EVERYWHERE, [i % TERMS]) for i in range(48)])
    sample = of_kind(sample, SRQ)
    root = grow_tree(sample, SSTD, 4)
    assert root.by_text
    leaves = list(find_leaves(root))
    assert sum(leaf.load for leaf in leaves) < 0.3 * root.load
    # The terms are shared out evenly, and each object is in the part of its term.
    assert sorted(leaf.keywords.size for leaf in leaves if leaf.keywords is not None) == [3] * 4
    assert sum(leaf.subset.objects.size for leaf in leaves) == sample.objects
    plan = plan_qt(sample, 4, theta=4)
    assert plan.total == 1
    assert plan.part_worker.tolist() != [0] * 4
    assert sorted(plan.part_worker.tolist()) == [0, 1, 2, 3]
    assert plan.terms.tolist() == sample.lexicon.tolist()


def test_the_first_part_sees_all_for_those_who_need_no_term() -> None:
    wide = [(EVERYWHERE, [i % TERMS]) for i in range(480)]
    sample = sample_of(scattered(200), [*wide, (EVERYWHERE, [ANY])])
    root = grow_tree(of_kind(sample, SRQ), SSTD, 16)
    assert root.by_text
    first, *others = root.children
    assert first.first
    assert not any(child.first for child in others)
    while first.children:
        first = first.children[0]
    assert first.subset.objects.size == sample.objects
    assert all(leaf.subset.objects.size < 100 for child in others for leaf in find_leaves(child))


def test_objects_that_share_terms_share_a_part() -> None:
    """Terms come in pairs: a pair in two parts would send its objects to both."""
    objects = [
        (int(c), int(r), [2 * (t[0] // 2), 2 * (t[0] // 2) + 1]) for c, r, t in scattered(90)
    ]
    sample = sample_of(objects, [(EVERYWHERE, [i % TERMS]) for i in range(48)])
    root = grow_tree(of_kind(sample, SRQ), SSTD, 4)
    assert root.by_text
    assert sum(leaf.subset.objects.size for leaf in root.children) == 90


def test_text_divides_a_cell_that_space_cannot() -> None:
    """Those who look elsewhere are cut off by space, those who look here are not."""
    here = [(EVERYWHERE, [t]) for t in range(TERMS)]
    elsewhere = [((64, 100, 76, 100), [0])] * 20
    sample = sample_of([(77, 99, [i % TERMS]) for i in range(60)], here + elsewhere)
    plan = plan_qt(sample, 4)
    (hot,) = np.flatnonzero(np.diff(plan.part_offsets) > 1)
    assert plan.box[hot].tolist() == [76, 96, 80, 100]
    parts = plan.part_worker[plan.part_offsets[hot] : plan.part_offsets[hot + 1]]
    assert set(parts.tolist()) == {0, 1, 2, 3}
    assert np.diff(plan.term_offsets).max() == TERMS


def test_space_wins_a_tie() -> None:
    """Continuous queries everywhere: neither way costs less, and both divide the objects."""
    sample = sample_of(scattered(200), [(EVERYWHERE, [i % TERMS]) for i in range(48)])
    root = grow_tree(sample, SSTD, 16)
    assert not any(node.by_text for node in inner_nodes(root))
    assert len(list(find_leaves(root))) == 16


def test_one_term_is_not_divided() -> None:
    sample = sample_of([(9, 9, [4])] * 50, [(EVERYWHERE, [4])] * 5)
    plan = plan_qt(sample, 8)
    assert (np.diff(plan.part_offsets) == 1).all()


def test_no_workload_is_quartered_evenly() -> None:
    for name in ("nothing", "no objects", "no subscriptions"):
        plan = plan_qt(ODD[name], 8)
        assert plan.total == 64
        assert np.unique(plan.box[:, 2] - plan.box[:, 0]).tolist() == [SIDE // 8]
        assert np.bincount(plan.part_worker).tolist() == [8] * 8


def test_a_town_is_found_in_the_world() -> None:
    """All objects in 4 x 4 plan cells: the quarters that lead there are no leaves of workload."""
    objects = [(c, r, [0]) for c, r in np.ndindex(4, 4)] * 3
    sample = sample_of(objects, [((c, r, c, r), [0]) for c, r in np.ndindex(4, 4)])
    plan = plan_qt(sample, 16)
    town = (plan.box[:, 2] <= 4) & (plan.box[:, 3] <= 4)
    assert np.count_nonzero(town) == 16
    assert sorted(plan.part_worker[town].tolist()) == list(range(16))


def test_quarters_of_a_part_cut_the_others_too() -> None:
    """Divided by text at the root; one heavy part is then quartered in space."""
    random = np.random.default_rng(3)
    wide = [(EVERYWHERE, [t]) for t in range(4) for _ in range(10)]
    corners = [(0, 0), (HALF, 0), (0, HALF), (HALF, HALF)]
    narrow = [((c, r, c + HALF - 1, r + HALF - 1), [0]) for c, r in corners for _ in range(200)]
    objects = [(*random.integers(0, SIDE, 2).tolist(), [t]) for t in range(4) for _ in range(100)]
    sample = sample_of(objects, wide + narrow)
    sample = of_kind(sample, SRQ)
    root = grow_tree(sample, SSTD, 7)
    assert root.by_text
    quartered = [child for child in root.children if child.children]
    assert len(quartered) == 1
    assert not quartered[0].by_text
    plan = plan_qt(sample, 7, theta=7)
    check_plan(plan, 7)
    assert plan.total == 4
    assert np.diff(plan.part_offsets).tolist() == [4] * 4
    workers = plan.part_worker.reshape(4, 4)
    # The quartered part has a worker in each quarter, every other part has one in all.
    assert sorted(len(set(column)) for column in workers.T.tolist()) == [1, 1, 1, 4]
    assert len(set(workers.ravel().tolist())) == 7


# The halves


@pytest.mark.parametrize("workers", [1, 2, 7, 200])
@pytest.mark.parametrize("name", ODD)
def test_odd_samples_of_the_halves(name: str, workers: int) -> None:
    quarters = plan_quadtree(ODD[name], workers)
    check_plan(quarters, workers, "quadtree")
    assert (np.diff(quarters.part_offsets) == 1).all()
    words = plan_text(ODD[name], workers)
    check_plan(words, workers, "text")
    assert words.total == 1


def test_quarters_are_those_of_the_tree_where_space_wins() -> None:
    ordinary = ODD["ordinary"]
    assert same_plans(plan_quadtree(ordinary, 4)._replace(name="qt"), plan_qt(ordinary, 4))


def test_quarters_where_text_would_win() -> None:
    sample = sample_of(scattered(200), [(EVERYWHERE, [i % TERMS]) for i in range(48)])
    assert plan_qt(of_kind(sample, SRQ), 4).terms.size > 0
    assert plan_quadtree(of_kind(sample, SRQ), 4).total >= 64


def test_text_gives_every_worker_a_share_of_boolean_subscriptions() -> None:
    plan = plan_text(ODD["ordinary"], 4)
    assert plan.terms.tolist() == ODD["ordinary"].lexicon.tolist()
    assert plan.part_worker.size >= 4
    parts = plan.part_worker[plan.term_part]
    assert set(parts.tolist()) == {0, 1, 2, 3}
    assert np.bincount(parts).max() <= TERMS / 2


def test_text_goes_by_hash_where_nobody_asks() -> None:
    for name in ("nothing", "no objects", "no subscriptions"):
        plan = plan_text(ODD[name], 5)
        assert plan.part_worker.tolist() == [0, 1, 2, 3, 4]
        assert plan.terms.size == 0


def test_text_divides_even_if_objects_then_go_to_several() -> None:
    """Objects have many terms: to divide raises the total, and is done all the same."""
    sample = of_kind(sample_of(scattered(100, 6), [(EVERYWHERE, [t]) for t in range(TERMS)]), CRQ)
    assert not grow_tree(sample, SSTD, 4).by_text
    wide = of_kind(sample, SRQ)
    root = grow_tree(wide, SSTD, 4, BY_TEXT)
    assert root.by_text
    assert sum(leaf.subset.objects.size for leaf in find_leaves(root)) > 100


# Objects that are kept


def kept(sample: Sample, kinds: list[int]) -> Sample:
    """The sample with questions about the whole world, for a term each or for two."""
    world = (-180.0, -90.0, 180.0, 90.0)
    asked = [
        (kind, world, [] if kind in (STQ, CTQ) else [t, (t + at) % TERMS][: 1 + at % 2], True, 1.0)
        for at, kind in enumerate(kinds)
        for t in range(TERMS)
    ]
    return add_questions(sample, questions_of(asked, sample.lexicon), 1.0)


def codes_of(sample: Sample) -> np.ndarray:
    """Codes in the middle of the plan cells of a sample's objects."""
    lon = (sample.object_column + 0.5) * 360 / SIDE - 180
    lat = (sample.object_row + 0.5) * 180 / SIDE - 90
    codes: np.ndarray = points_to_codes(lon, lat)
    return codes


@pytest.mark.parametrize("name", ODD)
def test_kept_objects_are_in_one_leaf_each(name: str) -> None:
    sample = kept(ODD[name], [SRQ, SKQ, STQ, CTQ])
    for make, plan in ((plan_qt, "qt"), (plan_quadtree, "quadtree"), (plan_text, "text")):
        check_plan(make(sample, 5), 5, plan)
    root = grow_tree(sample, SSTD, 16)
    rows = np.concatenate([leaf.subset.objects for leaf in find_leaves(root)])
    assert np.sort(rows).tolist() == list(range(sample.objects))
    for node in inner_nodes(root):
        total = sum(leaf.load for leaf in find_leaves(node))
        assert total <= node.load * (1 + 1e-8)


def test_kept_objects_are_where_they_will_be_placed() -> None:
    sample = kept(sample_of(scattered(300, 3), []), [SRQ])
    root = grow_tree(sample, SSTD, 4, BY_TEXT)
    assert root.by_text
    plan = plan_qt(sample, 4, theta=4, way=BY_TEXT)
    terms = sample.lexicon[sample.terms]
    parts = place_objects(make_tables(plan), codes_of(sample), sample.term_offsets, terms)
    for part, child in enumerate(root.children):
        assert np.flatnonzero(parts == part).tolist() == child.subset.objects.tolist()
        assert child.load < root.load


def test_objects_that_nobody_asks_for_are_kept_too() -> None:
    sample = sample_of([(5, 5, [])] * 9 + [(5, 5, [0])], [(EVERYWHERE, [0])])
    assert grow_tree(sample, SSTD, 1).subset.objects.size == 1
    assert grow_tree(kept(sample, [SRQ]), SSTD, 1).subset.objects.size == 10


def test_trending_gives_text_no_say() -> None:
    sample = kept(sample_of(scattered(200), []), [STQ, CTQ])
    assert not any(node.by_text for node in inner_nodes(grow_tree(sample, SSTD, 16)))
