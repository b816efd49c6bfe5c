"""Examples of the oracle itself, each quoting the sentence of the specification that it shows."""

import json
import math
from typing import Any

import pytest

from oracle import Outcome, default_analyzer, distance_m, print_time, read_time, replay

T0 = "2026-03-01T12:00:00Z"


def at(clock: str) -> str:
    return f"2026-03-01T{clock}Z"


def log(*events: dict[str, Any] | bytes) -> bytes:
    return b"".join(
        (event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n"
        for event in events
    )


def thing(id: Any = "o", ts: str = T0, text: Any = "coffee", **more: Any) -> dict[str, Any]:
    return {"type": "object", "id": id, "ts": ts, "lon": 0, "lat": 0, "text": text, **more}


def without(event: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != name}


def sub(id: str = "s", ts: str = T0, kind: str = "boolean", **more: Any) -> dict[str, Any]:
    if kind == "boolean" and not more.keys() & {"region", "where"}:
        more["where"] = "coffee"
    return {"type": "subscribe", "id": id, "ts": ts, "kind": kind, **more}


def unsub(id: str = "s", ts: str = T0) -> dict[str, Any]:
    return {"type": "unsubscribe", "id": id, "ts": ts}


def query(kind: str = "boolean", ts: str = T0, **more: Any) -> dict[str, Any]:
    return {"type": "query", "id": "q", "ts": ts, "kind": kind, "last": "PT1H", **more}


def nearest(k: Any = 1, **more: Any) -> dict[str, Any]:
    return sub(kind="nearest", **{"lon": 0, "lat": 0, "keywords": ["coffee"], "k": k, **more})


def relevant(k: int = 1, **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "lon": 0,
        "lat": 0,
        "keywords": ["coffee"],
        "k": k,
        "alpha": 0.5,
        **more,
    }
    return sub(kind="relevant", **fields)


def trending(**more: Any) -> dict[str, Any]:
    return sub(kind="trending", **{"k": 3, "window": "PT10M", "every": "PT10M", **more})


def pairs(outcome: Outcome) -> list[tuple[int, str]]:
    return [(result["seq"], result["subscription"]) for result in outcome.results]


def changes(outcome: Outcome) -> list[tuple[int, list[str], list[str]]]:
    return [
        (r["seq"], [one["object"] for one in r["add"]], [one["object"] for one in r["drop"]])
        for r in outcome.results
    ]


def dead(*events: dict[str, Any] | bytes, **options: Any) -> list[int]:
    return [letter["seq"] for letter in replay(log(*events), **options).dead]


def holds(where: Any, text: str) -> bool:
    outcome = replay(log(sub(where=where), thing(text=text)))
    assert outcome.dead == []
    return len(outcome.results) == 1


def is_valid_where(where: Any) -> bool:
    return dead(sub(where=where)) == []


# Section 2: lines and JSON


def test_the_example_log_of_section_2() -> None:
    outcome = replay(
        b'{"type":"object","id":"o1","ts":"2026-03-01T12:00:00Z","lon":-73.98,"lat":40.75,'
        b'"text":"Free coffee, 5th Ave!"}\n'
        b'{"type":"subscribe","id":"s1","ts":"2026-03-01T12:00:01Z","kind":"boolean","region":'
        b'{"box":[-74.1,40.6,-73.8,40.9]},"where":"coffee AND (free OR sale)"}\n'
        b'{"type":"object","id":"o2","ts":"2026-03-01T12:00:02Z","lon":-73.98,"lat":40.75,'
        b'"text":"Coffee on SALE"}\n'
        b'{"type":"unsubscribe","id":"s1","ts":"2026-03-01T12:10:00Z"}\n'
        b'{"type":"query","id":"q1","ts":"2026-03-01T12:10:01Z","kind":"nearest","lon":-73.9,'
        b'"lat":40.7,"keywords":["coffee"],"k":3,"last":"PT1H"}'
    )
    distance = distance_m(-73.9, 40.7, -73.98, 40.75)
    assert outcome == Outcome(
        [
            {"seq": 2, "type": "match", "subscription": "s1", "object": "o2"},
            {
                "seq": 4,
                "type": "answer",
                "query": "q1",
                "objects": [
                    {"object": "o1", "distance_m": distance},
                    {"object": "o2", "distance_m": distance},
                ],
            },
        ],
        [],
        0,
    )


def test_lines_end_at_newline_only() -> None:
    """`seq` is the line's number, from 0; an empty line is invalid."""
    one = json.dumps(thing()).encode()
    assert replay(b"").dead == []
    assert [letter["seq"] for letter in replay(b"\n").dead] == [0]
    assert replay(one).dead == []
    assert replay(one + b"\n").dead == []
    assert replay(one + b"\r\n" + one).dead == []
    assert [letter["seq"] for letter in replay(one + b"\n\n" + one).dead] == [1]
    assert [letter["seq"] for letter in replay(one + b"\r" + one).dead] == [0]


def test_dead_letter_keeps_the_line_as_received() -> None:
    """Bytes that are not UTF-8 appear there as U+FFFD."""
    [letter] = replay(b'{"id":"\xff"} \r\n').dead
    assert (letter["seq"], letter["event"]) == (0, '{"id":"�"} \r')


@pytest.mark.parametrize(
    "data",
    [
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"[-1e999]",
        b"1" * 400,
        b"1" * 5000,
        b'{"a":{"b":1,"b":1}}',
        b'{"a":1,"\\u0061":2}',
        b'"\\ud800"',
        b'{"\\udc00":1}',
        b'"\\udc00\\ud800"',
        b"01",
        b"'a'",
        b'"\t"',
    ],
)
def test_bad_json_is_invalid_even_inside_data(data: bytes) -> None:
    """Bad JSON, a repeated key, a lone surrogate, a number that is not finite: anywhere."""
    whole = json.dumps(thing()).encode()[:-1] + b',"data":' + data + b"}"
    assert dead(whole) == [0]


@pytest.mark.parametrize("data", [b"null", b'"\\ud83d\\ude00"', b"1e-999", b"[[], {}]", b"-0.0"])
def test_any_json_value_may_be_data(data: bytes) -> None:
    """`data` (any JSON value)."""
    assert dead(json.dumps(thing()).encode()[:-1] + b',"data":' + data + b"}") == []


def test_repeated_top_level_key_is_invalid() -> None:
    """A repeated key is invalid."""
    assert dead(json.dumps(thing()).encode()[:-1] + b',"id":"o"}') == [0]


def test_data_limit() -> None:
    """At most 16 KiB as compact UTF-8 JSON."""
    limit = 16 * 1024
    assert dead(thing(data="a" * (limit - 2)), thing(data="a" * (limit - 1))) == [1]
    assert dead(thing(data="é" * (limit // 2 - 1)), thing(data="é" * (limit // 2))) == [1]
    spaced = json.dumps(thing()).encode()[:-1] + b',"data":[' + b" " * limit + b"1]}"
    assert dead(spaced) == []
    deep = b"[" * (limit // 2) + b"]" * (limit // 2)
    assert dead(json.dumps(thing()).encode()[:-1] + b',"data":' + deep + b"}") == []
    assert dead(json.dumps(thing()).encode()[:-1] + b',"data":[' + deep + b"]}") == [0]


def test_text_limit() -> None:
    """A text over 64 KiB of UTF-8 is invalid."""
    assert dead(thing(text="a" * 65536), thing(text="a" * 65537), thing(text="é" * 32769)) == [1, 2]


# Section 2: fields


@pytest.mark.parametrize(
    "event",
    [
        thing(id=""),
        thing(id="é" * 257),
        thing(id=1),
        thing(lon=True),
        thing(lon="1"),
        thing(lon=180.1),
        thing(lat=-90.1),
        thing(lon=None),
        thing(text=None),
        thing(colour="red"),
        thing(expires=T0),
        without(thing(), "text"),
        without(thing(), "ts"),
        {**thing(), "type": "thing"},
        without(thing(), "type"),
        sub(kind="range"),
        without(sub(), "where"),
        sub(region=None),
        sub(where=None),
        sub(keywords=["a"]),
        sub(expires=None),
        sub(expires="soon"),
        unsub(""),
        {**unsub(), "data": 1},
        nearest(k=0),
        nearest(k=1001),
        nearest(k=True),
        nearest(k="3"),
        nearest(k=3.0),
        nearest(keywords=[]),
        nearest(keywords=["a"] * 65),
        nearest(keywords=[""]),
        nearest(keywords=["coffee", "-"]),
        nearest(keywords="coffee"),
        nearest(mode="some"),
        nearest(within_m=0),
        nearest(alpha=0.5),
        relevant(alpha=1.1),
        relevant(alpha=-0.1),
        relevant(reach_m=0),
        without(relevant(), "alpha"),
        trending(window="P31DT0.000001S"),
        trending(every="PT0.999999S"),
        trending(window="PT10000.000001S", every="PT1S"),
        trending(keywords=["a"]),
        query(),
        query(where="a", last="P1DT0.000001S"),
        query(where="a", limit=0),
        query(where="a", limit=10001),
        query(where="a", limit=1.0),
        query(where="a", data=1),
        query(where="a", expires=T0),
        without(query(where="a"), "last"),
        query("trending", k=1, every="PT1M", window="PT1M"),
        query("nearest", k=1, lon=0, lat=0, keywords=["a"], limit=3),
        sub(last="PT1H"),
        b"[]",
        b"1",
        b"",
        b" ",
    ],
)
def test_invalid_events(event: dict[str, Any] | bytes) -> None:
    """A missing or unknown field, a wrong type, a number out of range, an empty keyword, ..."""
    assert dead(event) == [0]


@pytest.mark.parametrize(
    "event",
    [
        thing(id="é" * 256),
        thing(lon=-180, lat=90.0, text="", data=None),
        sub(data={"a": 1}, expires=T0),
        nearest(k=1000, within_m=0.001, mode="all", keywords=["a b"] * 64),
        relevant(alpha=0, reach_m=1),
        trending(window="P31D", every="PT1H"),
        trending(window="PT10000S", every="PT1S"),
        unsub("x" * 256),
        query(where="a", last="P1D", limit=10000),
        query(region={"box": [0, 0, 0, 0]}),
        query("nearest", k=1, lon=0, lat=0, keywords=["a"], mode="all", within_m=1),
        query("relevant", k=1, lon=0, lat=0, keywords=["a"], alpha=1, reach_m=5),
        query("trending", k=1),
    ],
)
def test_valid_events(event: dict[str, Any]) -> None:
    assert dead(event) == []


def test_an_invalid_event_has_no_effect() -> None:
    """It has no effect, does not move `now`, keeps its `seq`."""
    outcome = replay(
        log(
            sub(expires=at("13:00:00")),
            sub(ts=at("14:00:00"), where="tea", k=1),
            thing(),
        )
    )
    assert [letter["seq"] for letter in outcome.dead] == [1]
    assert pairs(outcome) == [(2, "s")]


def test_refused_kinds_are_dead_letters() -> None:
    events = [nearest(ts=at("13:00:00")), sub(expires=at("12:30:00"))]
    outcome = replay(log(*events, thing()), kinds=frozenset({"boolean"}))
    assert [letter["seq"] for letter in outcome.dead] == [0]
    assert pairs(outcome) == [(2, "s")]


# Section 2: times


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-03-01t12:00:00z", T0),
        ("2026-03-01T14:30:00+02:30", T0),
        ("2026-03-01T12:00:00-00:00", T0),
        ("2026-03-01T12:00:00.0000009Z", T0),
        ("2026-03-01T12:00:00.1234567Z", "2026-03-01T12:00:00.123456Z"),
        ("2024-02-29T00:00:00Z", "2024-02-28T23:00:00-01:00"),
        ("0000-12-31T23:30:00-01:00", "0001-01-01T00:30:00Z"),
    ],
)
def test_times(text: str, same: str) -> None:
    """RFC 3339, microsecond precision, further digits are cut off, `t` and `z` are allowed."""
    assert read_time(text) == read_time(same)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T12:00:00",
        "2026-03-01 12:00:00Z",
        "2026-03-01T12:00Z",
        "2026-03-01T12:00:60Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-03-01T12:00:00.Z",
        "2026-03-01T12:00:00,5Z",
        "2026-03-01T12:00:00+01:60",
        "2026-03-01T12:00:00+24:00",
        "2026-03-01T12:00:00+0100",
        "2026-03-01T12:00:00Z ",
        "2026-03-01T12:00:00Z\n",
        "２０２６-03-01T12:00:00Z",
        "0000-06-01T12:00:00Z",
        "0001-01-01T00:30:00+01:00",
        "9999-12-31T23:30:00-01:00",
        "+2026-03-01T12:00:00Z",
        "",
    ],
)
def test_invalid_times(text: str) -> None:
    """Second 60, hour 24, offset minutes above 59, years outside 0001-9999 in UTC are invalid."""
    assert dead(thing(ts=text)) == [0]


def test_time_is_printed_in_utc_with_a_fraction_only_when_not_zero() -> None:
    assert print_time(read_time("2026-03-01T13:00:00.000+01:00")) == T0
    assert print_time(read_time("0001-01-01T00:00:00.5Z")) == "0001-01-01T00:00:00.500000Z"


@pytest.mark.parametrize(
    "last", ["P1D", "PT24H", "PT1440M", "PT86400.0000009S", "P0DT1S", "PT0.000001S", "PT1H1S"]
)
def test_durations(last: str) -> None:
    """`PnDTnHnMnS`, further digits are cut off."""
    assert dead(query(where="a", last=last)) == []


@pytest.mark.parametrize(
    "last",
    [
        "P", "PT", "P1DT", "P0D", "PT0.0000009S", "PT1.5H", "P1W", "P1M", "P1Y", "-PT1S", "1D",
        "PT1S1M", "PT.5S", "PT1.S", "P1D1H", "PT１S", "P1D ", "", 3600, "P" + "9" * 5000 + "D",
    ],
)  # fmt: skip
def test_invalid_durations(last: Any) -> None:
    """Greater than zero; only seconds may have a fraction; digits are ASCII."""
    assert dead(query(where="a", last=last)) == [0]


def test_longest_duration() -> None:
    """At most P36500D."""
    settings = {"retention": "P36500D"}
    assert dead(query(where="a", last="P36500D"), settings=settings) == []
    assert dead(query(where="a", last="P36500DT0.000001S"), settings=settings) == [0]


def test_max_ahead() -> None:
    """A `ts` more than `max_ahead` past the `now` before it is invalid; the first event is free."""
    settings = {"max_ahead": "PT1H"}
    events: list[dict[str, Any] | bytes] = [
        b"",
        thing(ts=at("12:00:00")),
        thing(ts=at("13:00:00.000001")),
        thing(ts=at("11:00:00")),
        thing(ts=at("13:00:00")),
        unsub(ts=at("14:00:00.000001")),
    ]
    assert dead(*events, settings=settings) == [0, 2, 5]
    far = sub(expires="9999-01-01T00:00:00Z")
    assert dead(far, settings=settings) == []


# Section 2: when a subscription is live


def test_live_from_the_event_after_subscribe_until_the_one_that_ends_it() -> None:
    outcome = replay(log(thing(), sub(), thing(), unsub(), thing()))
    assert pairs(outcome) == [(2, "s")]


def test_subscribe_with_a_live_id_replaces() -> None:
    """The old one ends and the new one starts at this event, of whatever kind."""
    outcome = replay(
        log(sub(where="coffee"), sub(where="tea"), thing(), thing(text="tea"), unsub())
    )
    assert pairs(outcome) == [(3, "s")]
    assert outcome.idle_unsubscribes == 0


def test_expires() -> None:
    """Live when `now` at i < `expires`: the event's own time counts, late ones do not help."""
    outcome = replay(
        log(
            sub(expires=at("12:10:00")),
            thing(ts=at("12:09:59.999999")),
            thing(ts=at("12:10:00")),
            thing(ts=at("12:05:00")),
        )
    )
    assert pairs(outcome) == [(1, "s")]


def test_an_expired_subscription_replaces_a_live_one_and_never_becomes_live() -> None:
    """One whose `expires` <= `now` is valid, replaces a live one and never becomes live."""
    outcome = replay(log(sub(), sub(expires=T0), thing(), unsub()))
    assert outcome == Outcome([], [], 1)
    assert replay(log(thing(), relevant(expires=T0))).results == []


def test_idle_unsubscribes_are_counted_and_move_now() -> None:
    """`unsubscribe` of an id that is not live takes no effect; it is counted, not an error."""
    outcome = replay(
        log(
            unsub("nothing"),
            sub(expires=at("12:10:00")),
            unsub("s", ts=at("12:10:00")),
            sub("late", ts=T0, expires=at("12:05:00")),
            unsub("late", ts=T0),
        )
    )
    assert outcome == Outcome([], [], 3)


# Section 3: space


def test_distance_is_rounded_to_millimetres() -> None:
    """`rint(1000 * d) / 1000` is the distance everywhere."""
    assert distance_m(0, 0, 180, 0) == round(math.pi * 6371008.8, 3)
    assert distance_m(0, 0, 0, 1) == 111195.080
    assert distance_m(180, 10, -180, 10) == 0.0


def inside(region: dict[str, Any], lon: float, lat: float) -> bool:
    outcome = replay(log(sub(region=region), thing(lon=lon, lat=lat)))
    assert outcome.dead == []
    return len(outcome.results) == 1


def test_box_is_closed_and_may_cross_the_antimeridian() -> None:
    """Closed on all sides; west > east crosses; 180 and -180 are different longitudes."""
    assert inside({"box": [1, 2, 3, 4]}, 1, 4)
    assert not inside({"box": [1, 2, 3, 4]}, 3.0000001, 4)
    crossing = {"box": [170, -10, -170, 10]}
    assert [inside(crossing, lon, 0) for lon in (169, 170, 180, -180, -170, 0)] == [
        False, True, True, True, True, False,
    ]  # fmt: skip
    assert not inside({"box": [170, 0, 180, 1]}, -180, 0)


def test_circle_holds_distances_up_to_its_radius() -> None:
    """distance <= `radius_m`, of the rounded distance."""
    circle = {"lon": 0, "lat": 0, "radius_m": 111195.080}
    assert inside({"circle": circle}, 0, 1)
    assert not inside({"circle": {**circle, "radius_m": 111195.0799}}, 0, 1)


def test_polygon_is_even_odd_with_closed_edges() -> None:
    """Even-odd; a point on any edge is inside, on a hole's edge too."""
    square = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]
    hole = [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]
    region = {"polygon": [square, hole]}
    answers = {(1, 1): 1, (5, 5): 0, (4, 5): 1, (6, 6): 1, (10, 3): 1, (0, 0): 1, (11, 5): 0}
    for (lon, lat), expected in answers.items():
        assert inside(region, lon, lat) == bool(expected), (lon, lat)
    diagonal = {"polygon": [[[0, 0], [10, 10], [0, 10], [0, 0]]]}
    assert [inside(diagonal, 3, lat) for lat in (2, 3, 4)] == [False, True, True]
    twice = {"polygon": [square, square]}
    assert not inside(twice, 5, 5)
    assert inside(twice, 0, 5)


