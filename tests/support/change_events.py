"""Random and plain changes for the tests of the scanner, and the two ways to decode them."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import strategies as st

from placewire.ingest import decode
from placewire.ingest.changes import plain_changes
from placewire.ingest.decode import DecodedBlock, decode_lines
from placewire.kernels.json.changes import scan_changes
from placewire.kernels.json.objects import find_lines
from placewire.model.subscriptions import rows_to_arrays
from placewire.text.analyzer import Analyzer

ANALYZER = Analyzer(1, 2)
TS = "2026-03-01T12:00:00Z"
BASE = {"type": "subscribe", "id": "s1", "ts": TS, "kind": "boolean"}
UNSUBSCRIBE = {"type": "unsubscribe", "id": "s1", "ts": TS}
BOX = {"box": [-1.5, -2, 3.25, 4]}
NEAREST = {
    **{"type": "subscribe", "id": "s1", "ts": TS, "kind": "nearest"},
    **{"lon": -73.99, "lat": 40.5, "keywords": ["tea", "milk"], "k": 3},
}
RELEVANT = {
    **{"type": "subscribe", "id": "s1", "ts": TS, "kind": "relevant"},
    **{"lon": -73.99, "lat": 40.5, "keywords": ["tea", "milk"], "k": 3, "alpha": 0.25},
}
CIRCLE = {"circle": {"lon": 179.9, "lat": -45.5, "radius_m": 50_000}}


def block_of(lines: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(line + b"\n" for line in lines), np.uint8)


def slow_lines(lines: list[bytes]) -> list[int]:
    """The numbers of the lines that the scanner leaves alone."""
    raw = block_of(lines)
    numbers = np.arange(len(lines), dtype=np.uint32)
    key = ANALYZER.k0, ANALYZER.k1
    return scan_changes(raw, find_lines(raw), numbers, *key, None, 1e6)[1].tolist()


def decode_usually(raw: np.ndarray, *choices: object) -> DecodedBlock:
    """Decode as replays do; `choices` are settings and a lexicon."""
    return decode_lines(raw, 100, ANALYZER, None, 1 << 50, *choices)


def decode_strictly(raw: np.ndarray, *choices: object) -> DecodedBlock:
    """Decode with the strict reader alone."""

    def scan_nothing(raw, offsets, lines, *rest):  # type: ignore[no-untyped-def]
        return plain_changes(raw, offsets, lines[:0], *rest)[0], lines

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "plain_changes", scan_nothing)
        return decode_usually(raw, *choices)


def assert_same(one: DecodedBlock, other: DecodedBlock) -> None:
    assert one.dead == other.dead
    columns, others = (
        rows_to_arrays(block.rows) | block.changes._asdict() for block in (one, other)
    )
    assert columns.keys() == others.keys()
    for name, array in columns.items():
        expected = others[name]
        assert array.dtype == expected.dtype, name
        assert array.shape == expected.shape, name
        assert array.tobytes() == expected.tobytes(), name  # -0.0 is not 0.0


def assert_read(line: bytes, slow: bool) -> None:
    """The scanner leaves the line alone if it is slow; it is decoded as the strict reader does."""
    assert slow_lines([line]) == ([0] if slow else [])
    raw = block_of([line])
    assert_same(decode_usually(raw), decode_strictly(raw))


def dump(event: dict, rng: random.Random) -> bytes:
    """JSON with the keys in any order and any white space."""
    items = list(event.items())
    rng.shuffle(items)
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])
    return json.dumps(dict(items), separators=separators, ensure_ascii=False).encode()


words = st.sampled_from(
    ["tea", "coffee", "a_1", "zürich", "AND", "OR", "NOT", "Tea", "x" * 40, "("]
)
wheres = st.one_of(
    st.lists(words, min_size=0, max_size=5).map(" ".join),
    st.lists(words, min_size=1, max_size=5).map(" AND ".join),
    st.lists(words, min_size=1, max_size=5).map(" OR ".join),
    st.just({"all": ["tea", {"any": ["milk", "lemon"]}]}),
    st.just("tea  AND milk"),
    st.just(3),
)
degrees = st.one_of(
    st.floats(-181, 181),
    st.integers(-200, 200),
    st.sampled_from([1e-7, -0.0, 180.0, 90, "3", None]),
)
regions = st.one_of(
    st.lists(degrees, min_size=3, max_size=5).map(lambda box: {"box": box}),
    st.just(BOX),
    st.fixed_dictionaries(
        {"lon": degrees, "lat": degrees, "radius_m": st.sampled_from([0, -1, 1e-3, 5e6, 3, "1"])}
    ).map(lambda circle: {"circle": circle}),
    st.just(CIRCLE),
    st.just({"polygon": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}),
    st.just({**BOX, **CIRCLE}),
    st.just({}),
)
stamps = st.sampled_from([TS, "2026-03-01T13:00:00+01:00", "2026-02-30T12:00:00Z", "now", 5])
subscribes = st.fixed_dictionaries(
    {
        "type": st.just("subscribe"),
        "id": st.sampled_from(["s1", "s2", "", "ü" * 256, "ü" * 257, 'a"b', "\n"]),
        "ts": stamps,
        "kind": st.sampled_from(["boolean", "boolean", "boolean", "nearest", "bool"]),
    },
    optional={"region": regions, "where": wheres, "expires": stamps, "k": st.just(1)},
)
keywords = st.one_of(
    st.lists(words, min_size=0, max_size=4),
    st.lists(st.sampled_from(["tea", "milk", "a_1", "7"]), min_size=1, max_size=70),
    st.sampled_from(
        ["tea", ["tea milk"], ["tea", 1], ["tea", None], [[]], ["tea,"], ["te\na"], {}]
    ),
)
ks = st.sampled_from([1, 3, 10, 1000, 1001, 0, -1, 3.0, 1e2, "3", True, None, 10**20])
metres = st.sampled_from([1, 5e3, 0.5, 3e7, 10**18, 10**400, 0, -0.0, -1, 1e-9, "1", None])
nearests = st.fixed_dictionaries(
    {
        "type": st.just("subscribe"),
        "id": st.sampled_from(["s1", "s2", "", 'a"b']),
        "ts": stamps,
        "kind": st.sampled_from(["nearest"] * 6 + ["boolean", "neares"]),
        "lon": st.one_of(st.just(12.5), degrees),
        "lat": st.one_of(st.just(-0.0), degrees),
        "keywords": st.one_of(st.just(["tea", "milk", "tea"]), keywords),
        "k": ks,
    },
    optional={
        "mode": st.sampled_from(["any", "all", "any", "all", "some", "", "ALL", 1]),
        "within_m": metres,
        "expires": stamps,
        "region": st.just(BOX),
        "where": st.just("tea"),
        "data": st.just(1),
    },
)
relevants = st.fixed_dictionaries(
    {
        "type": st.just("subscribe"),
        "id": st.sampled_from(["s1", "s2", "", 'a"b']),
        "ts": stamps,
        "kind": st.sampled_from(["relevant"] * 6 + ["nearest", "relevan", "Relevant"]),
        "lon": st.one_of(st.just(12.5), degrees),
        "lat": st.one_of(st.just(-0.0), degrees),
        "keywords": st.one_of(st.just(["tea", "milk", "tea", "te", "7", "te_"]), keywords),
        "k": ks,
        "alpha": st.one_of(
            st.sampled_from([0, 1, 1.0, 0.0, -0.0, 0.5, 1e-7, 1.5, -1, 2, "1", True, None]),
            st.floats(-0.1, 1.1),
        ),
    },
    optional={
        "reach_m": st.one_of(metres, st.floats(0, 1e7)),
        "expires": stamps,
        "mode": st.just("any"),
        "within_m": st.just(1),
        "region": st.just(BOX),
        "where": st.just("tea"),
        "data": st.just(1),
        "window": st.just("PT1H"),
    },
)


def nearly(plain: dict, events: st.SearchStrategy, *optional: str) -> st.SearchStrategy:
    """A plain event with some fields of a drawn one, or without one of its own.

    Few drawn events have everything right by chance.
    """
    names = st.lists(st.sampled_from([*plain, *optional]), max_size=3)
    changed = st.builds(
        lambda drawn, names: {**plain, **{n: drawn[n] for n in names if n in drawn}}, events, names
    )
    without_one = st.sampled_from([*plain]).map(
        lambda name: {key: value for key, value in plain.items() if key != name}
    )
    return st.one_of(changed, changed, without_one)


nearly_nearest = nearly(NEAREST, nearests, "mode", "within_m", "expires", "data")
nearly_relevant = nearly(RELEVANT, relevants, "reach_m", "expires", "mode", "within_m", "region")
unsubscribes = st.fixed_dictionaries(
    {"type": st.just("unsubscribe"), "id": st.sampled_from(["s1", "s2"]), "ts": stamps},
    optional={"kind": st.just("boolean")},
)
