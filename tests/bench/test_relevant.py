"""The Skype experiments: the data is what it says, results are exact, only time differs."""

import numpy as np
import pytest

from bench.harness import Setup
from bench.papers.skype.ciq import build_ciq, find_ciq
from bench.papers.skype.costs import make_store
from bench.papers.skype.data import (
    KEYWORDS,
    LONG,
    POSTS,
    Corpus,
    SubscriptionShape,
    draw_rows,
    read_corpus,
)
from bench.papers.skype.index import Index, Indexing
from bench.papers.skype.parameters import by_time, tail
from bench.papers.skype.plans import RelevantCase, run_plan
from bench.papers.skype.prunings import OFF
from bench.papers.skype.store import WindowStore, stock_up
from bench.papers.skype.window import Sliding
from placewire.kinds.relevant.kernels.groups import ALL_PRUNINGS
from placewire.kinds.relevant.match import scan_relevant
from placewire.kinds.relevant.results import BufferRule
from placewire.kinds.relevant.rows import relevant_columns
from placewire.model.times import FAR_PAST_US
from placewire.objects.kernels.best_of_rows import SearchWindows
from placewire.plans.relevant.methods import RELEVANT_METHODS, RelevantSample

WINDOW, BLOCK, BLOCKS, ROWS = 1_500, 100, 6, 200


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    return Setup(None, tmp_path_factory.mktemp("relevant"))


@pytest.fixture(scope="module")
def corpus(setup: Setup) -> Corpus:
    return read_corpus(setup, WINDOW + BLOCK * BLOCKS)


@pytest.fixture(scope="module")
def store(setup: Setup, corpus: Corpus) -> WindowStore:
    return make_store(setup, corpus, WINDOW, BLOCK)


def held_seqs(sliding: Sliding) -> list[list[int]]:
    b = sliding.buffers.buffers
    ks = np.minimum(b.counts, sliding.rows.k)
    return [b.seq[at : at + k].tolist() for at, k in zip(b.offsets[:-1], ks, strict=True)]


def best_seqs(sliding: Sliding) -> list[list[int]]:
    """The best of the window as it is now, searched for."""
    rows = np.arange(sliding.rows.total)
    horizon = np.full(rows.size, sliding.horizon(sliding.at - 1))
    far_past = np.full(rows.size, FAR_PAST_US)
    after = (horizon, far_past) if sliding.rule.by_time else (far_past, horizon)
    wanted = SearchWindows(*after, np.full(rows.size, sliding.at))
    best = sliding.search.find_best(sliding.rows, rows, wanted, sliding.rows.k.astype(np.int64))
    return [
        best.seq[at : at + count].tolist()
        for at, count in zip(best.offsets[:-1], best.counts, strict=True)
    ]


def test_subscriptions_have_terms_of_an_object(corpus: Corpus) -> None:
    rows = draw_rows(corpus, ROWS)
    lengths = np.diff(rows.literal_offsets)
    assert lengths.min() >= 1
    assert lengths.max() == KEYWORDS
    assert np.isin(rows.literal_term, corpus.words.hashes).all()
    own = relevant_columns(rows)
    squares = np.add.reduceat(np.square(own.literal_idf), rows.literal_offsets[:-1])
    assert np.allclose(np.sqrt(squares), own.norm)
    assert np.diff(draw_rows(corpus, ROWS, SubscriptionShape(zipf=True)).literal_offsets).min() >= 1
    assert (
        np.diff(draw_rows(corpus, 50, SubscriptionShape(keywords=2)).literal_offsets) <= 2
    ).all()


def test_long_objects_have_the_terms_of_four(setup: Setup, corpus: Corpus) -> None:
    long = read_corpus(setup, 500, LONG)
    assert long.terms.size / long.total > 2.5 * corpus.terms.size / corpus.total


@pytest.mark.parametrize("name", ["cskyband", "skyband", "kmax"])
@pytest.mark.parametrize("together", [False, True])
def test_results_stay_exact(store: WindowStore, corpus: Corpus, name: str, together: bool) -> None:
    rows = draw_rows(corpus, ROWS)
    sliding = Sliding(store, rows, BufferRule(name), stock=stock_up(store, rows, 132))
    index = Index(sliding.rows, sliding.theta)
    assert held_seqs(sliding) == best_seqs(sliding)
    past = sliding.run(BLOCKS, index, together)
    assert past.found > 0
    assert held_seqs(sliding) == best_seqs(sliding)


def test_windows_by_time_and_copies_stay_exact(setup: Setup, corpus: Corpus) -> None:
    timed = by_time(tail(corpus, 100))._replace(name="timed")
    store = make_store(setup, timed, WINDOW - 100, BLOCK)
    span_us = int(timed.ts_us[WINDOW - 101] - timed.ts_us[0])
    sliding = Sliding(store, draw_rows(timed, 50), BufferRule(by_time=True), span_us)
    copies = sliding.multiply(np.arange(100) % 50)
    copies.run(BLOCKS, Index(copies.rows, copies.theta), together=True)
    assert held_seqs(copies) == best_seqs(copies)
    assert held_seqs(copies)[:50] == held_seqs(copies)[50:]


def test_prunings_groups_ciq_and_plans_find_the_same(store: WindowStore, corpus: Corpus) -> None:
    sliding = Sliding(store, draw_rows(corpus, ROWS), BufferRule())
    rows, theta = sliding.rows, sliding.theta
    block, _ = corpus.block(WINDOW, WINDOW + 3 * BLOCK)
    scanned = scan_relevant(block, rows, theta)
    expected = set(zip(scanned.object.tolist(), scanned.row.tolist(), strict=True))
    assert expected
    for bits in OFF.values():
        index = Index(rows, theta, Indexing(groups=5, prunings=ALL_PRUNINGS & ~bits))
        found = index.find(block, theta)
        assert set(zip(found.object.tolist(), found.row.tolist(), strict=True)) == expected
    main = index.main
    for depth in (1, 4):
        ciq = build_ciq(rows, theta, depth, 4)
        found = find_ciq(block, rows, ciq, theta, main.term_table, main.term_idf)
        pairs = set(zip(found.object.tolist(), found.row.tolist(), strict=True))
        assert len(pairs ^ expected) <= 2  # its weights have 32 bits
    sample = RelevantSample(rows, theta, block.lon, block.lat, block.term_offsets, block.terms)
    case = RelevantCase(rows, theta, sample, [block])
    for name in (*RELEVANT_METHODS, "shared"):
        outcome = run_plan(case, name, 4)
        assert outcome.pairs == len(expected), name
        assert outcome.tuples <= 4
    assert corpus.name == POSTS