@pytest.mark.parametrize(
    "region",
    [
        {},
        [],
        {"box": [0, 0, 1, 1], "circle": {"lon": 0, "lat": 0, "radius_m": 1}},
        {"square": [0, 0, 1, 1]},
        {"box": [0, 1, 1, 0]},
        {"box": [0, 0, 1]},
        {"box": [0, 0, 181, 1]},
        {"box": [0, 0, True, 1]},
        {"circle": {"lon": 0, "lat": 0, "radius_m": 0}},
        {"circle": {"lon": 0, "lat": 0}},
        {"circle": {"lon": 0, "lat": 0, "radius_m": 1, "unit": "m"}},
        {"polygon": []},
        {"polygon": [[]]},
        {"polygon": [[[0, 0], [1, 0], [0, 0]]]},
        {"polygon": [[[0, 0], [1, 0], [1, 1], [0, 1]]]},
        {"polygon": [[[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0]]]},
        {"polygon": [[[0, 0], [1, 0], [1, 91], [0, 0]]]},
    ],
)
def test_invalid_regions(region: Any) -> None:
    assert dead(sub(region=region)) == [0]


# Section 4: text


def test_analyzer() -> None:
    """NFKC, case folding, runs of word characters."""
    assert default_analyzer("Ｃafé STRASSE straße_1, a-b") == [
        "café", "strasse", "strasse_1", "a", "b",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "yes", "no"),
    [
        ("a b", "b a", "a"),
        ("a AND b OR c", "c", "a"),
        ("a OR b AND c", "a", "b"),
        ("a b OR c d", "c d", "a d"),
        ("NOT a b", "b", "a b"),
        ("a NOT b", "a", "a b"),
        ("NOT a OR b", "a b", "a"),
        ("NOT (a OR b)", "c", "b"),
        ("NOT NOT a", "a", "b"),
        ("NOT a", "", "a"),
        ("a and b", "a and b", "a b"),
        ('"AND"', "and", "a"),
        ('"a OR b"', "a or b", "a b"),
        ("a-b", "a b", "a"),
        ("NOT a-b", "a", "a b"),
        ('a"b c"d', "a b c d", "a b c"),
        ("a(b)c", "a b c", "a b"),
        ("NOT(a)", "b", "a"),
        ('a OR"b"', "b", "c"),
        ("(a)(b)", "a b", "a"),
        ("AND, a", "and a", "a"),
        ("a\tOR\nb", "b", "c"),
        ("ＣＡＦÉ", "café", "cafe"),
        ({"all": ["a", "b"]}, "a b", "a"),
        ({"any": ["a", {"none": ["b", "c"]}]}, "d", "b"),
        ({"none": ["a", "b"]}, "", "b"),
        ({"all": ["a OR b", "c"]}, "b c", "b"),
    ],
)
def test_expressions(where: Any, yes: str, no: str) -> None:
    """NOT binds tightest, then AND, then OR; quotes and parentheses end the word before them."""
    assert holds(where, yes)
    assert not holds(where, no)


