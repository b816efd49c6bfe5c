"""Draw the Skype paper's workload: a window of objects, a stream after it, and subscriptions.

A subscription has the place of a random object and 1 to 5 of its terms at random; alpha is uniform,
k is 20, and proximity falls to 0 at the largest distance in the data (the paper's section 8.1), but
for a few objects at the ends of the world.

`posts` are the posts of the United States; when more are needed than there are, a repeat has the
text of one post and the place of another, moved by up to 1 km. `long` are objects of four posts'
texts each, as long as the reviews of the paper's set YELP. `venues` are as many as its set GN.
Without real data the texts are made up. The idf of terms is that of the set itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.columns import KEY
from bench.harness import SEED, Setup
from bench.papers.dkm_sks.kernels import terms_drawn
from bench.workload import KM_PER_DEG, generated
from placewire.kernels.blocks import codes_to_order
from placewire.kernels.jit import read_only
from placewire.kernels.space.cells import points_to_codes
from placewire.kernels.space.regions import distance_m
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.kinds.relevant.rows import RelevantRows
from placewire.model.expression import COVER_ALL
from placewire.model.kinds import RELEVANT
from placewire.model.regions import EVERYWHERE, WORLD
from placewire.model.subscriptions import (
    NEVER_US,
    SubscriptionRows,
    lengths_to_offsets,
    take_slices,
)
from placewire.objects.index import Rows
from placewire.objects.kernels.index import sort_lists, terms_to_norms
from placewire.text.analyzer import Analyzer
from placewire.text.words import Lexicon, Words, words_of_terms

POSTS, LONG, VENUES = "posts", "long", "venues"
K, KEYWORDS = 20, 5
MADE_UP = 150_000  # objects that are made up before they are repeated
TEXTS_A_LONG = 4
STEP_US = 1_000_000


class Corpus(NamedTuple):
    """Objects in the order of the stream: places, times, terms as numbers of `words`, and norms.

    A row's terms ascend by hash, as blocks have them.
    """

    name: str
    words: Words
    lexicon: Lexicon
    idf: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    ts_us: np.ndarray
    term_offsets: np.ndarray
    terms: np.ndarray
    norms: np.ndarray
    distinct: int  # the first objects are no repeats
    reach_m: float

    @property
    def total(self) -> int:
        return int(self.lon.size)

    def block(self, first: int, last: int) -> tuple[RelevanceBlock, np.ndarray]:
        """Objects as workers match them, in cell order, and the seq of each."""
        lon, lat = self.lon[first:last], self.lat[first:last]
        codes = points_to_codes(lon, lat)
        order = codes_to_order(codes)
        seqs = order + first
        offsets, at = take_slices(self.term_offsets, seqs)
        block = RelevanceBlock(
            codes[order],
            lon[order],
            lat[order],
            self.ts_us[seqs],
            offsets,
            self.words.hashes[self.terms[at]],
            self.norms[seqs],
        )
        return block, seqs

    def rows(self, first: int, last: int) -> Rows:
        """Objects as the store retains them."""
        n = last - first
        edges = self.term_offsets[first : last + 1]
        none, nothing = np.zeros(1, np.int64), np.empty(0, np.uint8)
        return Rows(
            np.arange(first, last),
            self.ts_us[first:last],
            self.lon[first:last],
            self.lat[first:last],
            points_to_codes(self.lon[first:last], self.lat[first:last]),
            np.zeros(n, np.int32),
            np.zeros(n + 1, np.int64),
            nothing,
            none,
            nothing,
            none,
            nothing,
            edges - edges[0],
            self.terms[edges[0] : edges[-1]],
        )


class RawTexts(NamedTuple):
    """Places and texts, before they are analysed."""

    lon: np.ndarray
    lat: np.ndarray
    text: pa.Array


def read_texts(setup: Setup, name: str) -> RawTexts:
    """The rows of a set, or made-up ones."""
    if setup.data is None:
        table = generated(MADE_UP, 0, SEED).objects
    else:
        stem = "venues_us" if name == VENUES else "posts_us"
        table = pq.read_table(setup.data / f"{stem}.parquet", columns=["lon", "lat", "text"])
    text = table["text"].combine_chunks()
    if isinstance(text, pa.ChunkedArray):
        text = text.chunk(0)
    return RawTexts(table["lon"].to_numpy(), table["lat"].to_numpy(), text.cast(pa.large_string()))


def read_corpus(setup: Setup, total: int, name: str = POSTS) -> Corpus:
    """So many objects of a set in a random order, repeated if need be."""
    rng = np.random.default_rng([SEED, 11])
    texts = read_texts(setup, name)
    _, edges, raw = texts.text.buffers()
    bounds = np.frombuffer(edges, np.int64)[texts.text.offset :][: len(texts.text) + 1]
    analyzer = Analyzer(*KEY)
    data = np.frombuffer(raw, np.uint8)
    found = analyzer.analyse(data, bounds[:-1], bounds[1:])
    words, numbers = words_of_terms(analyzer, found, data, bounds[:-1], bounds[1:])
    told = np.flatnonzero(np.diff(found.offsets))
    row = repeat_rows(rng, told, total)
    place = row.copy()
    again = np.arange(total) >= told.size
    place[again] = rng.choice(told, int(again.sum()))
    moved = rng.uniform(-1, 1, (2, total)) * again / KM_PER_DEG
    lat = np.clip(texts.lat[place] + moved[1], -90, 90)
    scale = np.maximum(np.cos(np.radians(lat)), 0.01)
    lon = np.clip(texts.lon[place] + moved[0] / scale, -180, 180)
    offsets, at = take_slices(found.offsets, row)
    terms = numbers[at]
    if name == LONG:
        more = [repeat_rows(rng, told, total) for _ in range(TEXTS_A_LONG - 1)]
        offsets, terms = join_terms([row, *more], found.offsets, numbers, words)
    count = np.bincount(terms, minlength=words.hashes.size)
    lexicon = make_lexicon(words, total, count)
    idf = lexicon.idf_of(words)
    ranked = terms.copy()
    sort_lists(offsets, ranked)
    return Corpus(
        name,
        words,
        lexicon,
        idf,
        np.round(lon, 6),
        np.round(lat, 6),
        STEP_US * np.arange(1, total + 1),
        offsets,
        terms,
        terms_to_norms(read_only(offsets), read_only(ranked), idf),
        int(min(told.size, total)),
        farthest_m(lon, lat),
    )


def repeat_rows(rng: np.random.Generator, rows: np.ndarray, total: int) -> np.ndarray:
    """So many rows: whole random orders of them, the last one cut."""
    rounds = -(-total // rows.size)
    return np.concatenate([rng.permutation(rows) for _ in range(rounds)])[:total]


def join_terms(
    rows: list[np.ndarray], offsets: np.ndarray, numbers: np.ndarray, words: Words
) -> tuple[np.ndarray, np.ndarray]:
    """The terms of several rows as those of one object each: CSR, ascending by hash."""
    by_hash = np.argsort(words.hashes)
    rank = np.empty(by_hash.size, np.int64)
    rank[by_hash] = np.arange(by_hash.size)
    keys = []
    for part in rows:
        own, at = take_slices(offsets, part)
        keys.append(np.repeat(np.arange(part.size), np.diff(own)) * rank.size + rank[numbers[at]])
    owner, term = np.divmod(np.unique(np.concatenate(keys)), rank.size)
    lengths = np.bincount(owner, minlength=rows[0].size)
    return lengths_to_offsets(lengths), by_hash[term].astype(np.uint32)


def make_lexicon(words: Words, documents: int, count: np.ndarray) -> Lexicon:
    """In how many objects each word is."""
    raw, edges = words.raw.tobytes(), words.offsets.tolist()
    lexicon = Lexicon(documents, {})
    for number, frequency in enumerate(count.tolist()):
        lexicon.df[raw[edges[number] : edges[number + 1]]] = frequency
    return lexicon


def farthest_m(lon: np.ndarray, lat: np.ndarray) -> float:
    """Across the box of all objects but the outermost hundredth each way."""
    (west, east), (south, north) = (np.percentile(axis, (0.5, 99.5)) for axis in (lon, lat))
    return float(distance_m(west, south, east, north))


class SubscriptionShape(NamedTuple):
    """How subscriptions are drawn: k, how many keywords (0: 1 to 5), and whether by Zipf's law."""

    k: int = K
    keywords: int = 0
    zipf: bool = False


