"""Plans by text alone: every term has its part, parts are level, neighbours stay together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from odd_samples import ODD_SAMPLES, graham, sample_of
from placewire.plans.boolean import term_methods
from placewire.plans.boolean.subset import SampleSubset, divide_by_text, whole_sample
from placewire.plans.boolean.term_methods import (
    Graph,
    count_missing,
    count_terms,
    draw_hyperedges,
    follow_neighbours,
    note_present,
    plan_frequency,
    plan_hypergraph,
    plan_metric,
    share_rows,
)
from placewire.plans.cost.model import LoadModel
from placewire.plans.leaves import BY_LEAF, Leaves, check_leaves
from placewire.plans.sample.sample import ANY, SIDE, Sample
from profiles import examples

Planner = Callable[[Sample, int, LoadModel], Leaves]

COST = LoadModel()
WORLD = (0, 0, SIDE - 1, SIDE - 1)


def plan_streamed(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """The hypergraph cut without METIS."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_methods, "has_metis", lambda: False)
        return plan_hypergraph(sample, workers, cost)


def plan_with_metis(sample: Sample, workers: int, cost: LoadModel) -> Leaves:
    """The hypergraph cut by METIS, however few terms there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_methods, "TERMS_PER_PART", 4)
        return plan_hypergraph(sample, workers, cost)


HYPERGRAPH: dict[str, Planner] = {"streamed": plan_streamed, "metis": plan_with_metis}
PLANNERS: dict[str, Planner] = {
    "frequency": plan_frequency,
    "metric": plan_metric,
    **HYPERGRAPH,
}


@cache
def topical_sample(
    topics: int, words: int, per_object: int, stray: float, anywhere: int = 0
) -> Sample:
    """Objects and subscriptions with words of one topic each, and `stray` of them of any.

    Words are numbered so that the topics alternate.
    """
    rng = np.random.default_rng(11)

    def draw(count: int) -> list[int]:
        topic = rng.integers(topics)
        numbers = rng.choice(words, count, False) * topics + topic
        strays = rng.integers(0, topics * words, count)
        return np.unique(np.where(rng.random(count) < stray, strays, numbers)).tolist()

    objects = [(1, 1, draw(per_object)) for _ in range(4000)]
    wishes = [(WORLD, draw(int(rng.integers(1, min(words, 3) + 1)))) for _ in range(2000)]
    return sample_of(objects, wishes + [(WORLD, [ANY])] * anywhere, topics * words)


def parts_of(sample: Sample, leaves: Leaves) -> NDArray[np.int32]:
    """The part of each term of the lexicon, and that all are listed."""
    check_leaves(leaves)
    assert leaves.summary == BY_LEAF
    assert leaves.total == 1
    assert leaves.part_worker.tolist() == list(range(leaves.workers))
    assert leaves.terms.tolist() == sample.lexicon.tolist()
    return leaves.term_part


def divide(sample: Sample, leaves: Leaves) -> list[SampleSubset]:
    return divide_by_text(sample, whole_sample(sample), parts_of(sample, leaves), leaves.workers)


def loads_of_parts(sample: Sample, leaves: Leaves) -> list[float]:
    return [COST.cost(sample, p.objects, p.subscriptions) for p in divide(sample, leaves)]


def copies_of_objects(sample: Sample, leaves: Leaves) -> int:
    return sum(subset.objects.size for subset in divide(sample, leaves))


words = st.lists(st.integers(0, 7), unique=True, max_size=6)
wishes = st.just([ANY]) | words
samples = st.builds(
    sample_of,
    st.lists(st.tuples(st.just(3), st.just(4), words), max_size=15),
    st.lists(st.tuples(st.just(WORLD), wishes), max_size=15),
)


# All of them


@pytest.mark.parametrize("workers", [1, 7, 150])
@pytest.mark.parametrize("odd", ODD_SAMPLES)
@pytest.mark.parametrize("name", PLANNERS)
def test_plans_of_odd_samples_list_all_terms(name: str, odd: str, workers: int) -> None:
    leaves = PLANNERS[name](ODD_SAMPLES[odd], workers, COST)
    parts_of(ODD_SAMPLES[odd], leaves)
    assert leaves.workers == workers
    assert leaves.name == ("hypergraph" if name in HYPERGRAPH else name)


@pytest.mark.parametrize("name", PLANNERS)
@given(sample=samples, workers=st.integers(1, 12))
@settings(max_examples=examples(40))
def test_plans_of_any_sample_list_all_terms(name: str, sample: Sample, workers: int) -> None:
    parts_of(sample, PLANNERS[name](sample, workers, COST))


@pytest.mark.parametrize("workers", [2, 5, 8])
@pytest.mark.parametrize(
    ("name", "bound"), [("frequency", 1.1), ("metric", 1.15), ("streamed", 1.3), ("metis", 1.3)]
)
def test_smooth_data_are_levelled(name: str, bound: float, workers: int) -> None:
    sample = topical_sample(50, 20, 6, 0.2)
    loads = loads_of_parts(sample, PLANNERS[name](sample, workers, COST))
    assert max(loads) <= bound * min(loads)


@pytest.mark.parametrize("name", PLANNERS)
def test_the_same_sample_makes_the_same_plan(name: str) -> None:
    sample = topical_sample(60, 15, 6, 0.1)
    one, two = (PLANNERS[name](sample, 6, COST) for _ in range(2))
    assert one.term_part.tolist() == two.term_part.tolist()


@pytest.mark.parametrize("name", PLANNERS)
def test_terms_that_nobody_asked_for_are_dealt_out_by_frequency(name: str) -> None:
    objects = [(1, 1, [word]) for word in range(12) for _ in range(12 - word)]
    sample = sample_of(objects, [(WORLD, [0]), (WORLD, [1])], 12)
    part = parts_of(sample, PLANNERS[name](sample, 3, COST))
    assert part[2:].tolist() == graham(sample.frequency[2:].tolist(), 3)


@pytest.mark.parametrize("name", PLANNERS)
def test_the_part_that_sees_everything_gets_fewer_terms(name: str) -> None:
    sample = topical_sample(50, 20, 6, 0.2, anywhere=300)
    posted = count_terms(sample).subscriptions
    part = parts_of(sample, PLANNERS[name](sample, 4, COST))
    held = np.bincount(part, posted, 4)
    assert held[0] < 0.8 * held[1:].min()


def test_the_metric_knows_that_one_part_sees_everything_anyway() -> None:
    sample = topical_sample(50, 20, 6, 0.2, anywhere=300)
    loads = loads_of_parts(sample, plan_metric(sample, 4, COST))
    assert max(loads) <= 1.15 * min(loads)


# Fewer copies


@pytest.mark.parametrize("name", ["metric", *HYPERGRAPH])
@pytest.mark.parametrize("workers", [4, 9])
def test_topics_need_fewer_copies_than_by_frequency(name: str, workers: int) -> None:
    sample = topical_sample(60, 15, 6, 0.1)
    by_frequency = copies_of_objects(sample, plan_frequency(sample, workers, COST))
    assert copies_of_objects(sample, PLANNERS[name](sample, workers, COST)) < 0.6 * by_frequency


@pytest.mark.parametrize("name", HYPERGRAPH)
def test_words_that_always_come_together_share_a_part(name: str) -> None:
    sample = topical_sample(48, 5, 5, 0.0)
    part = parts_of(sample, HYPERGRAPH[name](sample, 4, COST))
    for topic in range(48):
        assert len(set(part[topic::48].tolist())) == 1
    assert len(set(part.tolist())) == 4


# The plan by frequency


def test_terms_are_dealt_out_by_grahams_rule() -> None:
    sample = topical_sample(60, 15, 6, 0.1)
    counts = count_terms(sample)
    posted = counts.posted
    assert posted.size > 500
    pairs = np.stack([counts.objects, counts.subscriptions], 1)[posted].tolist()
    loads = [COST.of_counts(objects, subscriptions) for objects, subscriptions in pairs]
    part = parts_of(sample, plan_frequency(sample, 7, COST))
    assert part[posted].tolist() == graham(loads, 7)


# The metric


@given(sample=samples, deal=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2))))
@settings(max_examples=examples(40))
def test_rows_are_missing_until_one_of_their_terms_comes(
    sample: Sample, deal: list[tuple[int, int]]
) -> None:
    """The count of what a term would add equals one by sets."""
    shared = share_rows(sample.post_offsets, sample.posts, np.ones(8, np.bool_), 3)
    rows = [
        set(sample.posts[begin:end].tolist())
        for begin, end in zip(sample.post_offsets[:-1], sample.post_offsets[1:], strict=True)
    ]
    present: list[set[int]] = [set(), set(), set()]
    dealt: set[int] = set()
    for term, part in deal:
        if term in dealt:
            continue
        dealt.add(term)
        bearers = {row for row, terms in enumerate(rows) if term in terms}
        expected = [len(bearers - have) for have in present]
        assert count_missing(shared, term).tolist() == expected
        note_present(shared, term, part)
        present[part] |= bearers


# The hypergraph


@pytest.mark.parametrize("size", [2, 3, 4, 16, 17])
def test_a_small_hyperedge_is_a_clique(size: int) -> None:
    first, second, weights = draw_hyperedges(np.array([0, size]), np.arange(size), 6.0)
    pairs = {frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)}
    assert len(pairs) == first.size == size * (size - 1) // 2
    assert np.allclose(weights, 6.0 / (size - 1))


@pytest.mark.parametrize("size", [18, 19, 200])
def test_a_large_hyperedge_has_few_links_of_the_same_weight(size: int) -> None:
    first, second, weights = draw_hyperedges(np.array([0, size]), np.arange(size), 6.0)
    pairs = {frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)}
    assert len(pairs) == first.size == size * term_methods.LINKS
    ends = np.concatenate([first, second])
    assert np.allclose(np.bincount(ends, np.concatenate([weights, weights]), size), 6.0)


def test_hyperedges_leave_out_terms_that_do_not_count() -> None:
    offsets, terms = np.array([0, 3, 3, 5, 6]), np.array([4, -1, 2, -1, 7, 9])
    first, second, weights = draw_hyperedges(offsets, terms, 6.0)
    assert (first.tolist(), second.tolist(), weights.tolist()) == ([4], [2], [6.0])


def test_light_terms_follow_their_neighbours_while_there_is_room() -> None:
    """Terms 0 and 1 have parts; 2, 3 and 4 are linked to 0, and 3 most; 5 to nothing."""
    ends = np.array([2, 3, 4, 0, 0, 0])
    graph = Graph(np.array([0, 3, 3, 4, 5, 6, 6]), ends, np.array([1.0, 3, 2, 1, 3, 2]))
    part = np.array([0, 1, -1, -1, -1, -1], np.int32)
    loads = np.array([1.0, 1, 1, 1, 1, 1])
    follow_neighbours(graph, loads, np.array([0.5, 0.5]), np.zeros(2), part)
    assert part.tolist() == [0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize("name", HYPERGRAPH)
def test_topics_stay_together_beyond_the_core(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a core of a quarter of the terms the others still find their topic."""
    sample = topical_sample(60, 15, 6, 0.1)
    by_frequency = copies_of_objects(sample, plan_frequency(sample, 4, COST))
    monkeypatch.setattr(term_methods, "CORE_TERMS", 225)
    leaves = HYPERGRAPH[name](sample, 4, COST)
    assert copies_of_objects(sample, leaves) < 0.75 * by_frequency
    loads = loads_of_parts(sample, leaves)
    assert max(loads) <= 1.3 * min(loads)