@pytest.mark.parametrize(
    "where",
    [
        "", " ", "-", "a - b", '""', '"', 'a "b', "(a", "a)", "()", "a (", "AND", "a AND", "OR a",
        "a OR OR b", "NOT", "a AND OR b", "a NOT", {}, {"all": []}, {"any": "a"}, {"all": [1]},
        {"all": ["a"], "any": ["b"]}, {"not": ["a"]}, {"all": ["a", ""]}, [], 1, True,
    ],
)  # fmt: skip
def test_invalid_expressions(where: Any) -> None:
    """One that it turns into none is invalid; must balance; an empty list is invalid."""
    assert not is_valid_where(where)


def test_depth() -> None:
    """A word is 1, one of several tokens 2; each operator adds 1; parentheses add none."""
    assert is_valid_where("NOT " * 7 + "a")
    assert not is_valid_where("NOT " * 8 + "a")
    assert is_valid_where("NOT " * 6 + "a-b")
    assert not is_valid_where("NOT " * 7 + "a-b")
    assert is_valid_where(" AND ".join(["a"] * 100))
    assert is_valid_where("NOT " * 5 + "(a b OR c)")
    assert not is_valid_where("NOT " * 6 + "(a b OR c)")
    tree: Any = "a"
    for _ in range(7):
        tree = {"all": [tree]}
    assert is_valid_where(tree)
    assert not is_valid_where({"none": [tree]})


