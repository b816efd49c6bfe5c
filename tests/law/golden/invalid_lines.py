"""Lines that are invalid events, at least one for each reason there is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

TS = "2026-03-01T12:00:00Z"
RING = [[0, 0], [1, 0], [1, 1], [0, 0]]
CIRCLE = {"lon": 0, "lat": 0, "radius_m": 1}
POINT = {"lon": 0, "lat": 0, "keywords": ["coffee"], "k": 1}
OBJECT = {"type": "object", "id": "o", "ts": TS, "lon": 0.5, "lat": 0.5, "text": "coffee"}
UNSUBSCRIBE = {"type": "unsubscribe", "id": "s", "ts": TS}
BOOLEAN = {"type": "subscribe", "id": "s", "ts": TS, "kind": "boolean", "where": "coffee"}
NEAREST = {"type": "subscribe", "id": "s", "ts": TS, "kind": "nearest", **POINT}
RELEVANT = {"type": "subscribe", "id": "s", "ts": TS, "kind": "relevant", **POINT, "alpha": 0.5}
TRENDING = {
    "type": "subscribe", "id": "s", "ts": TS, "kind": "trending",
    "k": 1, "window": "PT1H", "every": "PT1M",
}  # fmt: skip
ASK_BOOLEAN = {
    "type": "query", "id": "q", "ts": TS, "kind": "boolean", "last": "PT1H", "where": "coffee",
}  # fmt: skip
ASK_NEAREST = {"type": "query", "id": "q", "ts": TS, "kind": "nearest", "last": "PT1H", **POINT}
ASK_RELEVANT = {**ASK_NEAREST, "kind": "relevant", "alpha": 0.5}
ASK_TRENDING = {"type": "query", "id": "q", "ts": TS, "kind": "trending", "last": "PT1H", "k": 1}
EVERY: list[dict[str, Any]] = [
    OBJECT, UNSUBSCRIBE, BOOLEAN, NEAREST, RELEVANT, TRENDING,
    ASK_BOOLEAN, ASK_NEAREST, ASK_RELEVANT, ASK_TRENDING,
]  # fmt: skip


def dump(event: object) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def with_raw(event: dict[str, Any], **raw: bytes) -> bytes:
    """The event with some values written as they are."""
    parts = [dump(k) + b":" + dump(v) for k, v in event.items() if k not in raw]
    parts += [dump(k) + b":" + v for k, v in raw.items()]
    return b"{" + b",".join(parts) + b"}"


def invalid_lines() -> Iterator[bytes]:
    yield from broken_json()
    yield from wrong_fields()
    yield from repeated_keys()
    yield from bad_characters()
    yield from bad_numbers()
    yield from bad_times()
    yield from bad_regions()
    yield from bad_expressions()
    yield from bad_values()
    yield from too_large()


def broken_json() -> Iterator[bytes]:
    yield from (
        b"", b" ", b"\t\r", b"{", b"}", b"{}", b"[]", b"[1]", b"1", b"null", b"true", b'"x"',
        b"NaN", b"{,}", b"not json at all, and longer than the forty bytes that are shown",
        b"\x00", b"\xff",
        dump(OBJECT)[:-1], dump(OBJECT) + b"}", dump(OBJECT) + b" x", b'{"type":"object",}',
        b'{"type"', b'{"type":', b"{'type':'object'}", b'{"type":"object" "id":"o"}',
        b"[" * 12_000,
    )  # fmt: skip


def wrong_fields() -> Iterator[bytes]:
    strange: list[Any] = [None, True, 1, -1.5, "x", "", [], [1], {}, {"a": 1}, 10**25]
    for at, event in enumerate(EVERY):
        for name in event:
            yield dump({k: v for k, v in event.items() if k != name})
        for step, name in enumerate(event):
            wrong = strange[(at + step) % len(strange)], strange[(at + 3 * step + 5) % len(strange)]
            for value in wrong:
                if name not in ("text", "where", "id") or not isinstance(value, str):
                    yield dump({**event, name: value})
    foreign = {
        "data": 1, "expires": TS, "region": {"box": [0, 0, 1, 1]}, "where": "x", "lon": 1, "lat": 1,
        "text": "x", "keywords": ["a"], "k": 1, "mode": "any", "within_m": 1, "alpha": 0.5,
        "reach_m": 1, "window": "PT1H", "every": "PT1M", "last": "PT1H", "limit": 1,
    }  # fmt: skip
    for at, event in enumerate(EVERY):
        for name, value in foreign.items():
            if name not in event and not allowed(event, name):
                yield dump({**event, name: value})
        yield dump({**event, ("seq", "Type", "txt", "", "é", "keyword", "regions")[at % 7]: 1})
    for kind in ("", "Boolean", "match", "count"):
        yield dump({**BOOLEAN, "kind": kind})
        yield dump({**ASK_BOOLEAN, "kind": kind})
    for type_ in ("", "Object", "objects", "event", "é" * 100):
        yield dump({**OBJECT, "type": type_})
    yield dump({k: v for k, v in BOOLEAN.items() if k != "where"})
    yield dump({k: v for k, v in ASK_BOOLEAN.items() if k != "where"})


def allowed(event: dict[str, Any], name: str) -> bool:
    """Whether an event may have a field that its example has not."""
    kind, subscribes = event.get("kind"), event["type"] == "subscribe"
    return (
        (name == "data" and (subscribes or event["type"] == "object"))
        or (name == "expires" and subscribes)
        or (name == "region" and kind in ("boolean", "trending"))
        or (name in ("mode", "within_m") and kind == "nearest")
        or (name == "reach_m" and kind == "relevant")
        or (name == "limit" and kind == "boolean" and not subscribes)
    )


def repeated_keys() -> Iterator[bytes]:
    for event in (OBJECT, UNSUBSCRIBE, BOOLEAN, NEAREST, TRENDING, ASK_BOOLEAN):
        for name in ("id", list(event)[-1]):
            yield dump(event)[:-1] + b"," + dump({name: event[name]})[1:]
        yield b'{"\\u0069d":"x",' + dump(event)[1:]
        yield b'{"id" :"x",' + dump(event)[1:]
    for inside in (
        b'{"a":1,"a":2}', b'{"a":1,"b":{"c":1,"c":2}}', b'[{"a":1,"a":1}]', rb'{"a":1,"\u0061":2}',
        b'{"":1,"":2}', b'{"a":"x",":b":1,":b":2}', '{"é":1,"é":2}'.encode(),
    ):  # fmt: skip
        yield with_raw(OBJECT, data=inside)
        yield with_raw(BOOLEAN, data=inside)
    yield with_raw(BOOLEAN, region=b'{"box":[0,0,1,1],"box":[0,0,1,1]}')
    yield with_raw(BOOLEAN, region=b'{"circle":{"lon":0,"lat":0,"lat":0,"radius_m":1}}')
    yield with_raw(BOOLEAN, where=b'{"all":["a"],"all":["a"]}')
    yield with_raw(ASK_BOOLEAN, where=b'{"all":["a"],"all":["a"]}')


def bad_characters() -> Iterator[bytes]:
    for text in (
        rb'"\ud800"', rb'"\udc00"', rb'"\ud800\u0041"', rb'"\ud83dx"', b'"\xed\xa0\x80"', b'"\xff"',
        b'"\xc0\x80"', b'"\xc3"', b'"\xe2\x82"', b'"\xf4\x90\x80\x80"', b'"\xf8\x88\x80\x80\x80"',
        rb'"\u00"', rb'"\x41"', rb'"\'"', b'"\x00"', b'"\x1f"', b"'x'", b'"x', b"x", rb'"\u00g0"',
    ):  # fmt: skip
        yield with_raw(OBJECT, text=text)
        yield with_raw(OBJECT, data=b"{" + text + b":1}")
        yield with_raw(BOOLEAN, id=text)
    for text in (rb'"\ud800"', b'"\xff"', rb'"\u00"', b'"\x1f"'):
        yield with_raw(OBJECT, id=text)
        yield with_raw(OBJECT, ts=text)
        yield with_raw(BOOLEAN, where=text)
        yield with_raw(NEAREST, keywords=b"[" + text + b"]")
        yield with_raw(UNSUBSCRIBE, id=text)
        yield with_raw(ASK_BOOLEAN, id=text)
    yield dump(OBJECT)[:-1] + b"\xff}"
    yield b"\xff" + dump(OBJECT)


def bad_numbers() -> Iterator[bytes]:
    for number in (
        b"180.00000000000003", b"-180.1", b"181", b"1e400", b"-1e400", b"1" * 400, b"00", b"01",
        b"1.", b".5", b"+1", b"1e", b"0x1", b"Infinity", b"-Infinity", b"NaN", b"true", b"null",
        b'"1"',
        b"[1]", b"--1",
    ):  # fmt: skip
        yield with_raw(OBJECT, lon=number)
        yield with_raw(NEAREST, lon=number)
        yield with_raw(BOOLEAN, region=b'{"box":[' + number + b",0,0,1]}")
    for number in (b"90.00000000000001", b"-90.5", b"91", b"1e400", b"false"):
        yield with_raw(OBJECT, lat=number)
        yield with_raw(RELEVANT, lat=number)
        yield with_raw(ASK_NEAREST, lat=number)
    for number in (b"1e400", b"1" * 400, b"-" + b"9" * 310, b"NaN", b"01", b"1e999999999999999999"):
        yield with_raw(OBJECT, data=b'{"a":[' + number + b"]}")
        yield with_raw(BOOLEAN, data=number)
        yield with_raw(OBJECT, data=b'["\\n",' + number + b"]")


def bad_times() -> Iterator[bytes]:
    stamps = [
        "2026-03-01", "2026-03-01T12:00:00", "2026-03-01T12:00Z", "2026-03-01T24:00:00Z",
        "2026-03-01T12:00:60Z", "2026-03-01T12:60:00Z", "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z", "2026-00-01T12:00:00Z", "2026-03-00T12:00:00Z",
        "2026-03-01T12:00:00.Z", "2026-03-01T12:00:00,5Z", "2026-03-01T12:00:00+24:00",
        "2026-03-01T12:00:00+01:60", "2026-03-01T12:00:00+0100", "0001-01-01T00:00:00+00:01",
        "0000-12-31T23:59:59Z", "9999-12-31T23:59:59-00:01", "٢٠٢٦-03-01T12:00:00Z",
        "2026-03-01T12:00:00ｚ", "2026-3-1T12:00:00Z", "yesterday",
    ]  # fmt: skip
    for stamp in (*stamps, "", f" {TS}", f"{TS}\n", "2026-03-01 12:00:00Z", "x" * 200):
        yield dump({**OBJECT, "ts": stamp})
        yield dump({**BOOLEAN, "expires": stamp})
    for stamp in ("", "2026-02-29T12:00:00Z", "2026-03-01T12:00:60Z"):
        yield dump({**UNSUBSCRIBE, "ts": stamp})
        yield dump({**NEAREST, "ts": stamp})
        yield dump({**ASK_TRENDING, "ts": stamp})
    # Past max_ahead: the clock refuses what is valid by itself.
    for event in EVERY:
        yield dump({**event, "ts": "2029-01-01T00:00:00Z"})
    durations = [
        "P", "PT", "P1", "1D", "PT1", "P1Y", "P1M", "P1W", "PT1.5H", "PT0S", "P0D",
        "PT0.0000001S", "P36501D", "PT99999999999S", "-PT1S", "+P1D", "p1d", "PT1H1D", "P1.5D",
        "PT٣S", "PT1,5S", "PT1S1M",
    ]  # fmt: skip
    for duration in (*durations, "", " PT1S", "PT1S "):
        yield dump({**TRENDING, "window": duration})
        yield dump({**TRENDING, "every": duration})
        yield dump({**ASK_BOOLEAN, "last": duration})
    yield dump({**TRENDING, "window": "P31DT0.000001S"})
    yield dump({**TRENDING, "every": "PT0.999999S"})
    yield dump({**TRENDING, "window": "PT10000.000001S", "every": "PT1S"})
    yield dump({**ASK_TRENDING, "last": "P1DT0.000001S"})
    yield dump({**ASK_NEAREST, "last": "P2D"})


def bad_regions() -> Iterator[bytes]:
    box = {"box": [0, 0, 1, 1]}
    for region in (
        {"box": [0, 1, 1, 0]}, {"box": []}, {"box": [0, 0, 1]}, {"box": [0, 0, 1, 1, 1]},
        {"box": [0, 0, 1, 91]}, {"box": [0, -91, 1, 1]}, {"box": [-181, 0, 1, 1]},
        {"box": [0, 0, 181, 1]}, {"box": [0, 0, 1, "1"]}, {"box": [0, 0, 1, True]},
        {"box": [0, None, 1, 1]}, {"box": box}, {"box": None}, {"Box": [0, 0, 1, 1]}, {"é": 1},
        {**box, "circle": CIRCLE}, {**box, "x": 1}, {"circle": {**CIRCLE, "radius_m": 0}},
        {"circle": {**CIRCLE, "radius_m": -1}}, {"circle": {**CIRCLE, "radius_m": 10**400}},
        {"circle": {**CIRCLE, "lon": 180.5}}, {"circle": {**CIRCLE, "lat": -90.5}},
        {"circle": {**CIRCLE, "x": 1}}, {"circle": {"lon": 0, "lat": 0}}, {"circle": [0, 0, 1]},
        {"circle": {**CIRCLE, "radius_m": "1"}}, {"circle": {**CIRCLE, "lat": True}},
        {"polygon": []}, {"polygon": RING}, {"polygon": [[]]}, {"polygon": [RING, []]},
        {"polygon": [RING[:3]]}, {"polygon": [RING[1:]]}, {"polygon": [[*RING[:3], [0, 1]]]},
        {"polygon": [[[0, 0, 5], *RING[1:]]]}, {"polygon": [[[0], *RING[1:]]]},
        {"polygon": [[*RING[:3], ["0", 0]]]}, {"polygon": [[*RING[:2], [181, 0], RING[0]]]},
        {"polygon": [[*RING[:2], [0, -91], RING[0]]]}, {"polygon": {"a": 1}}, {"polygon": None},
        {"polygon": [{"0": 1}]}, {"polygon": [RING, None]}, {}, [], 1, None, "box", True,
        {"box": list(range(40))}, {"polygon": "x" * 100},
    ):  # fmt: skip
        yield dump({**BOOLEAN, "region": region})
    for event in (TRENDING, ASK_BOOLEAN, ASK_TRENDING):
        yield dump({**event, "region": {"box": [0, 1, 1, 0]}})
        yield dump({**event, "region": {"circle": {**CIRCLE, "radius_m": 0}}})
        yield dump({**event, "region": {"polygon": [RING[:3]]}})


def bad_expressions() -> Iterator[bytes]:
    def nest(kind: str, levels: int) -> Any:
        return "x" if levels == 1 else {kind: [nest(kind, levels - 1)]}

    for where in (
        "", " ", "a AND", "OR a", "NOT", "a NOT", "()", "(a", "a)", "a AND )", "(AND a)", '"a',
        '""', '"!"', "!", "a !", "AND", "a OR", "a AND AND b", "a AND OR b",
        "(" * 65 + "a" + ")" * 65,
        "NOT " * 8 + "a", "(NOT " * 8 + "a" + ")" * 8, "NOT " * 7 + "a-b", " ".join("a" * 257),
        " OR ".join(["a"] * 257), "-".join("a" * 257), "☕", "a " * 50 + "!" + " b" * 50, "\u3000",
        "(a OR (b AND (c OR (d AND (e OR (f AND (g OR (h AND i))))))))",
        {"all": []}, {"any": []}, {"none": []}, {"all": "a"}, {"any": {"all": ["a"]}}, {"all": [1]},
        {"all": ["a"], "any": ["b"]}, {}, [], ["a"], 1, 1.5, None, True, {"ALL": ["a"]},
        {"not": ["a"]}, {"all": [""]}, {"all": ["a", {"any": ["b", "!"]}]}, {"all": [None]},
        {"all": [["a"]]}, nest("all", 9), nest("none", 9), {"all": [nest("any", 7), "NOT a-b"]},
        {"all": ["a"] * 257}, {"any": ["a-b"] * 129}, {"all": [nest("any", 8)] * 3},
        {"all": [{"any": ["a", {"none": ["b AND"]}]}]}, {"x" * 100: ["a"]},
    ):  # fmt: skip
        yield dump({**BOOLEAN, "where": where})
    for where in ("", "a AND", {"all": []}, nest("all", 9), 1):
        yield dump({**ASK_BOOLEAN, "where": where})


def bad_values() -> Iterator[bytes]:
    for event in (OBJECT, UNSUBSCRIBE, BOOLEAN, TRENDING, ASK_BOOLEAN):
        yield dump({**event, "id": ""})
        yield dump({**event, "id": "é" * 257})
        yield dump({**event, "id": None})
    for event in (NEAREST, RELEVANT, ASK_NEAREST, ASK_RELEVANT, TRENDING, ASK_TRENDING):
        for k in (0, -1, 1001, 10**20):
            yield dump({**event, "k": k})
        for raw in (b"3.0", b"true", b'"3"', b"null", b"1e1"):
            yield with_raw(event, k=raw)
    for event in (NEAREST, RELEVANT, ASK_NEAREST, ASK_RELEVANT):
        yield dump({**event, "lon": 180.5})
        yield dump({**event, "lat": -91})
        for keywords in ([], ["a"] * 65, [""], ["!"], ["coffee", "☕"], ["!" * 100], "coffee", [1]):
            yield dump({**event, "keywords": keywords})
    for event in (NEAREST, ASK_NEAREST):
        for mode in ("some", "", "ANY", None, 1):
            yield dump({**event, "mode": mode})
        for metres in (0, -1, -0.5, "1", True, None):
            yield dump({**event, "within_m": metres})
    for event in (RELEVANT, ASK_RELEVANT):
        for alpha in (-0.1, 1.5, 2, "1", True, None):
            yield dump({**event, "alpha": alpha})
        for metres in (0, -1, "1", True, None):
            yield dump({**event, "reach_m": metres})
    for limit in (0, -1, 10_001, "1", True, 1.0, None):
        yield dump({**ASK_BOOLEAN, "limit": limit})


def too_large() -> Iterator[bytes]:
    yield dump({**OBJECT, "text": "a" * 65_537})
    yield with_raw(OBJECT, data=b'"' + b"a" * 16_383 + b'"')
    yield with_raw(BOOLEAN, data=b'"' + b"a" * 16_383 + b'"')
    yield with_raw(BOOLEAN, where=b'{"all":[' * 200 + b'"x"' + b"]}" * 200)
    yield with_raw(OBJECT, lon=b"1" * 5000)
