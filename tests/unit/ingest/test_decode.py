"""Decoding: every line is taken or refused exactly as the oracle does, and says why."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import oracle
from logs import BUILT_KINDS, events
from placewire.ingest.decode import DecodedBlock, decode_lines
from placewire.text.analyzer import Analyzer
from profiles import examples

ANALYZER = Analyzer(0x0123456789ABCDEF, 0xFEDCBA9876543210)
TS = "2026-03-01T12:00:00Z"
OBJECT: dict[str, Any] = {
    "type": "object",
    "id": "o1",
    "ts": TS,
    "lon": -73.98,
    "lat": 40.75,
    "text": "Free coffee, 5th Ave!",
}
SUBSCRIBE: dict[str, Any] = {
    "type": "subscribe",
    "id": "s1",
    "ts": TS,
    "kind": "boolean",
    "region": {"box": [-74.1, 40.6, -73.8, 40.9]},
    "where": "coffee AND (free OR sale)",
}
UNSUBSCRIBE: dict[str, Any] = {"type": "unsubscribe", "id": "s1", "ts": TS}
QUERY: dict[str, Any] = {
    "type": "query",
    "id": "q1",
    "ts": TS,
    "kind": "boolean",
    "where": "coffee",
    "last": "PT1H",
}


def decode(log: bytes) -> DecodedBlock:
    return decode_lines(np.frombuffer(log, np.uint8), 0, ANALYZER, None, 0)


def oracle_refuses(line: bytes) -> bool:
    """Whether the line is invalid; `max_ahead` cannot matter to a log of one event."""
    return bool(oracle.replay(line + b"\n", kinds=BUILT_KINDS).dead)


def check_line(line: bytes) -> None:
    """A line alone, and the same between two good ones, with and without its line feed."""
    assert b"\n" not in line
    refused = oracle_refuses(line)
    good = dump(OBJECT)
    for before, log in ((0, line + b"\n"), (1, good + b"\n" + line + b"\n" + good)):
        block = decode(log)
        assert block.events == 2 * before + 1
        got = [(letter.event, letter.line) for letter in block.dead]
        assert got == ([(before, line)] if refused else [])
        assert all(0 < len(letter.error) < 500 for letter in block.dead)
    if line:
        assert len(decode(line).dead) == refused  # an empty log has no line


def dump(event: object) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def with_raw(event: dict[str, Any], **raw: bytes) -> bytes:
    """The event with some values as they are, so that JSON may be spelt in any way."""
    parts = [dump(k) + b":" + dump(v) for k, v in event.items() if k not in raw]
    parts += [dump(k) + b":" + v for k, v in raw.items()]
    return b"{" + b",".join(parts) + b"}"


def with_data(raw: bytes) -> bytes:
    return with_raw(OBJECT, data=raw)


def deep(levels: int, inside: bytes = b"") -> bytes:
    return b"[" * levels + inside + b"]" * levels


# --- the corpus: every sentence of sections 2 and 3 ---

STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, 1e300, "", "x", "1", [], [1], {}, {"a": 1}, [[]], 10**25,
]  # fmt: skip


def shapes() -> Iterator[bytes]:
    """Each event without each of its fields, with foreign ones, with values of every type."""
    for event in (OBJECT, SUBSCRIBE, UNSUBSCRIBE, QUERY):
        yield dump(event)
        yield dump(dict(reversed(event.items())))
        yield json.dumps(event, indent=1).replace("\n", "\r\t ").encode()
        for name in event:
            yield dump({k: v for k, v in event.items() if k != name})
            for value in STRANGE:
                yield dump({**event, name: value})
        for name, value in (
            ("data", 1), ("expires", TS), ("region", SUBSCRIBE["region"]), ("where", "x"),
            ("lon", 1), ("lat", 1), ("text", "x"), ("kind", "boolean"), ("keywords", ["a"]),
            ("k", 1), ("mode", "any"), ("within_m", 1), ("alpha", 0.5), ("reach_m", 1),
            ("window", "PT1H"), ("every", "PT1M"), ("last", "PT1H"), ("limit", 1), ("seq", 0),
            ("Type", "object"), ("ID", "x"), ("", 1), ("é", 1),
        ):  # fmt: skip
            yield dump({**event, name: value})
        for kind in ("boolean", "nearest", "relevant", "trending", "Boolean", "", "match"):
            yield dump({**event, "kind": kind})
        for type_ in ("object", "Object", "subscribe", "unsubscribe", "query", "objects", ""):
            yield dump({**event, "type": type_})


def ids() -> Iterator[bytes]:
    for event in (OBJECT, SUBSCRIBE, UNSUBSCRIBE):
        for size in (1, 2, 255, 256, 257, 1000):
            for character in ("a", "é", "東", "😀"):
                yield dump({**event, "id": character * size})
                yield json.dumps({**event, "id": character * size}).encode()  # escaped
        for name in ("\x00", "\n", "\x7f", "\u2028", '"', "\\", "\u0301", " "):
            yield json.dumps({**event, "id": name}).encode()
            yield dump({**event, "id": name})


def times() -> Iterator[bytes]:
    stamps = """2026-03-01T12:00:00Z 2026-03-01t12:00:00z 2026-03-01T12:00:00+00:00 2026-03-01
        2026-03-01T12:00:00 2026-03-01T12:00Z 2026-03-01T24:00:00Z 2026-03-01T12:00:60Z
        2026-03-01T12:60:00Z 2026-02-29T12:00:00Z 2024-02-29T12:00:00Z 2026-13-01T12:00:00Z
        2026-00-01T12:00:00Z 2026-03-00T12:00:00Z 2026-03-01T12:00:00.Z 2026-03-01T12:00:00.5Z
        2026-03-01T12:00:00.123456789123456789Z 2026-03-01T12:00:00,5Z 2026-03-01T12:00:00+23:59
        2026-03-01T12:00:00+24:00 2026-03-01T12:00:00+01:60 2026-03-01T12:00:00+0100
        2026-03-01T12:00:00+01 0001-01-01T00:00:00Z 0001-01-01T00:00:00+00:01
        0000-12-31T23:59:59-00:01 0000-12-31T23:59:59Z 9999-12-31T23:59:59.999999Z
        9999-12-31T23:59:59.9999999-00:00 9999-12-31T23:59:59-00:01 9999-12-31T23:59:59+00:01
        ٢٠٢٦-03-01T12:00:00Z 2026-03-01T12:00:00ｚ 2026-3-1T12:00:00Z +2026-03-01T12:00:00Z
        2026-03-01T12:00:00Zx x2026-03-01T12:00:00Z 20260301T120000Z 2026-03-01T12.5:00:00Z
        2026-060T12:00:00Z 1900-02-29T00:00:00Z 2000-02-29T00:00:00Z 2026-03-01T12:00:00-00:00"""
    for stamp in [*stamps.split(), "2026-03-01 12:00:00Z", "", " ", f" {TS}", f"{TS} ", f"{TS}\n"]:
        for event in (OBJECT, SUBSCRIBE, UNSUBSCRIBE):
            yield dump({**event, "ts": stamp})
            yield json.dumps({**event, "ts": stamp}).encode()
        yield dump({**SUBSCRIBE, "expires": stamp})


NUMBERS = [
    b"0", b"-0", b"-0.0", b"1", b"180", b"-180", b"90", b"-90", b"180.0", b"1.8e2", b"18E1",
    b"180.00000000000001", b"180.00000000000003", b"90.00000000000001", b"-180.1", b"181", b"91",
    b"1e2", b"1e-400", b"1e400", b"-1e400", b"1" * 400, b"0." + b"1" * 500, b"0." + b"0" * 500,
    b"0.30000000000000004", b"00", b"01", b"1.", b".5", b"+1", b"1e", b"1e+", b"0x1", b"1_0",
    b"Infinity", b"-Infinity", b"NaN", b"nan", b"true", b"null", b'"1"', b"[1]", b"- 1", b"--1",
    b"1 ", b"1\t", b"1e5", b"9007199254740993", b"1" * 5000,
]  # fmt: skip


def numbers() -> Iterator[bytes]:
    for number in NUMBERS:
        yield with_raw(OBJECT, lon=number)
        yield with_raw(OBJECT, lat=number)
        yield with_data(number)
        yield with_data(b'{"a":[' + number + b"]}")
        yield with_raw(SUBSCRIBE, region=b'{"box":[' + number + b",0,0,1]}")
        yield with_raw(SUBSCRIBE, region=b'{"box":[0,' + number + b",0,90]}")
        circle = b'{"circle":{"lon":0,"lat":0,"radius_m":' + number + b"}}"
        yield with_raw(SUBSCRIBE, region=circle)
        yield with_raw(SUBSCRIBE, data=number)
        ring = b'{"polygon":[[[0,0],[1,0],[1,' + number + b"],[0,0]]]}"
        yield with_raw(SUBSCRIBE, region=ring)


def texts() -> Iterator[bytes]:
    for size in (0, 1, 65_535, 65_536, 65_537):
        yield dump({**OBJECT, "text": "a" * size})
        yield dump({**OBJECT, "text": "é" * (size // 2) + "a" * (size % 2)})
        yield json.dumps({**OBJECT, "text": "\n" * size}).encode()
    yield dump({**OBJECT, "text": "東" * 21_845})
    yield dump({**OBJECT, "text": "東" * 21_846})
    yield dump({**OBJECT, "text": "\x00\x7f\u2028"})


def data() -> Iterator[bytes]:
    for size in (16_381, 16_382, 16_383):
        yield with_data(b'"' + b"a" * size + b'"')
        yield with_raw(SUBSCRIBE, data=b'"' + b"a" * size + b'"')
        yield with_data(b'"' + rb"\u0061" * size + b'"')
        yield with_data(b"[" + b" " * size + b"1]")
    yield with_data(b'"' + rb"\n" * 8_191 + b'"')
    yield with_data(b'"' + rb"\n" * 8_192 + b'"')
    yield with_data(b'"' + rb"\u00e9" * 8_191 + b'"')
    yield with_data(b'"' + rb"\u00e9" * 8_192 + b'"')
    yield with_data(b"[" + b",".join([b"1"] * 8_192) + b"]")
    yield with_data(b"[" + b",".join([b"1"] * 8_191) + b"]")
    for levels in (1, 100, 990, 995, 1000, 1005, 8_191, 8_192, 8_193, 20_000, 100_000):
        yield with_data(deep(levels))
        yield with_data(deep(levels, rb'"\n"'))
        yield with_data(deep(levels, b'{"a":{"a":1}}'))
        yield with_data(deep(levels, b'{"a":1,"a":1}'))
        yield with_raw(SUBSCRIBE, data=deep(levels))
    yield with_data(b'{"":' * 2_700 + b"1" + b"}" * 2_700)
    yield b"[" * 100_000
    yield b'{"a":' * 100_000


def repeats() -> Iterator[bytes]:
    for event in (OBJECT, SUBSCRIBE, UNSUBSCRIBE):
        for name, value in event.items():
            again = dump({name: value})[1:-1]
            yield dump(event)[:-1] + b"," + again + b"}"
            yield b"{" + again + b"," + dump(event)[1:]
            escaped = b'"' + "".join(f"\\u{ord(c):04x}" for c in name).encode() + b'":'
            yield dump(event).replace(dump(name) + b":", escaped)
            yield dump(event)[:-1] + b"," + escaped + dump(value) + b"}"
    for inside in (
        b'{"a":1,"a":2}', b'{"a":1,"b":{"a":1}}', b'{"a":1,"b":{"c":1,"c":2}}', b'{"a":1,"A":2}',
        b'[{"a":1},{"a":2}]', b'[{"a":1,"a":1}]', rb'{"a":1,"\u0061":2}', rb'{"\n":1,"\n":2}',
        b'{"":1,"":2}', b'{"a" :1,"a"\t:2}', b'{"a":"x",":b":1,":b":2}', b'{"a":"x",":b":1,":c":2}',
        b'{"x":",",":":1,":":2}', b'{"a":":","a:":1,"a:":1}', b'{"a":"a\\":1,\\"a"}',
        b'{":":":",":":":"}', b'["a",":b",":b"]', b'{"a":["x","y"],":":{":":1,":":2}}',
        '{"é":1,"é":2}'.encode(), '{"é":1,"\\u00e9":2}'.encode(), '{"é":1,"e\u0301":2}'.encode(),
        b'{"type":"object","id":1}', b'{"type":1,"type":1}',
    ):  # fmt: skip
        yield with_data(inside)
        yield with_raw(SUBSCRIBE, data=inside)
    yield with_raw(SUBSCRIBE, region=b'{"box":[0,0,1,1],"box":[0,0,1,1]}')
    yield with_raw(SUBSCRIBE, region=b'{"circle":{"lon":0,"lat":0,"lat":0,"radius_m":1}}')
    yield with_raw(SUBSCRIBE, where=b'{"all":["a"],"all":["a"]}')


def characters() -> Iterator[bytes]:
    for text in (
        rb'"\ud800"', rb'"\udc00"', rb'"\ud800\u0041"', rb'"\ud800\ud800"', rb'"\udc00\ud800"',
        rb'"\ud83d\ude00"', rb'"\uD83D\uDE00"', b'"\xed\xa0\x80"', b'"\xed\xb0\x80"', b'"\xff"',
        b'"\xc0\x80"', b'"\xc3"', b'"\xe2\x82"', b'"\xf4\x90\x80\x80"', b'"\xf8\x88\x80\x80\x80"',
        rb'"\u0000"', rb'"\u00"', rb'"\x41"', rb'"\/"', rb'"\b\f\n\r\t\"\\"', rb'"\'"', b'"\x00"',
        b'"\x1f"', b'"\t"', b'"\x7f"', b"'x'", b'"x', b"x", rb'"\u00g0"', rb'"\ud83dx"',
        rb'"\U0041"',
    ):  # fmt: skip
        yield with_raw(OBJECT, text=text)
        yield with_raw(OBJECT, id=text)
        yield with_raw(SUBSCRIBE, id=text)
        yield with_raw(SUBSCRIBE, where=text)
        yield with_raw(OBJECT, ts=text)
        yield with_data(text)
        yield with_data(b'{"a":[' + text + b"]}")
        yield with_data(b"{" + text + b":1}")
        yield b"{" + text + b":1," + dump(OBJECT)[1:]


def frames() -> Iterator[bytes]:
    good = dump(OBJECT)
    yield from (
        b"", b" ", b"\r", b"\t", b"\x00", b"\xff", b"{", b"}", b"{}", b"[]", b"[1]", b"1", b"null",
        b"true", b'"x"', b"{,}", b"NaN", b"\xef\xbb\xbf" + good, good + b"\r",
        b" " + good + b"\t\r",
        good + b",", good + good, good + b" x", good + b"\x00", good + b"\x0c", b"\x0b" + good,
        good + b"\xc2\xa0", b"[" + good + b"]", good[:-1], good[1:], good[:-1] + b",}",
        b"//" + good, good + b"#", good.replace(b'"', b"'"), good.decode().encode("utf-16"),
        good.replace(b":", b"="), good.replace(b",", b";"), b"\x1e" + good, good[:-1] + b"\xff}",
        b"x" * 3_000_000, b" " * 1_000_000 + good, b'"' * 100_000, b"\\" * 100_000,
    )  # fmt: skip


def regions() -> Iterator[bytes]:
    box = {"box": [0, 0, 1, 1]}
    circle = {"lon": 0, "lat": 0, "radius_m": 1}
    ring = [[0, 0], [1, 0], [1, 1], [0, 0]]
    for region in (
        box, {"box": [1, 0, 0, 1]}, {"box": [0, 1, 1, 0]}, {"box": [0, 0, 0, 0]}, {"box": []},
        {"box": [-180, -90, 180, 90]}, {"box": [180, 0, -180, 1]}, {"box": [0, 0, 1]},
        {"box": [0, 0, 1, 1, 1]}, {"box": [0, 0, 1, 91]}, {"box": [0, -91, 1, 1]},
        {"box": [-181, 0, 1, 1]}, {"box": [0, 0, 181, 1]}, {"box": [0, 0, 1, "1"]},
        {"box": [0, 0, 1, True]}, {"box": [0, 0, 1, None]}, {"box": [0, 0, 1, [1]]}, {"box": box},
        {"box": None}, {"Box": [0, 0, 1, 1]}, {**box, "circle": circle}, {**box, "x": 1},
        {"circle": circle}, {"circle": {**circle, "radius_m": 0}},
        {"circle": {**circle, "radius_m": -1}}, {"circle": {**circle, "radius_m": 5e-324}},
        {"circle": {**circle, "radius_m": 1.7e308}}, {"circle": {**circle, "radius_m": 10**400}},
        {"circle": {**circle, "lon": 180.5}}, {"circle": {**circle, "lat": -90.5}},
        {"circle": {**circle, "x": 1}}, {"circle": {"lon": 0, "lat": 0}}, {"circle": [0, 0, 1]},
        {"circle": {**circle, "radius_m": "1"}}, {"circle": {**circle, "radius_m": True}},
        {"polygon": [ring]}, {"polygon": [ring, ring]}, {"polygon": []}, {"polygon": ring},
        {"polygon": [[]]}, {"polygon": [ring, []]}, {"polygon": [ring[:3]]},
        {"polygon": [ring[1:]]},
        {"polygon": [[[0, 0]] * 4]}, {"polygon": [[[0, 0, 5], *ring[1:]]]},
        {"polygon": [[[0], *ring[1:]]]}, {"polygon": [[*ring[:3], [0, 1]]]},
        {"polygon": [[*ring[:3], [0.0, -0.0]]]}, {"polygon": [[*ring[:3], ["0", 0]]]},
        {"polygon": [[*ring[:2], [181, 0], ring[0]]]}, {"polygon": {"a": 1}}, {"polygon": None},
        {"polygon": [[0, 0, 1, 0]]}, {"polygon": [{"0": 1}]}, {"polygon": [ring, None]}, {}, [], 1,
    ):  # fmt: skip
        yield dump({**SUBSCRIBE, "region": region})
    for levels in (50, 990, 995, 1000, 1005, 3_000, 20_000):
        nested = deep(levels)
        yield with_raw(SUBSCRIBE, region=nested)
        yield with_raw(SUBSCRIBE, region=b'{"box":' + nested + b"}")
        yield with_raw(SUBSCRIBE, region=b'{"box":[0,0,1,' + nested + b"]}")
        yield with_raw(SUBSCRIBE, region=b'{"circle":' + nested + b"}")
        yield with_raw(SUBSCRIBE, region=b'{"polygon":[[' + nested + b",1,2,3]]}")
        yield with_raw(SUBSCRIBE, region=b'{"x":' * levels + b"1" + b"}" * levels)
        yield with_raw(SUBSCRIBE, where=nested)
        yield with_raw(SUBSCRIBE, where=b'{"all":[' * levels + b'"x"' + b"]}" * levels)
        yield with_raw(OBJECT, lon=nested)
        yield with_raw(OBJECT, type=nested)


def wheres() -> Iterator[bytes]:
    def nest(kind: str, levels: int) -> Any:
        return "x" if levels == 1 else {kind: [nest(kind, levels - 1)]}

    for where in (
        "", " ", "a", "a b", "a AND", "OR a", "NOT", "NOT NOT a", "a NOT b", "a AND NOT b", "()",
        "(a", "a)", "((a))", "(" * 64 + "a" + ")" * 64, "(" * 65 + "a" + ")" * 65, '"a', '""',
        '"a b"', '"AND"', '"!"', "!", "a !", "a-b", "AND", "and", "a and b", "a OR b AND c",
        "a(b)c", 'a"b"c', "a OR",
        "a AND AND b", "a AND OR b", "(a OR b) NOT (c d)", "NOT " * 7 + "a",
        "NOT " * 8 + "a", "(NOT " * 7 + "a" + ")" * 7, "(NOT " * 8 + "a" + ")" * 8,
        "NOT " * 6 + "a-b", "NOT " * 7 + "a-b", " ".join("a" * 256), " ".join("a" * 257),
        " OR ".join(["a"] * 257), "-".join("a" * 256), "-".join("a" * 257), "\u3000a\u3000AND b",
        {"all": ["a"]}, {"any": ["a", "b"]}, {"none": ["a"]}, {"all": []}, {"all": "a"},
        {"all": [1]},
        {"all": ["a"], "any": ["b"]}, {}, [], ["a"], 1, None, True, {"ALL": ["a"]}, {"not": ["a"]},
        {"all": [""]}, {"all": [None]}, {"all": [["a"]]}, nest("all", 8), nest("all", 9),
        nest("none", 8), nest("none", 9), {"all": [nest("any", 7), "NOT a"]},
        {"all": ["a"] * 256}, {"all": ["a"] * 257}, {"any": ["a-b"] * 128}, {"any": ["a-b"] * 129},
        {"all": [nest("any", 7)] * 3}, {"all": ["(" * 64 + "a" + ")" * 64]}, "a\x00b",
    ):  # fmt: skip
        yield dump({**SUBSCRIBE, "where": where})
    yield dump({k: v for k, v in SUBSCRIBE.items() if k not in ("where", "region")})
    yield dump({k: v for k, v in SUBSCRIBE.items() if k != "where"})
    yield dump({k: v for k, v in SUBSCRIBE.items() if k != "region"})


CORPUS = [
    shapes, ids, times, numbers, texts, data, repeats, characters, frames, regions, wheres,
]  # fmt: skip


@pytest.mark.parametrize("corpus", CORPUS, ids=lambda corpus: corpus.__name__)
def test_refuses_what_the_oracle_refuses(corpus: Any) -> None:
    wrong = []
    for line in corpus():
        try:
            check_line(line)
        except Exception as error:  # all of them at once: one run shows the whole extent
            wrong.append(f"{line[:120]!r} ({len(line)} bytes): {str(error)[:200]!r}")
    assert not wrong, "\n".join(wrong)


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(line=events(), places=st.data())
def test_mutated_lines(line: bytes, places: st.DataObject) -> None:
    for _ in range(places.draw(st.integers(1, 3))):
        at = places.draw(st.integers(0, len(line)))
        to = places.draw(st.integers(at, min(len(line), at + 8)))
        new = places.draw(
            st.sampled_from(
                [b"", b'"', b"\\", b",", b":", b"{", b"}", b"[", b"]", b"0", b"-", b"e"]
            )
            | st.sampled_from(
                [b"\\u0061", b"\xff", b"null", b"1e9", b' "', b'"data":1,', line[at:to]]
            )
            | st.binary(max_size=3)
        )
        line = line[:at] + new + line[to:]
    check_line(line.replace(b"\n", b" "))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from([":", ":a", "\\", '"', "\x00", "\x7f", "😀", "a:", ","]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=3) | st.sampled_from([":", ":a", '"']), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(value=json_values, escaped=st.booleans(), spaced=st.booleans())
@example(value=10**300, escaped=True, spaced=False)
@example(value={"a": "x", ":b": 1, ":c": 2}, escaped=False, spaced=False)
def test_data_is_kept_as_it_is(value: Any, escaped: bool, spaced: bool) -> None:
    separators = (" , ", " : ") if spaced else (",", ":")
    line = json.dumps({**OBJECT, "data": value}, ensure_ascii=escaped, separators=separators)
    block = decode(line.encode())
    assert block.dead == []
    kept = json.loads(block.objects.data_bytes.tobytes())
    assert kept == value
    assert repr(kept) == repr(value)  # 1 is not 1.0, and not True
    assert b"\n" not in block.objects.data_bytes.tobytes()


def test_deep_data_is_kept_as_it_is() -> None:
    for line in (with_data(deep(8_192)), with_data(b'{"":' * 2_700 + b"1" + b"}" * 2_700)):
        (kept,) = [decode(line).objects.data_bytes.tobytes()]
        assert kept == line[line.index(b'"data":') + 7 : -1]
        assert len(kept) <= 16_384
    limit = sys.getrecursionlimit()
    decode(with_data(deep(8_192)))
    assert sys.getrecursionlimit() == limit


def test_numbers_keep_their_last_bit() -> None:
    lons = [
        b"0.1",
        b"-179.99999999999997",
        b"1e-7",
        b"73.987654321",
        b"5e-324",
        b"1.0000000000000002",
    ]
    for raw in lons:
        (lon,) = decode(with_raw(OBJECT, lon=raw)).objects.lon.tolist()
        assert lon == float(raw)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (b"", ["empty line"]),
        (b"{", ["{"]),
        (dump({**OBJECT, "lon": 181}), ["lon", "-180", "180", "181"]),
        (dump({**OBJECT, "lat": -90.5}), ["lat", "90", "-90.5"]),
        (dump({**OBJECT, "lon": "1"}), ["lon", "str"]),
        (dump({**OBJECT, "lon": True}), ["lon", "bool"]),
        (dump({**OBJECT, "x": 1}), ["unknown", "x"]),
        (dump({k: v for k, v in OBJECT.items() if k != "ts"}), ["missing", "ts"]),
        (dump({**OBJECT, "ts": "yesterday"}), ["time", "RFC 3339", "yesterday"]),
        (dump({**OBJECT, "id": ""}), ["id", "1 to 256", "0"]),
        (dump({**OBJECT, "id": "i" * 257}), ["id", "256", "257"]),
        (dump({**OBJECT, "text": "a" * 65_537}), ["text", "65536", "65537"]),
        (dump({**OBJECT, "data": "a" * 16_383}), ["data", "16384", "16385"]),
        (dump(OBJECT)[:-1] + b',"id":"o2"}', ["repeated", "id"]),
        (dump({**OBJECT, "type": "thing"}), ["type", "thing"]),
        (with_raw(OBJECT, text=b'"\xff"'), ["UTF-8", "0xff"]),
        (with_raw(OBJECT, text=rb'"\ud800"'), ["surrogate"]),
        (dump({**SUBSCRIBE, "kind": "what"}), ["s1", "kind", "boolean", "what"]),
        (dump({**SUBSCRIBE, "region": {"box": [0, 1, 1, 0]}}), ["s1", "region.box", "south", "1"]),
        (dump({**SUBSCRIBE, "region": {"box": [0, 0, 1]}}), ["s1", "region.box", "[0, 0, 1]"]),
        (dump({**SUBSCRIBE, "where": "a AND"}), ["s1", "where", "AND", "a AND"]),
        (dump({**SUBSCRIBE, "where": {"all": []}}), ["s1", "where.all", "empty"]),
        (dump({**SUBSCRIBE, "expires": "never"}), ["s1", "expires", "never"]),
        (dump({**SUBSCRIBE, "k": 3}), ["s1", "boolean", "k"]),
        (dump({**UNSUBSCRIBE, "type": "subscribe", "kind": "boolean"}), ["s1", "region", "where"]),
        (dump({**QUERY, "last": "P2D"}), ["q1", "last", "retention", "P2D"]),
        (dump({**QUERY, "mode": "any"}), ["q1", "boolean", "mode"]),
        (dump({**QUERY, "limit": 0}), ["q1", "limit", "1..10000", "0"]),
    ],
)  # fmt: skip
def test_errors_say_what_where_and_got(line: bytes, parts: list[str]) -> None:
    (letter,) = decode(line + b"\n").dead
    assert "\n" not in letter.error
    for part in parts:
        assert part in letter.error, letter.error


def test_an_empty_block_has_no_events() -> None:
    block = decode(b"")
    assert (block.events, block.objects.total, block.rows.total, block.dead) == (0, 0, 0, [])
    assert block.first_ts_us is None


def test_a_block_is_its_lines() -> None:
    """Objects, changes and dead letters of a mixed block point at the lines they came from."""
    lines = [
        dump(OBJECT),
        b"bad",
        dump({**OBJECT, "id": "slow", "data": {"a": 1}}),
        dump(SUBSCRIBE),
        b"",
        dump(UNSUBSCRIBE),
        dump({**OBJECT, "id": "last", "lon": 3}),
    ]
    block = decode(b"\n".join(lines))
    assert block.events == len(lines)
    assert sorted(block.objects.event.tolist()) == [0, 2, 6]
    assert block.changes.event.tolist() == [3, 5]
    assert block.changes.row.tolist() == [0, -1]
    assert [letter.event for letter in block.dead] == [1, 4]
    ids = block.objects.id_bytes.tobytes()
    bounds = block.objects.id_offsets.tolist()
    named = {
        event: ids[bounds[i] : bounds[i + 1]]
        for i, event in enumerate(block.objects.event.tolist())
    }
    assert named == {0: b"o1", 2: b"slow", 6: b"last"}