def test_parentheses_nest_at_most_64() -> None:
    assert is_valid_where("(" * 64 + "a" + ")" * 64)
    assert not is_valid_where("(" * 65 + "a" + ")" * 65)
    assert is_valid_where("(a) " * 200)


def test_width_counts_tokens_repeats_included() -> None:
    assert is_valid_where("a " * 256)
    assert not is_valid_where("a " * 257)
    assert not is_valid_where({"any": ["a-a " * 64, "b-b " * 64, "c"]})


# Section 5: boolean


def test_boolean_needs_region_and_where_both_when_given() -> None:
    region = {"box": [0, 0, 1, 1]}
    events = [sub(region=region, where="tea"), thing(text="tea"), thing(), thing(text="tea", lon=2)]
    assert pairs(replay(log(*events))) == [(1, "s")]
    assert pairs(replay(log(sub(region=region), thing(text="")))) == [(1, "s")]


def test_with_data_adds_the_objects_data_beside_each_object() -> None:
    events = log(sub(data="mine"), thing(data=[1]), thing(), thing(data=None))
    assert [result.get("data", "none") for result in replay(events, with_data=True).results] == [
        [1], "none", None,
    ]  # fmt: skip
    assert all("data" not in result for result in replay(events).results)


def test_results_are_sorted_by_subscription_id() -> None:
    events = [sub("b"), sub("a"), sub("é"), sub("B"), thing()]
    assert pairs(replay(log(*events))) == [(4, "B"), (4, "a"), (4, "b"), (4, "é")]


