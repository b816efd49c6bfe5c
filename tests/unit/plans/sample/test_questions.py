"""Questions of all six kinds in a sample, and SSTD's equations on them, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from placewire.model.expression import COVER_ALL
from placewire.plans.boolean.subset import take_box, whole_sample
from placewire.plans.cost.sstd import (
    SSTD,
    CellStatistics,
    SstdCost,
    cover_keywords,
    gather_statistics,
)
from placewire.plans.sample.questions import Questions, add_questions
from placewire.plans.sample.sample import (
    ANY,
    CKQ,
    CRQ,
    CTQ,
    KINDS,
    LONGEST,
    SIDE,
    SKQ,
    SRQ,
    STQ,
    Sample,
    make_sample,
)
from plan_samples import TERMS, questions_of, sample_of
from routes import city, rows_of

HALF = SIDE // 2
WEST, EAST = (-170.0, -80.0, -10.0, -10.0), (10.0, -80.0, 170.0, -10.0)  # both in the south
BOTH = (-170.0, -80.0, 170.0, -10.0)
SOUTHWEST = (0, 0, HALF, HALF)
FAR = (HALF + 9, 9, HALF + 99, 99)  # plan cells in the east


@pytest.fixture
def mixed() -> Sample:
    """In 5 units of time 8 objects with terms 0 and 2 came in the west and 2 in the east."""
    here = (9, 9, 99, 99)
    objects = [(50, 50, [0, 2])] * 8 + [(HALF + 50, 50, [1])] * 2
    sample = sample_of(objects, [(here, [5]), (here, [5]), (here, [6]), (FAR, [7])])
    questions = questions_of(
        [
            (SRQ, WEST, [0], True, 1.0),
            (SRQ, WEST, [0, 1], True, 3.0),
            (SRQ, EAST, [1], True, 9.0),
            (SKQ, WEST, [1, 2], True, 1.0),
            (SKQ, EAST, [1], True, 1.0),
            (STQ, BOTH, [], True, 2.0),
            (CKQ, WEST, [3, 4], False, 10.0),
            (CKQ, EAST, [3], False, 10.0),
            (CTQ, WEST, [], True, 2.5),
        ],
        sample.lexicon,
    )
    return add_questions(sample, questions, 5.0, np.array([2.0, 4.0, 6.0, 100.0]))


def southwest(sample: Sample) -> CellStatistics:
    tree = gather_statistics(sample, capacity=1, most=5)
    assert tree.box[1].tolist() == list(SOUTHWEST)
    return tree.cells[1]


def distribution(cell: CellStatistics, kind: int) -> dict[int, float]:
    keywords, counts = cell.keywords_of(kind)
    return dict(zip(keywords.tolist(), (counts / counts.sum()).tolist(), strict=True))


def test_statistics_of_a_cell(mixed: Sample) -> None:
    tree = gather_statistics(mixed, capacity=1, most=5)
    assert tree.probabilities[1].tolist() == pytest.approx([2 / 3, 1 / 2, 1, 3 / 4, 1 / 2, 1])
    assert tree.probabilities[0].tolist() == [1.0] * KINDS
    assert tree.probabilities[2].tolist() == pytest.approx([1 / 3, 1 / 2, 1, 1 / 4, 1 / 2, 0])
    assert tree.probabilities[3].tolist() == [0.0] * KINDS
    cell = tree.cells[1]
    assert cell.rate == pytest.approx(8 / 5)
    assert distribution(cell, SRQ) == pytest.approx({0: 2 / 3, 1: 1 / 3})
    assert distribution(cell, SKQ) == pytest.approx({1: 1 / 2, 2: 1 / 2})
    assert cell.keywords_of(STQ)[0].size == cell.keywords_of(CTQ)[0].size == 0
    assert cell.chances[SRQ, :3].tolist() == [0.0, 0.5, 0.5]
    assert cell.chances[SKQ, 2] == cell.chances[CKQ, 1] == cell.chances[STQ, 0] == 1
    assert cell.durations.tolist() == pytest.approx([2, 1, 2, 4, 10, 2.5])
    # Classes of duration end at powers of two: 1 is in the one that ends at 2, 3 at 4.
    assert cell.lives[SRQ, :4].tolist() == [0, 1, 1, 0]
    assert cell.lived[SRQ, :4].tolist() == [0, 1, 3, 0]


def test_equation_1(mixed: Sample) -> None:
    """H_srq = 2/3 with one or two keywords, H_skq = 1/2 with two; no other kind asks."""
    present = np.zeros(TERMS, np.bool_)
    present[[0, 2]] = True
    covered = cover_keywords(southwest(mixed), present)
    assert covered[SRQ] == pytest.approx(1 / 2 * 2 / 3 + 1 / 2 * (2 / 3) ** 2)
    assert covered[SKQ] == pytest.approx((1 / 2) ** 2)
    assert covered[[STQ, CRQ, CKQ, CTQ]].tolist() == [1.0] * 4


# 13 questions: 3 SRQ, 2 SKQ, 1 STQ, 4 CRQ, 2 CKQ, 1 CTQ; 8 objects, 8/5 in a unit of time.
WORKLOADS = {
    SRQ: 3 / 13 * (2 / 3 * (5 / 9) * 8),
    SKQ: 2 / 13 * (1 / 2 * (1 / 4) * 8),
    STQ: 1 / 13 * (1 * 8),
    CRQ: 4 / 13 * (3 / 4 * (2 + 4 + 6) / 3 * 8 / 5),
    CKQ: 2 / 13 * (1 / 2 * 10 * 8 / 5),
    CTQ: 1 / 13 * (1 * 2.5 * 8 / 5),
}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_equation_2_of_each_kind(mixed: Sample, kind: int) -> None:
    alone = SstdCost(*(float(k == kind) for k in range(KINDS)))
    part = take_box(mixed, whole_sample(mixed), SOUTHWEST)
    assert alone.cost(mixed, part.objects, part.subscriptions) == pytest.approx(WORKLOADS[kind])


def test_equation_2_is_their_sum(mixed: Sample) -> None:
    part = take_box(mixed, whole_sample(mixed), SOUTHWEST)
    cost = SSTD.cost(mixed, part.objects, part.subscriptions)
    assert cost == pytest.approx(sum(WORKLOADS.values()))


def test_rows_of_the_sample_stay_as_they_were(mixed: Sample) -> None:
    assert mixed.subscriptions == 13
    traits = mixed.traits
    assert traits is not None
    assert traits.kept
    assert traits.kind.tolist() == [CRQ] * 4 + [SRQ] * 3 + [SKQ] * 2 + [STQ] + [CKQ] * 2 + [CTQ]
    assert mixed.cell[3].tolist() == list(FAR)
    # As posted: the rarest of all that are needed, each of which one is enough, or none.
    posts = np.split(mixed.posts, mixed.post_offsets[1:-1])
    assert [p.tolist() for p in posts[:5]] == [[5], [5], [6], [7], [0]]
    assert [p.tolist() for p in posts[5:]] == [[1], [1], [1], [1], [ANY], [3, 4], [3], [ANY]]
    keywords = np.split(traits.keywords, traits.keyword_offsets[1:-1])
    assert [p.tolist() for p in keywords[4:8]] == [[0], [0, 1], [1], [1, 2]]


def test_questions_may_bring_terms() -> None:
    (objects, _, _), rows = city(50, 30)
    sample = make_sample(*objects, rows)
    fresh = np.array([1, 2**40, 2**64 - 1], np.uint64)
    questions = questions_of([(SRQ, BOTH, [0, 1, 2], True, 1.0)], fresh)
    asked = add_questions(sample, questions, 1.0)
    assert set(asked.lexicon.tolist()) == {*sample.lexicon.tolist(), *fresh.tolist()}
    assert (np.diff(asked.lexicon.astype(object)) > 0).all()
    assert asked.lexicon[asked.terms].tolist() == sample.lexicon[sample.terms].tolist()
    old = asked.posts[: sample.posts.size]
    assert (old == ANY).tolist() == (sample.posts == ANY).tolist()
    assert asked.lexicon[old[old >= 0]].tolist() == sample.lexicon[sample.posts[old >= 0]].tolist()
    counts = np.bincount(asked.terms, minlength=asked.lexicon.size)
    assert asked.frequency.tolist() == counts.tolist()


def test_asking_twice_is_asking_for_both(mixed: Sample) -> None:
    nobody = questions_of([], mixed.lexicon)
    again = add_questions(mixed, nobody, 5.0)
    one, other = again.traits, mixed.traits
    assert one is not None
    assert other is not None
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert np.array_equal(again.posts, mixed.posts)


def test_nothing_is_kept_for_those_who_wait() -> None:
    sample = sample_of([(1, 1, [0])], [((0, 0, 9, 9), [0])])
    for kind in range(KINDS):
        asked = add_questions(sample, questions_of([(kind, BOTH, [0], True, 1)], sample.lexicon), 1)
        assert asked.traits is not None
        assert asked.traits.kept == (kind not in (CRQ, CKQ))


def test_across_the_antimeridian() -> None:
    sample = sample_of([], [])
    box = (170.0, -10.0, -170.0, 10.0)
    asked = add_questions(sample, questions_of([(STQ, box, [], True, 1.0)], sample.lexicon), 1.0)
    first, _, last, _ = asked.cell[0].tolist()
    assert first > last
    assert take_box(asked, whole_sample(asked), (0, 0, HALF, SIDE)).subscriptions.size == 1
    assert take_box(asked, whole_sample(asked), (HALF - 9, 0, HALF, SIDE)).subscriptions.size == 0


def test_compiled_rows_are_questions() -> None:
    """`all` needs every word, `any` one of them; of a mixture the words that must be there."""
    rows = rows_of(
        [
            {"where": "w0 AND w1 AND w2"},
            {"where": "w0 OR w1"},
            {"where": "w3 AND (w0 OR w1)"},
            {"where": "NOT w0"},
            {"region": {"box": [170, -10, -170, 10]}},
        ]
    )
    questions = Questions(
        np.full(5, SRQ, np.int8),
        rows.box,
        np.concatenate([[0], np.cumsum(rows.literal_cover != 0)])[rows.literal_offsets],
        rows.literal_term[np.flatnonzero(rows.literal_cover)],
        rows.cover_mode != COVER_ALL,
        np.ones(5),
    )
    assert np.diff(questions.term_offsets).tolist() == [3, 2, 1, 0, 0]
    sample = add_questions(sample_of([], []), questions, 1.0)
    assert sample.traits is not None
    assert sample.traits.length.tolist() == [3, 1, 1, 0, 0]
    assert sample.cell[4, 0] > sample.cell[4, 2]


def test_long_queries_are_as_long_as_can_be_counted() -> None:
    sample = sample_of([], [])
    many = questions_of([(SRQ, BOTH, list(range(TERMS)), True, 1.0)], sample.lexicon)
    traits = add_questions(sample, many, 1.0).traits
    assert traits is not None
    assert traits.length.tolist() == [LONGEST]
