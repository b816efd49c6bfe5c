"""Plans, subscriptions and objects for tests of routes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from placewire.ingest.changes import ChangesBuilder, finish_rows
from placewire.ingest.decode import decode_lines
from placewire.model.events import SubscribeEvent
from placewire.model.subscriptions import SubscriptionRows
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.leaves import (
    BY_CELL,
    BY_LEAF,
    BY_WORKER,
    NO_SPLIT,
    NOTHING,
    Leaves,
    TextSplit,
    make_leaves,
)
from placewire.plans.sample.sample import SIDE
from placewire.text.analyzer import Analyzer

ANALYZER = Analyzer(3, 4)
TS = "2026-03-01T12:00:00Z"
WORDS = [f"w{i}" for i in range(8)]


def single_leaf() -> Leaves:
    """The null plan: one leaf, one worker."""
    return make_leaves("single", 1, NOTHING, [(0, 0, SIDE, SIDE)], [NO_SPLIT], [0])


def rows_of(asks: list[dict]) -> SubscriptionRows:
    builder = ChangesBuilder(ANALYZER)
    for number, ask in enumerate(asks):
        event = SubscribeEvent(id=f"s{number}", ts=TS, kind="boolean", **ask)
        builder.subscribe(number, 0, number, event)
    return finish_rows(builder.finish(), ANALYZER)[0]


def objects_of(placed: list[tuple[float, float, str]]) -> tuple[Objects, np.ndarray, np.ndarray]:
    """Objects in code order, with their coordinates."""
    lines = b"".join(
        b'{"type":"object","id":"o","ts":"%b","lon":%r,"lat":%r,"text":"%b"}\n'
        % (TS.encode(), lon, lat, text.encode())
        for lon, lat, text in [(float(a), float(b), t) for a, b, t in placed]
    ).replace(b"'", b"")
    block = decode_lines(np.frombuffer(lines, np.uint8), 0, ANALYZER, None, 1 << 60)
    assert block.objects.total == len(placed)
    o = block.objects
    return Objects(block.codes, o.term_offsets, o.terms), o.lon, o.lat


places = st.tuples(
    st.one_of(st.sampled_from([-180.0, 180.0, 0.0, 10.0, 10.1]), st.floats(-180, 180)),
    st.one_of(st.sampled_from([-90.0, 90.0, 0.0, 20.0, 20.1]), st.floats(-90, 90)),
)
placed = st.lists(
    st.tuples(places, st.lists(st.sampled_from(WORDS), max_size=6)).map(
        lambda p: (p[0][0], p[0][1], " ".join(p[1]))
    ),
    min_size=5,
    max_size=30,
)


@st.composite
def asks(draw):
    (west, south), (east, north) = draw(places), draw(places)
    region = {"box": [west, min(south, north), east, max(south, north)]}
    some = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
    either = st.sampled_from([" AND ".join(some), " OR ".join(some)])
    where = draw(st.one_of(either, either, either, st.just(f"NOT {some[0]}")))
    both = {"region": region, "where": where}
    return draw(
        st.sampled_from([{"where": where}, {"where": where}, both, both, both, {"region": region}])
    )


@st.composite
def tilings(draw):
    """Leaves of any tiling, some split by text, with any summary."""
    boxes = [(0, 0, SIDE, SIDE)]
    for _ in range(draw(st.integers(0, 6))):
        k = draw(st.integers(0, len(boxes) - 1))
        axis = draw(st.integers(0, 1))
        low, high = boxes[k][axis], boxes[k][axis + 2]
        if high - low < 2:
            continue
        at = draw(st.one_of(st.integers(low + 1, high - 1), st.just((low + high) // 2)))
        first, second = list(boxes[k]), list(boxes[k])
        first[axis + 2] = second[axis] = at
        boxes[k : k + 1] = [tuple(first), tuple(second)]
    workers = draw(st.integers(1, 7))
    terms = ANALYZER.hash_terms(WORDS[:6])
    splits, owners = [], []
    for _ in boxes:
        parts = draw(st.integers(1, 3))
        listed = np.array([draw(st.integers(0, parts - 1)) for _ in terms], np.int32)
        splits.append(NO_SPLIT if parts == 1 else TextSplit(parts, terms, listed))
        owners += [draw(st.integers(0, workers - 1)) for _ in range(parts)]
    summary = draw(st.sampled_from([BY_CELL, BY_LEAF, BY_WORKER, NOTHING]))
    return make_leaves("any", workers, summary, boxes, splits, owners)


def city(objects: int, subscriptions: int):
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(WORDS, 3)) for _ in range(objects)]
    spots = rng.normal(10, 3, (objects, 2))
    placed = [(float(x), float(y), t) for (x, y), t in zip(spots, texts, strict=True)]
    corners = rng.normal(10, 3, (subscriptions, 2))
    asked = [
        {"region": {"box": [x, y, x + 0.5, y + 0.5]}, "where": " OR ".join(rng.choice(WORDS, 2))}
        for x, y in corners.tolist()
    ]
    return objects_of(placed), rows_of(asked)