# Section 6: nearest


def test_nearest_result_is_the_k_smallest_by_distance_then_seq() -> None:
    """Each object that enters it gives an update; `drop` is empty until there are more than k."""
    outcome = replay(
        log(
            thing("before"),
            nearest(k=2),
            thing("far", lon=3),
            thing("other", text="tea"),
            thing("farther", lon=4),
            thing("near", lon=1),
            thing("tie", lon=3),
            thing("there"),
        )
    )
    assert outcome.results[0] == {
        "seq": 2,
        "type": "update",
        "subscription": "s",
        "add": [{"object": "far", "distance_m": distance_m(0, 0, 3, 0)}],
        "drop": [],
    }
    assert changes(outcome) == [
        (2, ["far"], []),
        (4, ["farther"], []),
        (5, ["near"], ["farther"]),
        (7, ["there"], ["far"]),
    ]


def test_nearest_mode_and_within() -> None:
    """`all` has every term; objects farther away than `within_m` are not candidates."""
    asked = nearest(k=9, keywords=["Hot coffee", "milk"], mode="all", within_m=111195.080)
    outcome = replay(
        log(
            asked,
            thing("some", text="hot coffee"),
            thing("edge", text="coffee hot milk", lat=1),
            thing("out", text="coffee hot milk", lat=1.0001),
        )
    )
    assert changes(outcome) == [(2, ["edge"], [])]


