"""Geofences of Tile38 as subscriptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imports import (
    NUMBERS,
    SQUARE,
    THINGS,
    WHOLE,
    Test,
    Thing,
    found_by,
    in_box,
    in_ring,
    metres_between,
    notes_of,
    translate_fences,
)
from placewire.model.errors import Unusable
from profiles import examples

EXAMPLES = 120


# Fences of Tile38


@pytest.mark.parametrize(
    ("area", "region"),
    [
        ("POINT 33 -112 500", {"circle": {"lon": -112, "lat": 33, "radius_m": 500}}),
        ("CIRCLE 33 -112 500", {"circle": {"lon": -112, "lat": 33, "radius_m": 500}}),
        ("BOUNDS 33 -115 34 -114", {"box": [-115, 33, -114, 34]}),
        ("BOUNDS BOUNDS 33 -115 34 -114", {"box": [-115, 33, -114, 34]}),
        ("IDS BOUNDS 33 -115 34 -114", {"box": [-115, 33, -114, 34]}),
        ("HASH ezs42", {"box": [-5.625, 42.5830078125, -5.5810546875, 42.626953125]}),
        ("TILE 0 0 1", {"box": [-180, 0, 0, 85.05112878]}),
        ("QUADKEY 3", {"box": [0, -85.05112878, 180, 0]}),
        ('OBJECT {"type":"Polygon","coordinates":[[[0,0],[2,0],[2,2],[0,2],[0,0]]]}',
         {"polygon": [SQUARE]}),
        ('OBJECT {"type": "Polygon", "coordinates": [[[0,0], [2,0], [2,2], [0,2], [0,0]]]}',
         {"polygon": [SQUARE]}),
        ("OBJECT '{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":[1,2]}}'",
         {"box": [1, 2, 1, 2]}),
        (r'OBJECT "{\"type\":\"Point\",\"coordinates\":[1,2,30]}"', {"box": [1, 2, 1, 2]}),
    ],
)  # fmt: skip
def test_areas_of_fences(file: Path, area: str, region: Any) -> None:
    verb = "NEARBY" if area.startswith("POINT") else "within"
    (outcome,) = translate_fences(file, f"SETCHAN c {verb} fleet FENCE DETECT inside {area}\n")
    assert outcome.refusal is None, str(outcome.refusal)
    (event,) = outcome.events
    assert event["region"] == region
    assert "where" not in event


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("NEARBY fleet FENCE ROAM fleet * 500", "ROAM"),
        ("WITHIN fleet FENCE MATCH truck* BOUNDS 0 0 1 1", "MATCH"),
        ("WITHIN fleet FENCE WHERE speed 1 2 BOUNDS 0 0 1 1", "WHERE has no counterpart"),
        ("WITHIN fleet FENCE DETECT exit,outside BOUNDS 0 0 1 1", "DETECT without inside or enter"),
        ("WITHIN fleet FENCE DETECT sideways BOUNDS 0 0 1 1", "unknown DETECT"),
        ("WITHIN fleet FENCE COMMANDS del BOUNDS 0 0 1 1", "COMMANDS"),
        ("WITHIN fleet BOUNDS 0 0 1 1", "without FENCE"),
        ("WITHIN fleet FENCE GET areas centre", "not in this file"),
        ("WITHIN fleet FENCE SECTOR 0 0 10 0 90", "SECTOR"),
        ("NEARBY fleet FENCE POINT 0 0", "without a distance"),
        ("WITHIN fleet FENCE BOUNDS 0 0 1", "cut short"),
        ("WITHIN fleet FENCE DETECT", "cut short"),
        ("WITHIN fleet FENCE BOUNDS 0 10 1 1", "empty"),
        ("WITHIN fleet FENCE BOUNDS 0 0 1 1 more", "words after the area"),
        ("WITHIN fleet FENCE OBJECT {", "unreadable GeoJSON"),
        ("WITHIN fleet FENCE HASH aaa", "not a geohash"),
        ("WITHIN fleet FENCE TILE 5 0 1", "not a tile"),
        ("WITHIN fleet FENCE QUADKEY 4", "not a quadkey"),
        ("WITHIN fleet FENCE CIRCLE 0 0 1e9", "half round the earth"),
        ("WITHIN fleet FENCE CIRCLE 0 0 nan", "must be a number"),
        ("SETHOOK name", "too few"),
        ('SETCHAN "open WITHIN fleet', "a quote is not closed"),
        ("PDELHOOK *", "not followed"),
    ],
)
def test_fences_without_a_counterpart(file: Path, line: str, said: str) -> None:
    (outcome,) = translate_fences(file, f"SET fleet t POINT 1 2\n{line}\n")
    assert outcome.line == 2
    assert said in str(outcome.refusal)


def test_what_a_fence_would_say_beside_inside_is_noted(file: Path) -> None:
    def said(detect: str) -> list[str]:
        (outcome,) = translate_fences(file, f"SETCHAN c WITHIN k FENCE {detect}BOUNDS 0 0 1 1")
        return notes_of(outcome)

    assert said("DETECT inside ") == []
    assert ["only what is inside" in note for note in said("")] == [True]
    assert ["every object inside" in note for note in said("DETECT enter ")] == [True]
    assert len(said("DETECT enter,exit ")) == 2


FENCES = """
SETHOOK a http://10.0.20.78/endpoint META owner "ann lee" EX 90 NEARBY fleet FENCE POINT 1 2 30
SETCHAN b WITHIN fleet FENCE BOUNDS 0 0 1 1
127.0.0.1:9851> SETCHAN b WITHIN fleet FENCE BOUNDS 0 0 2 2
{"ok":true,"elapsed":"12.3us"}
SETCHAN c WITHIN fleet FENCE BOUNDS 0 0 1 1
DELCHAN c
DELCHAN c
WITHIN fleet FENCE DETECT inside BOUNDS 0 0 1 1
"""


def test_a_file_of_commands_is_followed(file: Path) -> None:
    outcomes = translate_fences(file, FENCES, with_data=True)
    assert [str(o.refusal) for o in outcomes if o.refusal] == []
    events = [event for o in outcomes for event in o.events]
    assert [(event["type"], event["id"]) for event in events] == [
        ("subscribe", "a"), ("subscribe", "b"), ("subscribe", "b"),
        ("subscribe", "c"), ("unsubscribe", "c"), ("subscribe", "fence-9"),
    ]  # fmt: skip
    assert events[0]["expires"] == "2026-03-01T12:01:30Z"
    assert events[0]["data"] == {"owner": "ann lee"}
    assert events[2]["region"] == {"box": [0, 0, 2, 2]}


def test_an_append_only_file_and_answers_of_the_server(file: Path) -> None:
    command = ["SETCHAN", "b", "WITHIN", "fleet", "FENCE", "BOUNDS", "0", "0", "1", "1"]

    def resp(words: list[str]) -> bytes:
        return b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words
        )

    aof = resp(["SET", "fleet", "x", "STRING", "é\r\n*9"]) + resp(command)
    answer = {"ok": True, "chans": [{"name": "b", "key": "fleet", "ttl": -1,
                                     "command": command[2:], "meta": {}}]}  # fmt: skip
    for content in (aof, json.dumps(answer), json.dumps(answer, indent=2)):
        (outcome,) = translate_fences(file, content)
        assert outcome.refusal is None, str(outcome.refusal)
        assert (outcome.events[0]["id"], outcome.events[0]["region"]) == (
            "b",
            {"box": [0, 0, 1, 1]},
        )
    *whole, cut = translate_fences(file, aof[:-4])
    assert whole == []
    assert "nothing after it is read" in str(cut.refusal)


def test_fences_of_several_collections_need_a_key(file: Path) -> None:
    lines = "".join(
        f"SETCHAN {key} WITHIN {key} FENCE BOUNDS 0 0 1 1\n" for key in ("cars", "dogs")
    )
    with pytest.raises(Unusable, match=r"cars \(1 times\), dogs \(1 times\); say .*--key"):
        translate_fences(file, lines)
    outcomes = translate_fences(file, lines, key="dogs")
    assert "another collection" in str(outcomes[0].refusal)
    assert outcomes[1].events[0]["id"] == "dogs"


@st.composite
def fence_pairs(draw: st.DrawFn) -> tuple[str, Test]:
    x, y, w, h = draw(WHOLE), draw(WHOLE), draw(NUMBERS), draw(NUMBERS)
    kind = draw(st.integers(0, 2))
    if kind == 0:
        return f"WITHIN k FENCE BOUNDS {y} {x} {y + h} {x + w}", lambda thing: in_box(
            x, y, x + w, y + h, thing
        )
    if kind == 1:
        metres = draw(st.integers(50_000, 900_000))
        line = f"NEARBY k FENCE POINT {y} {x} {metres}"
        return line, lambda thing: metres_between(x, y, thing) * 6371000 / 6371008.7714 <= metres
    ring = [[x, y], [x + w, y], [x, y + h], [x, y]]
    polygon = json.dumps({"type": "Polygon", "coordinates": [ring]})
    return f"INTERSECTS k FENCE OBJECT {polygon}", lambda thing: in_ring(ring, thing.lon, thing.lat)


@given(
    pairs=st.lists(fence_pairs(), min_size=1, max_size=10),
    things=st.lists(THINGS, min_size=1, max_size=30),
)
@settings(max_examples=examples(EXAMPLES))
def test_fences_find_what_is_inside(
    pairs: list[tuple[str, Test]], things: list[Thing], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("fences") / "fences"
    lines = "\n".join(f"SETCHAN {n} {line}" for n, (line, _) in enumerate(pairs))
    outcomes = translate_fences(file, lines)
    assert [str(o.refusal) for o in outcomes if o.refusal] == []
    expected = {
        (str(n), str(m))
        for n, (_, test) in enumerate(pairs)
        for m, thing in enumerate(things)
        if test(thing)
    }
    assert found_by([each for o in outcomes for each in o.events], things) == expected
