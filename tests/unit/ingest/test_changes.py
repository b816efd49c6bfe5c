"""Changes read by the scanner are what the strict reader makes of them; what it leaves is slow."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from change_events import (
    ANALYZER,
    BASE,
    BOX,
    CIRCLE,
    NEAREST,
    RELEVANT,
    TS,
    UNSUBSCRIBE,
    assert_read,
    assert_same,
    block_of,
    decode_strictly,
    decode_usually,
    dump,
    nearests,
    nearly_nearest,
    nearly_relevant,
    relevants,
    slow_lines,
    subscribes,
    unsubscribes,
)
from placewire.kinds.nearest.rows import nearest_columns
from placewire.kinds.relevant.rows import relevant_columns
from placewire.model.settings import Settings
from placewire.text.words import Lexicon


@given(
    st.lists(
        st.one_of(
            *(subscribes, unsubscribes, nearests, relevants),
            *(nearly_nearest, nearly_relevant, nearly_relevant),
        ),
        max_size=8,
    ),
    st.integers(0, 99),
)
def test_equals_the_strict_reader(events, seed):
    rng = random.Random(seed)
    raw = block_of([dump(event, rng) for event in events])
    assert_same(decode_usually(raw), decode_strictly(raw))


@given(st.data())
def test_damaged_lines_equal_the_strict_reader(data):
    boolean = {**BASE, "region": BOX, "where": "tea OR milk"}
    nearest = {**NEAREST, "mode": "all", "within_m": 12.5, "expires": TS}
    relevant = {**RELEVANT, "keywords": ["tea", "te", "milk", "tea"], "reach_m": 12.5}
    line = bytearray(json.dumps(data.draw(st.sampled_from([boolean, nearest, relevant]))).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(line) - 1))
        if data.draw(st.booleans()):
            line[at] = data.draw(st.sampled_from(b'{}[]",: \t\\019.-eEaZ\xff\x00'))
        else:
            del line[at]
    raw = block_of([bytes(line), bytes(line[: len(line) // 2])])
    assert_same(decode_usually(raw), decode_strictly(raw))


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
        RELEVANT,
        {**RELEVANT, "alpha": 0},
        {**RELEVANT, "alpha": 1, "k": 1000, "lon": 180, "lat": -90},
        {**RELEVANT, "alpha": -0.0, "reach_m": 1, "expires": "2026-03-01T13:00:00Z"},
        {**RELEVANT, "alpha": 1.0, "reach_m": 0.001, "keywords": ["tea"]},
        {**RELEVANT, "keywords": [f"w{i}" for i in range(64)], "reach_m": 9_007_199_254_740_992},
        {**RELEVANT, "keywords": ["tea"] * 64},
        dict(reversed({**RELEVANT, "reach_m": 500.5}.items())),
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
        {**RELEVANT, "kind": "nearest"},
        {**RELEVANT, "kind": "boolean", "where": "tea"},
        {**NEAREST, "kind": "relevant"},
        {**NEAREST, "alpha": 0.5},
        {**NEAREST, "reach_m": 5},
        {**BASE, "where": "tea", "reach_m": 5},
        {**RELEVANT, "mode": "any"},
        {**RELEVANT, "within_m": 5},
        {**RELEVANT, "region": BOX},
        {**RELEVANT, "where": "tea"},
        {**RELEVANT, "data": 1},
        {**RELEVANT, "window": "PT1H"},
        {**RELEVANT, "alpha": 1.5},
        {**RELEVANT, "alpha": 1.0000000000000002},
        {**RELEVANT, "alpha": -1e-3},
        {**RELEVANT, "alpha": "1"},
        {**RELEVANT, "alpha": True},
        {**RELEVANT, "reach_m": 0},
        {**RELEVANT, "reach_m": -0.0},
        {**RELEVANT, "reach_m": -1},
        {**RELEVANT, "reach_m": 1e300},
        {**RELEVANT, "reach_m": 10**400},
        {**RELEVANT, "reach_m": None},
        {**RELEVANT, "k": 0},
        {**RELEVANT, "k": 1001},
        {**RELEVANT, "lon": -180.5},
        {**RELEVANT, "lat": 91},
        {**RELEVANT, "keywords": []},
        {**RELEVANT, "keywords": ["tea milk"]},
        {**RELEVANT, "keywords": ["Tea"]},
        {**RELEVANT, "keywords": ["zürich"]},
        {**RELEVANT, "keywords": [f"w{i}" for i in range(65)]},
    ],
)
def test_others_are_slow(event):
    line = json.dumps(event, ensure_ascii=False).encode()
    assert_read(line, slow=True)


@pytest.mark.parametrize("name", [*RELEVANT])
def test_a_relevant_that_lacks_a_field_is_slow(name):
    line = json.dumps({key: value for key, value in RELEVANT.items() if key != name}).encode()
    assert slow_lines([line]) == [0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"alpha": 0.25', b'"alpha": 1e0'),
        (b'"alpha": 0.25', b'"alpha": 0.25e0'),
        (b'"alpha": 0.25', b'"alpha": .25'),
        (b'"alpha": 0.25', b'"alpha": 00.25'),
        (b'"alpha": 0.25', b'"alpha": 1.'),
        (b'"alpha": 0.25', b'"alpha": NaN'),
        (b'"alpha": 0.25', b'"alpha": 0.25, "alpha": 0.25'),
        (b'"alpha": 0.25', b'"alpha":'),
        (b'"alpha": 0.25', b'"Alpha": 0.25'),
        (b'"alpha": 0.25', b'"alph\\u0061": 0.25'),
        (b'"alpha": 0.25', b'"alpha": 0.25, "reach_m": 5e3'),
        (b'"alpha": 0.25', b'"alpha": 0.25, "reach_m": 5, "reach_m": 5'),
        (b'"alpha": 0.25', b'"alpha": 0.25, "reach": 5'),
        (b'"relevant"', b'"relevantx"'),
        (b'"relevant"', b'"relevan"'),
        (b'"tea"', b'"te\\u0061"'),
        (b'"k": 3', b'"k": 3, "k": 3'),
    ],
)
def test_spellings_of_a_relevant_that_are_slow(before, after):
    line = json.dumps(RELEVANT).encode()
    assert line.count(before) == 1
    line = line.replace(before, after)
    assert_read(line, slow=True)


@pytest.mark.parametrize(
    "alpha", ["0", "1", "-0", "0.0", "-0.0", "1.0", "0.1", "0.30000000000000004", "1.000000"]
)
@pytest.mark.parametrize("reach", ["1", "0.5", "20015114.35", "123.4560000000000001", "5000000"])
def test_figures_of_a_relevant_are_the_same_to_the_bit(alpha, reach):
    line = json.dumps({**RELEVANT, "alpha": "A", "reach_m": "R"}).encode()
    line = line.replace(b'"A"', alpha.encode()).replace(b'"R"', reach.encode())
    assert_read(line, slow=False)


@given(st.lists(st.text("ab09_z", min_size=1, max_size=12), min_size=1, max_size=64))
def test_terms_of_a_relevant_are_in_order_of_their_words(words):
    line = json.dumps({**RELEVANT, "keywords": words}).encode()
    assert slow_lines([line]) == []
    raw = block_of([line])
    rows = decode_usually(raw).rows
    assert_same(decode_usually(raw), decode_strictly(raw))
    ordered = sorted(set(words))
    assert rows.literal_term.tolist() == ANALYZER.hash_terms(ordered).tolist()
    own = relevant_columns(rows)
    assert own.norm.tolist() == [len(ordered) ** 0.5]
    assert own.literal_idf.tolist() == [1.0] * len(ordered)


@pytest.mark.parametrize("reach_m", [1.5, 5, 20_015_114.35])
def test_the_usual_reach_is_that_of_the_settings(reach_m):
    lines = [json.dumps(event).encode() for event in (RELEVANT, {**RELEVANT, "reach_m": 7})]
    raw, chosen = block_of(lines), Settings(reach_m=reach_m)
    block = decode_usually(raw, chosen)
    assert_same(block, decode_strictly(raw, chosen))
    assert relevant_columns(block.rows).reach_m.tolist() == [reach_m, 7.0]


def test_a_lexicon_leaves_relevant_lines_to_the_strict_reader():
    events = [RELEVANT, NEAREST, {**RELEVANT, "keywords": ["lemon", "tea"]}]
    raw = block_of([json.dumps(event).encode() for event in events])
    chosen = Settings(), Lexicon(10, {"tea": 4})
    block = decode_usually(raw, *chosen)
    assert_same(block, decode_strictly(raw, *chosen))
    assert block.rows.kind.tolist() == [3, 1, 3]
    assert 1.0 not in relevant_columns(block.rows).literal_idf.tolist()


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
    assert_read(line, slow=True)


@pytest.mark.parametrize(
    "figure", ["0", "-0", "0.0", "-0.0", "-0.000", "12.3456789012345678", "90"]
)
def test_figures_of_a_nearest_are_the_same_to_the_bit(figure):
    line = json.dumps({**NEAREST, "lon": 0.25, "lat": 0.75, "within_m": 0.5}).encode()
    line = line.replace(b"0.25", figure.encode()).replace(b"0.75", figure.encode())
    line = line.replace(b"0.5", b"123.4560000000000001")
    assert_read(line, slow=False)


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
        {**RELEVANT, "keywords": ["tea", "lemon", "tea"]},
        {**BASE, "region": CIRCLE},
        {**RELEVANT, "keywords": ["Tea", "milk"], "reach_m": 9},
        {**RELEVANT, "keywords": ["tea"], "alpha": 1, "reach_m": 10, "k": 9},
    ]
    raw = block_of([json.dumps(event).encode() for event in events])
    block = decode_usually(raw)
    assert_same(block, decode_strictly(raw))
    assert block.rows.kind.tolist() == [0, 1, 0, 1, 0, 1, 3, 0, 3, 3]
    assert block.rows.k.tolist() == [0, 3, 0, 3, 0, 7, 3, 0, 3, 9]
    assert nearest_columns(block.rows).within_m.tolist() == [math.inf, 500.0, math.inf]
    relevant = relevant_columns(block.rows)
    assert relevant.reach_m.tolist()[1:] == [9.0, 10.0]
    assert relevant.alpha.tolist() == [0.25, 0.25, 1.0]
    assert relevant.literal_idf.size == 5
    assert np.diff(block.rows.shape_offsets).tolist() == [3, 0, 0, 0, 0, 0, 0, 3, 0, 0]
    assert len(block.dead) == 1


def test_the_last_line_may_lack_its_line_feed():
    raw = block_of([json.dumps({**BASE, "where": "tea"}).encode()])[:-1]
    assert_same(decode_usually(raw), decode_strictly(raw))
    assert decode_usually(raw).rows.total == 1


def test_plain_and_slow_changes_stay_in_log_order():
    lines = [
        json.dumps({**BASE, "id": f"s{i}", "where": "tea" if i % 3 else "NOT tea"}).encode()
        for i in range(10)
    ]
    block = decode_usually(block_of(lines))
    assert block.changes.event.tolist() == list(range(10))
    assert block.rows.begin_seq.tolist() == list(range(100, 110))
    assert block.changes.id_bytes.tobytes() == b"".join(b"s%d" % i for i in range(10))