# Section 7: relevant


def test_relevant_over_a_count_window() -> None:
    """Initial result at its own seq; arrivals and expiries of an event applied together."""
    settings = {"window": {"count": 2}}
    outcome = replay(
        log(
            thing("a"),
            thing("b", text="coffee tea"),
            relevant(k=1),
            thing("c", text="tea"),
            thing("d", text="tea"),
            thing("e"),
            thing("f"),
        ),
        settings=settings,
    )
    assert changes(outcome) == [
        (2, ["a"], []),
        (3, ["b"], ["a"]),
        (4, [], ["b"]),
        (5, ["e"], []),
        (6, ["f"], ["e"]),
    ]


def test_relevant_over_a_time_window_slides_at_every_valid_event() -> None:
    """Those with `ts` > `now` - T; no update from the event that ends the subscription."""
    settings = {"window": {"time": "PT1H"}}
    start = [thing("a"), relevant(k=2), thing("late", ts="2026-03-01T10:00:00Z")]
    slide = unsub("nothing", ts=at("13:00:00"))
    outcome = replay(log(*start, slide), settings=settings)
    assert changes(outcome) == [(1, ["a"], []), (3, [], ["a"])]
    ended = replay(log(*start, unsub("s", ts=at("13:00:00"))), settings=settings)
    assert changes(ended) == [(1, ["a"], [])]
    start[1]["expires"] = at("13:00:00")
    assert changes(replay(log(*start, slide), settings=settings)) == [(1, ["a"], [])]