USUAL = SubscriptionShape()


def draw_rows(corpus: Corpus, n: int, asking: SubscriptionShape = USUAL) -> SubscriptionRows:
    """n subscriptions of the corpus's own objects."""
    rng = np.random.default_rng([SEED, 12])
    picked = rng.integers(0, corpus.total, n)
    starts = corpus.term_offsets[picked]
    lengths = corpus.term_offsets[picked + 1] - starts
    wanted = rng.integers(1, KEYWORDS + 1, n)
    if asking.keywords:
        wanted[:] = asking.keywords
    if asking.zipf:
        numbers, offsets = draw_zipf(rng, corpus, wanted)
    else:
        offsets = lengths_to_offsets(np.minimum(wanted, lengths))
        at = terms_drawn(starts, lengths, offsets, rng.random(int(offsets[-1])))
        numbers = corpus.terms[at].astype(np.int64)
    # By number, that is in the order of code points.
    owner = np.repeat(np.arange(n), np.diff(offsets))
    numbers = numbers[np.lexsort((numbers, owner))]
    idf = corpus.idf[numbers]
    norm = np.sqrt(np.add.reduceat(idf * idf, offsets[:-1]))
    reach_m = np.full(n, corpus.reach_m)
    points = corpus.lon[picked], corpus.lat[picked]
    own = RelevantRows(np.column_stack([*points, rng.random(n), reach_m, norm]), idf)
    return SubscriptionRows(
        kind=np.full(n, RELEVANT, np.uint8),
        k=np.full(n, asking.k, np.uint16),
        begin_seq=np.full(n, -1, np.int64),
        expires_us=np.full(n, NEVER_US),
        id_hash=rng.integers(0, 1 << 63, n).astype(np.uint64),
        id_offsets=np.arange(n + 1, dtype=np.int64) * 8,
        id_bytes=np.arange(n, dtype=np.int64).view(np.uint8),
        region_kind=np.full(n, EVERYWHERE, np.uint8),
        box=np.broadcast_to(np.array(WORLD), (n, 4)),
        shape_offsets=np.zeros(n + 1, np.int64),
        shape=np.empty(0),
        cover_mode=np.full(n, COVER_ALL, np.uint8),
        literal_offsets=offsets,
        literal_term=corpus.words.hashes[numbers],
        literal_true=np.zeros(numbers.size, np.int16),
        literal_false=np.zeros(numbers.size, np.int16),
        literal_cover=np.ones(numbers.size, np.uint8),
        own={RELEVANT: own},
    )


def draw_zipf(
    rng: np.random.Generator, corpus: Corpus, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct terms of each row, the r-th most frequent with a chance of 1 / r."""
    by_count = np.argsort(-np.bincount(corpus.terms, minlength=corpus.idf.size), kind="stable")
    weight = np.cumsum(1.0 / np.arange(1, by_count.size + 1))
    owner = np.repeat(np.arange(wanted.size), wanted)
    rank = np.searchsorted(weight, rng.random(owner.size) * weight[-1])
    owner, rank = np.divmod(np.unique(owner * by_count.size + rank), by_count.size)
    return by_count[rank], lengths_to_offsets(np.bincount(owner, minlength=wanted.size))
