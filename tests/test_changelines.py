"""Changes read by the scanner are what the strict reader makes of them; what it leaves is slow."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.engine import decode
from placewire.engine.changecolumns import plain_changes
from placewire.engine.decode import DecodedBlock, decode_lines
from placewire.kernels.changelines import scan_changes
from placewire.kernels.jsonlines import find_lines
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
CIRCLE = {"circle": {"lon": 179.9, "lat": -45.5, "radius_m": 50_000}}


def block_of(lines: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(line + b"\n" for line in lines), np.uint8)


def slow_lines(lines: list[bytes]) -> list[int]:
    """The numbers of the lines that the scanner leaves alone."""
    raw = block_of(lines)
    numbers = np.arange(len(lines), dtype=np.uint32)
    return scan_changes(raw, find_lines(raw), numbers, ANALYZER.k0, ANALYZER.k1)[1].tolist()


def decode_strictly(raw: np.ndarray) -> DecodedBlock:
    """Decode with the strict reader alone."""

    def scan_nothing(raw, offsets, lines, first_seq, analyzer):  # type: ignore[no-untyped-def]
        return plain_changes(raw, offsets, lines[:0], first_seq, analyzer)[0], lines

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "plain_changes", scan_nothing)
        return decode_lines(raw, 100, ANALYZER, None, 1 << 50)


def assert_same(one: DecodedBlock, other: DecodedBlock) -> None:
    assert one.dead == other.dead
    for part in ("rows", "changes"):
        for name, array in getattr(one, part)._asdict().items():
            expected = getattr(getattr(other, part), name)
            assert array.dtype == expected.dtype, name
            assert array.shape == expected.shape, name
            assert array.tobytes() == expected.tobytes(), name  # -0.0 is not 0.0


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
nearests = st.fixed_dictionaries(
    {
        "type": st.just("subscribe"),
        "id": st.sampled_from(["s1", "s2", "", 'a"b']),
        "ts": stamps,
        "kind": st.sampled_from(["nearest"] * 6 + ["boolean", "neares"]),
        "lon": st.one_of(st.just(12.5), degrees),
        "lat": st.one_of(st.just(-0.0), degrees),
        "keywords": st.one_of(st.just(["tea", "milk", "tea"]), keywords),
        "k": st.sampled_from([1, 3, 10, 1000, 1001, 0, -1, 3.0, 1e2, "3", True, None, 10**20]),
    },
    optional={
        "mode": st.sampled_from(["any", "all", "any", "all", "some", "", "ALL", 1]),
        "within_m": st.sampled_from([1, 5e3, 0.5, 3e7, 10**18, 0, -0.0, -1, 1e-9, "1", None]),
        "expires": stamps,
        "region": st.just(BOX),
        "where": st.just("tea"),
        "data": st.just(1),
    },
)
# Few events have everything right by chance: most differ from a plain one in one field.
nearly_plain = st.builds(
    lambda drawn, names: {**NEAREST, **{n: drawn[n] for n in names if n in drawn}},
    nearests,
    st.lists(st.sampled_from([*NEAREST, "mode", "within_m", "expires", "data"]), max_size=3),
)
without_one = st.sampled_from([*NEAREST]).map(
    lambda name: {key: value for key, value in NEAREST.items() if key != name}
)
unsubscribes = st.fixed_dictionaries(
    {"type": st.just("unsubscribe"), "id": st.sampled_from(["s1", "s2"]), "ts": stamps},
    optional={"kind": st.just("boolean")},
)


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(subscribes, nearests, nearly_plain, nearly_plain, without_one, unsubscribes),
        max_size=8,
    ),
    st.integers(0, 99),
)
def test_equals_the_strict_reader(events, seed):
    rng = random.Random(seed)
    raw = block_of([dump(event, rng) for event in events])
    assert_same(decode_lines(raw, 100, ANALYZER, None, 1 << 50), decode_strictly(raw))


@settings(deadline=None)
@given(st.data())
def test_damaged_lines_equal_the_strict_reader(data):
    boolean = {**BASE, "region": BOX, "where": "tea OR milk"}
    nearest = {**NEAREST, "mode": "all", "within_m": 12.5, "expires": TS}
    line = bytearray(json.dumps(data.draw(st.sampled_from([boolean, nearest]))).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(line) - 1))
        if data.draw(st.booleans()):
            line[at] = data.draw(st.sampled_from(b'{}[]",: \t\\019.-eEaZ\xff\x00'))
        else:
            del line[at]
    raw = block_of([bytes(line), bytes(line[: len(line) // 2])])
    assert_same(decode_lines(raw, 100, ANALYZER, None, 1 << 50), decode_strictly(raw))


@pytest.mark.parametrize(
    "event",
    [
        UNSUBSCRIBE,
        {**BASE, "region": BOX},
        {**BASE, "region": CIRCLE, "where": "tea"},
        {**BASE, "where": "tea AND milk AND tea", "expires": "2026-03-01T13:00:00Z"},
        {**BASE, "region": BOX, "where": "tea milk"},
        {**BASE, "region": BOX, "where": " OR ".join(f"w{i}" for i in range(256))},
        NEAREST,
        {**NEAREST, "k": 1},
        {**NEAREST, "k": 1000, "lon": -180, "lat": 90},
        {**NEAREST, "mode": "any", "within_m": 1, "expires": "2026-03-01T13:00:00Z"},
        {**NEAREST, "mode": "all", "within_m": 0.001, "keywords": ["tea"]},
        {**NEAREST, "keywords": [f"w{i}" for i in range(64)]},
        dict(reversed(NEAREST.items())),
    ],
)
def test_plain_changes_are_not_slow(event):
    assert slow_lines([json.dumps(event).encode()]) == []


@pytest.mark.parametrize(
    "event",
    [
        {**BASE},
        {**BASE, "region": BOX, "data": 1},
        {**BASE, "where": "tea AND milk OR lemon"},
        {**BASE, "where": "NOT tea"},
        {**BASE, "where": "Tea"},
        {**BASE, "where": "tea "},
        {**BASE, "where": " OR ".join(f"w{i}" for i in range(257))},
        {**BASE, "region": {"box": [1, 2, 3, 1]}},
        {**UNSUBSCRIBE, "kind": "boolean"},
        {"type": "query", "id": "s1", "ts": TS, "kind": "boolean"},
        {**NEAREST, "kind": "boolean"},
        {**NEAREST, "kind": "boolean", "where": "tea"},
        {**NEAREST, "where": "tea"},
        {**NEAREST, "region": BOX},
        {**NEAREST, "data": 1},
        {**NEAREST, "k": 0},
        {**NEAREST, "k": 1001},
        {**NEAREST, "k": 3.0},
        {**NEAREST, "k": "3"},
        {**NEAREST, "mode": "some"},
        {**NEAREST, "lon": 181},
        {**NEAREST, "lat": -90.5},
        {**NEAREST, "within_m": 0},
        {**NEAREST, "within_m": 1e300},
        {**NEAREST, "keywords": []},
        {**NEAREST, "keywords": ["Tea"]},
        {**NEAREST, "keywords": ["tea milk"]},
        {**NEAREST, "keywords": ["tea", ""]},
        {**NEAREST, "keywords": [f"w{i}" for i in range(65)]},
        {**UNSUBSCRIBE, "k": 3},
    ],
)
def test_others_are_slow(event):
    assert slow_lines([json.dumps(event).encode()]) == [0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"k": 3', b'"k": 03'),
        (b'"k": 3', b'"k": +3'),
        (b'"k": 3', b'"k": -3'),
        (b'"k": 3', b'"k": 3e0'),
        (b'"k": 3', b'"k": 3, "k": 3'),
        (b'"k": 3', b'"k":'),
        (b'"k": 3', b'"k": 3,'),
        (b'"k": 3', b'"k": 99999999999999999999999'),
        (b'"tea"', b'"te\\u0061"'),
        (b'"tea"', b'"tea",'),
        (b'"tea"', b"tea"),
        (b'"tea", "milk"', b'"tea" "milk"'),
        (b'"tea", "milk"]', b'"tea", "milk"'),
        (b'"lon": -73.99', b'"lon": -73.99e0'),
        (b'"lon": -73.99', b'"lon": .5'),
        (b'"lon": -73.99', b'"lon": NaN'),
        (b'"lat": 40.5', b'"lat": 40.5, "lat": 40.5'),
        (b'"nearest"', b'"nearest", "mode": "any", "mode": "any"'),
        (b'"nearest"', b'"nearest", "within_m": 1, "within_m": 1'),
        (b'"nearest"', b'"nearest", "within_m": null'),
        (b'"nearest"', b'"nearestx"'),
    ],
)
def test_spellings_of_a_nearest_that_are_slow(before, after):
    line = json.dumps(NEAREST).encode()
    assert line.count(before) == 1
    line = line.replace(before, after)
    assert slow_lines([line]) == [0]
    raw = block_of([line])
    assert_same(decode_lines(raw, 100, ANALYZER, None, 1 << 50), decode_strictly(raw))


@pytest.mark.parametrize(
    "figure", ["0", "-0", "0.0", "-0.0", "-0.000", "12.3456789012345678", "90"]
)
def test_figures_of_a_nearest_are_the_same_to_the_bit(figure):
    line = json.dumps({**NEAREST, "lon": 0.25, "lat": 0.75, "within_m": 0.5}).encode()
    line = line.replace(b"0.25", figure.encode()).replace(b"0.75", figure.encode())
    line = line.replace(b"0.5", b"123.4560000000000001")
    raw = block_of([line])
    assert slow_lines([line]) == []
    assert_same(decode_lines(raw, 100, ANALYZER, None, 1 << 50), decode_strictly(raw))


def test_kinds_mixed_in_one_block_keep_their_own_columns():
    events = [
        {**BASE, "region": CIRCLE, "where": "tea OR milk"},
        NEAREST,
        {**BASE, "where": "tea"},
        {**NEAREST, "within_m": 500, "mode": "all"},
        UNSUBSCRIBE,
        {**NEAREST, "lon": 5000},
        {**BASE, "region": BOX},
        {**NEAREST, "keywords": ["tea", "tea"], "k": 7},
    ]
    raw = block_of([json.dumps(event).encode() for event in events])
    block = decode_lines(raw, 100, ANALYZER, None, 1 << 50)
    assert_same(block, decode_strictly(raw))
    assert block.rows.kind.tolist() == [0, 1, 0, 1, 0, 1]
    assert block.rows.k.tolist() == [0, 3, 0, 3, 0, 7]
    assert len(block.dead) == 1


def test_the_last_line_may_lack_its_line_feed():
    raw = block_of([json.dumps({**BASE, "where": "tea"}).encode()])[:-1]
    assert_same(decode_lines(raw, 100, ANALYZER, None, 1 << 50), decode_strictly(raw))
    assert decode_lines(raw, 100, ANALYZER, None, 1 << 50).rows.total == 1


def test_plain_and_slow_changes_stay_in_log_order():
    lines = [
        json.dumps({**BASE, "id": f"s{i}", "where": "tea" if i % 3 else "NOT tea"}).encode()
        for i in range(10)
    ]
    block = decode_lines(block_of(lines), 100, ANALYZER, None, 1 << 50)
    assert block.changes.event.tolist() == list(range(10))
    assert block.rows.begin_seq.tolist() == list(range(100, 110))
    assert block.changes.id_bytes.tobytes() == b"".join(b"s%d" % i for i in range(10))