def test_relevant_order_is_score_then_newest() -> None:
    """(score descending, seq descending)."""
    asked = relevant(k=3, reach_m=2 * distance_m(0, 0, 90, 0))
    events = [thing("a"), thing("b"), thing("c", lon=90), asked]
    [update] = replay(log(*events)).results
    assert [one["object"] for one in update["add"]] == ["b", "a", "c"]
    assert [one["score"] for one in update["add"]] == [1.0, 1.0, 0.75]


def test_relevant_score_with_a_lexicon() -> None:
    """idf(t) = ln(1 + N / (1 + df(t))) from the setting `lexicon`."""
    lexicon = {"documents": 10, "df": {"coffee": 4, "tea": 1}}
    tea, coffee, milk = math.log(1 + 10 / 2), math.log(1 + 10 / 5), math.log(1 + 10)
    events = [thing("a", text="coffee milk"), relevant(keywords=["coffee", "tea"], alpha=0.25)]
    [update] = replay(log(*events), settings={"lexicon": lexicon}).results
    expected = 0.25 + 0.75 * coffee**2 / (math.hypot(coffee, tea) * math.hypot(coffee, milk))
    assert update["add"] == [{"object": "a", "score": pytest.approx(expected, abs=2e-9)}]


def test_relevant_score_is_zero_text_when_a_norm_is_zero() -> None:
    """TSim is 0 when a norm is 0; SSim = max(0, 1 - distance / reach_m)."""
    settings = {"lexicon": {"documents": 0, "df": {}}, "reach_m": 1000}
    [update] = replay(log(thing(lon=1), relevant()), settings=settings).results
    assert update["add"] == [{"object": "o", "score": 0.0}]


def test_replacing_a_relevant_subscription_tells_the_new_result_only() -> None:
    """The event that ends or replaces a subscription gives no `update` for the old one."""
    outcome = replay(log(thing("a"), relevant(), relevant(), relevant(keywords=["tea"])))
    assert changes(outcome) == [(1, ["a"], []), (2, ["a"], [])]


# Section 8: trending


def reports(outcome: Outcome) -> list[tuple[int, str, list[list[Any]]]]:
    return [(r["seq"], r["at"], r["terms"]) for r in outcome.results]


def test_report_is_made_before_the_first_event_past_its_time() -> None:
    """Just before the first event whose `now` > `t_n` is applied, and carries that event's seq."""
    outcome = replay(
        log(
            thing("before"),
            trending(k=2),
            thing(ts=at("12:00:00"), text="b a a"),
            thing(ts=at("12:10:00"), text="c a"),
            thing(ts=at("12:05:00"), text="c"),
            thing(ts=at("12:20:00.000001"), text="d"),
            thing(ts=at("12:30:00.000001")),
        )
    )
    # The one with ts 12:00:00 is just out of the first window, which is open at its start.
    assert reports(outcome) == [
        (5, at("12:10:00"), [["c", 2], ["a", 1]]),
        (6, at("12:30:00"), [["d", 1]]),
    ]


def test_report_counts_objects_without_terms_and_the_region() -> None:
    """Objects with no term count as objects (`terms` may be `[]`)."""
    asked = trending(region={"box": [0, 0, 1, 1]})
    events = [thing(ts=at("12:01:00"), text="!"), thing(ts=at("12:11:00"), text="tea", lon=5)]
    end = unsub(ts=at("14:00:00"))
    assert reports(replay(log(asked, *events, end))) == [(2, at("12:10:00"), [])]


def test_reports_due_before_the_end_are_still_made() -> None:
    """Reports due before it are still made; due while it is live (`t_n` < `expires`)."""
    events = [thing(ts=at("12:01:00")), unsub(ts=at("12:10:00.000001"))]
    assert len(replay(log(trending(), *events)).results) == 1
    assert len(replay(log(trending(), *events[:1], unsub(ts=at("12:10:00")))).results) == 0
    assert len(replay(log(trending(expires=at("12:10:00")), *events)).results) == 0
    assert len(replay(log(trending(expires=at("12:10:00.000001")), *events)).results) == 1
    again = trending(ts=at("12:30:00"))
    assert [r["seq"] for r in replay(log(trending(), *events[:1], again)).results] == [2]


def test_a_jump_of_a_year_skips_to_the_next_due_time() -> None:
    """It costs nothing; reports of one event are sorted by `at` as time."""
    outcome = replay(
        log(
            trending(window="PT2S", every="PT1S"),
            thing(ts="2026-03-01T12:00:00.5Z"),
            thing(ts="2027-03-01T12:00:01.5Z", text="tea"),
            unsub(ts="2028-02-29T12:00:00Z"),
        )
    )
    assert reports(outcome) == [
        (2, at("12:00:01"), [["coffee", 1]]),
        (2, at("12:00:02"), [["coffee", 1]]),
        (3, "2027-03-01T12:00:02Z", [["tea", 1]]),
        (3, "2027-03-01T12:00:03Z", [["tea", 1]]),
    ]


def test_report_times_count_from_the_subscriptions_own_ts() -> None:
    """`t_n = ts + n * every`, of a subscription that came late, and with a fraction."""
    outcome = replay(
        log(
            thing(ts=at("12:09:00")),
            trending(ts="2026-03-01T12:00:00.25Z", every="PT5M"),
            thing(ts=at("12:04:00"), text="tea"),
            thing(ts=at("12:11:00")),
        )
    )
    assert reports(outcome) == [(3, "2026-03-01T12:10:00.250000Z", [["tea", 1]])]


# Section 9: snapshot queries


def test_boolean_query_is_newest_first_and_limited() -> None:
    """`now - last` < `ts` <= `now`; `total` counts all."""
    outcome = replay(
        log(
            thing("edge", ts=at("11:00:00")),
            thing("a", ts=at("11:00:00.000001")),
            thing("b", ts=at("12:00:00")),
            thing("tea", ts=at("12:00:00"), text="tea"),
            thing("c", ts=at("11:30:00")),
            query(where="coffee", limit=2),
            thing("after"),
        )
    )
    assert outcome.results == [
        {
            "seq": 5,
            "type": "answer",
            "query": "q",
            "total": 3,
            "objects": [{"object": "c"}, {"object": "b"}],
        }
    ]


def test_queries_are_always_answered() -> None:
    """Always answered, if empty."""
    place: dict[str, Any] = {"lon": 0, "lat": 0, "keywords": ["a"], "k": 1}
    asked = [
        query(where="a"),
        query("nearest", **place),
        query("relevant", alpha=1, **place),
        query("trending", k=1),
    ]
    assert [without(result, "query") for result in replay(log(*asked)).results] == [
        {"seq": 0, "type": "answer", "total": 0, "objects": []},
        {"seq": 1, "type": "answer", "objects": []},
        {"seq": 2, "type": "answer", "objects": []},
        {"seq": 3, "type": "answer", "terms": []},
    ]


def test_ranked_and_trending_queries() -> None:
    """Order as in sections 6, 7 and 8; a query ignores the sliding window."""
    place: dict[str, Any] = {"lon": 0, "lat": 0, "keywords": ["coffee"], "k": 2}
    events = [thing("a", lon=1), thing("b"), thing("c"), thing("d", text="tea")]
    asked = [
        query("nearest", **place),
        query("relevant", alpha=0.5, **place),
        query("trending", k=2, region={"box": [0, 0, 0, 0]}),
    ]
    near, top, terms = replay(log(*events, *asked), settings={"window": {"count": 1}}).results
    assert near["objects"] == [
        {"object": "b", "distance_m": 0.0},
        {"object": "c", "distance_m": 0.0},
    ]
    assert top["objects"] == [{"object": "c", "score": 1.0}, {"object": "b", "score": 1.0}]
    assert terms["terms"] == [["coffee", 2], ["tea", 1]]


def test_a_query_moves_now_and_ends_nothing() -> None:
    """`now` at event i is the largest `ts` of the valid events up to and including i."""
    outcome = replay(
        log(sub(expires=at("13:00:00")), query(where="a", ts=at("13:00:00")), thing(), unsub())
    )
    assert [result["type"] for result in outcome.results] == ["answer"]
    assert outcome.idle_unsubscribes == 1
