"""`placewire import`: queries of other systems find the same objects as subscriptions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from imports import (
    NUMBERS,
    QUERY,
    SQUARE,
    THINGS,
    TS,
    WHOLE,
    WORDS,
    Test,
    Thing,
    found_by,
    in_box,
    in_ring,
    metres_between,
    notes_of,
    text,
    translate,
    translate_fences,
    translate_one,
)
from placewire.model.errors import Unusable
from profiles import examples

EXAMPLES = 120


def wish_of(file: Path, query: Any, **given: Any) -> dict[str, Any]:
    """The region and the where of a query that becomes one subscription."""
    outcome = translate_one(file, query, **given)
    assert outcome.refusal is None, str(outcome.refusal)
    (event,) = outcome.events
    assert (event["type"], event["id"], event["ts"]) == ("subscribe", "q", TS)
    return {name: event[name] for name in ("region", "where") if name in event}


def refusal_of(file: Path, query: Any, **given: Any) -> str:
    outcome = translate_one(file, query, **given)
    assert outcome.events == []
    assert outcome.refusal is not None
    return str(outcome.refusal)


PAIRS = "(a AND b) OR (a AND c) OR (b AND c)"


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ({"term": {"message": "coffee"}}, "coffee"),
        ({"term": {"message": {"value": "coffee"}}}, "coffee"),
        ({"term": {"message": 5}}, "5"),
        ({"terms": {"message": ["coffee", "tea"]}}, "coffee OR tea"),
        (text("Free Coffee"), "free OR coffee"),
        (text({"query": "free coffee", "operator": "AND"}), "free AND coffee"),
        (text({"query": "a b c", "minimum_should_match": 2}), PAIRS),
        (text({"query": "a b c", "minimum_should_match": "-1"}), PAIRS),
        (text({"query": "a b c", "minimum_should_match": "34%"}), "a OR b OR c"),
        (text({"query": "a b c", "minimum_should_match": "2<75%"}), PAIRS),
        (text({"query": "a b", "minimum_should_match": "2<75%"}), "a AND b"),
        (text({"query": "a", "minimum_should_match": 3}), "a"),
        (text({"query": "free-coffee", "operator": "and"}), "free AND coffee"),
        (text("don't panic"), "(don AND t) OR panic"),
        (text("3.14 x"), "(3 AND 14) OR x"),
        (text("Ελλάδα"), "ελλάδα"),
        ({"match_phrase": {"message": "coffee"}}, "coffee"),
        ({"multi_match": {"query": "a b", "fields": ["message^3"]}}, "a OR b"),
        ({"multi_match": {"query": "a", "fields": "message", "type": "phrase"}}, "a"),
        ({"constant_score": {"filter": text("a"), "boost": 2}}, "a"),
        ({"dis_max": {"queries": [text("a"), text("b")]}}, "a OR b"),
        ({"boosting": {"positive": text("a"), "negative": {}, "negative_boost": 0.2}}, "a"),
        ({"function_score": {"query": text("a"), "functions": []}}, "a"),
        ({"bool": {"must": text("a"), "should": [{"range": {"price": {"lt": 3}}}]}}, "a"),
        ({"bool": {"should": [text("a"), text("b")], "must_not": [text("c")]}},
         "(a OR b) AND NOT c"),
        ({"bool": {"must_not": [text("a b")]}}, "NOT a AND NOT b"),
        ({"bool": {"filter": [text("a")], "should": text("b"), "minimum_should_match": 1}},
         "a AND b"),
        ({"bool": {"must": [text("a"), {"exists": {"field": "location"}}]}}, "a"),
        ({"bool": {"must": [{"bool": {"must": [{"bool": {"must": text("a")}}]}}]}}, "a"),
    ],
)  # fmt: skip
def test_words_become_an_expression(file: Path, query: Any, where: str) -> None:
    assert wish_of(file, query) == {"where": where}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"term": {"message": "Coffee"}}, "without case"),
        (text("don't"), "several words here"),
        (text("Straße"), "forms of its letters"),
        (text("ＣＡＦＥ"), "forms of its letters"),
        (text("ﬁre"), "forms of its letters"),
        (text("İ"), "forms of its letters"),
        (text("Ελλάς"), "forms of its letters"),
        (text("cafe\u0301"), "forms of its letters"),
        ({"term": {"message": "straße"}}, "forms of its letters"),
        (text("3．14"), "several words here"),
        (text({"query": "a", "boost": 2}), "boosts"),
        (text({"query": "a", "analyzer": "english"}), "analyzer"),
        ({"bool": {"must": text("a"), "should": text("b")}}, "only add to the score"),
        ({"bool": {"must": text("a"), "_name": "mine"}}, "names of clauses"),
    ],
)
def test_what_differs_is_noted(file: Path, query: Any, said: str) -> None:
    (note,) = notes_of(translate_one(file, query))
    assert said in note


def test_what_is_the_same_has_no_notes(file: Path) -> None:
    query = {"bool": {"must": [text("a b")], "filter": [box([0, 1], [1, 0])]}}
    assert notes_of(translate_one(file, query)) == []
    assert notes_of(translate_one(file, text("CAFÉ ½ Ελλάδα snake_case 5"))) == []


@given(said=st.text(max_size=12))
@example(said="İ")
@example(said="aİ 5")
@settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))
def test_a_word_without_a_note_is_the_same_in_both(
    said: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outcome = translate_one(tmp_path_factory.mktemp("same") / "queries.jsonl", text(said))
    if outcome.refusal is None and not outcome.notes:
        lowered = {"".join(map(str.lower, word)) for word in re.findall(r"\w+", said)}
        where = outcome.events[0]["where"].replace('"', "")
        assert set(where.split(" OR ")) <= lowered


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"bool": {"must": [text("a"), {"range": {"price": {"gt": 5}}}]}},
         "query.bool.must[1].range: range has no counterpart"),
        ({"bool": {"should": [{"bool": {"filter": {"script": {}}}}]}},
         "query.bool.should[0].bool.filter.script: script has no counterpart"),
        ({"term": {"status": "open"}}, "query.term.status: a field that is neither"),
        ({"match": {"title": "a"}}, "query.match.title: a field that is neither"),
        ({"term": {"message": "new york"}}, "not one word"),
        ({"term": {"message": None}}, "a term must be a word"),
        ({"terms": {"message": {"index": "i", "id": "1", "path": "p"}}}, "lookup"),
        (text({"query": "a", "fuzziness": "AUTO"}), "fuzziness has no counterpart"),
        ({"match_phrase": {"message": "new york"}}, "--phrases-as-words"),
        ({"multi_match": {"query": "a", "fields": ["message", "title"]}}, "fields[1]"),
        ({"function_score": {"query": text("a"), "min_score": 1}}, "min_score"),
        (text("東京"), "script without spaces"),
        (text("☕ coffee"), "a symbol is a word there"),
        (text("100 m²"), "part of a word here, and of none there"),
        (text("!!!"), "it matches nothing"),
        ({"match_none": {}}, "it matches nothing"),
        ({"bool": {"should": [text("a")], "minimum_should_match": 2}}, "it matches nothing"),
        (text({"query": "a", "slop": 2}), "query.match.message.slop: an unknown parameter"),
        (text({"query": " ".join(map(str, range(20))), "minimum_should_match": 9}), "combinations"),
        (text(" ".join(f"w{n}" for n in range(300))), "at most 256 tokens wide"),
        ({"query_string": {"query": "a AND b"}}, "query_string has no counterpart"),
        ("coffee", "an object with one key"),
        ({}, "an object with one key"),
        ({"match": "coffee"}, "match must be an object"),
        ({"bool": {"must": "coffee"}}, "must must be a list"),
        ({"bool": {"musst": []}}, "an unknown parameter"),
        ({"bool": {"should": [text("a")], "minimum_should_match": "many"}}, "unreadable"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_with_its_place(
    file: Path, query: Any, said: str
) -> None:
    assert said in refusal_of(file, query)


def test_a_phrase_becomes_words_if_that_is_asked_for(file: Path) -> None:
    query = {"match_phrase": {"message": {"query": "New York", "slop": 1}}}
    outcome = translate_one(file, query, phrases_as_words=True)
    assert outcome.events[0]["where"] == "new AND york"
    assert any("phrase" in note for note in notes_of(outcome))


# Clauses of places


def box(top_left: Any, bottom_right: Any) -> dict[str, Any]:
    return {"geo_bounding_box": {"location": {"top_left": top_left, "bottom_right": bottom_right}}}


def shape(given: Any, **more: Any) -> dict[str, Any]:
    return {"geo_shape": {"location": {"shape": given, **more}}}


@pytest.mark.parametrize(
    "corners",
    [
        {"top_left": {"lat": 40.75, "lon": -74.5}, "bottom_right": {"lat": 40.25, "lon": -73.5}},
        {"top_left": [-74.5, 40.75], "bottom_right": [-73.5, 40.25]},
        {"top_left": "40.75,-74.5", "bottom_right": "40.25, -73.5"},
        {"top_left": "POINT (-74.5 40.75)", "bottom_right": "POINT (-73.5 40.25)"},
        {"top_right": [-73.5, 40.75], "bottom_left": [-74.5, 40.25]},
        {"top": 40.75, "left": -74.5, "bottom": "40.25", "right": -73.5},
        {"wkt": "BBOX (-74.5, -73.5, 40.75, 40.25)"},
        {"top_left": {"type": "Point", "coordinates": [-74.5, 40.75]},
         "bottom_right": [-73.5, 40.25]},
    ],
)  # fmt: skip
def test_a_bounding_box_in_every_spelling(file: Path, corners: Any) -> None:
    found = wish_of(file, {"geo_bounding_box": {"location": corners}})
    assert found == {"region": {"box": [-74.5, 40.25, -73.5, 40.75]}}


def test_geohashes_are_corners_of_their_squares(file: Path) -> None:
    """`ezs42` is everybody's example: 42.605 north, 5.603 west, give or take 0.022."""
    square = [-5.625, 42.5830078125, -5.5810546875, 42.626953125]
    assert wish_of(file, box("ezs42", "ezs42"))["region"]["box"] == square
    circle = {"geo_distance": {"distance": 5, "location": "ezs42"}}
    found = wish_of(file, circle)["region"]["circle"]
    assert found == {"lon": square[0], "lat": square[1], "radius_m": 5.0}


@pytest.mark.parametrize(
    ("distance", "metres"),
    [
        (200, 200.0), ("200", 200.0), ("1.5km", 1500.0), ("2 kilometers", 2000.0),
        ("1mi", 1609.344), ("1miles", 1609.344), ("100yd", 91.44), ("10feet", 3.048),
        ("3in", 0.0762), ("1nmi", 1852.0), ("1NM", 1852.0), ("1nauticalmiles", 1852.0),
        ("50cm", 0.5), ("5000mm", 5.0), ("7meters", 7.0), ("7m", 7.0),
    ],
)  # fmt: skip
def test_distances_in_every_unit(file: Path, distance: Any, metres: float) -> None:
    query = {"geo_distance": {"distance": distance, "location": {"lat": 1, "lon": 2}}}
    circle = wish_of(file, query)["region"]["circle"]
    assert (circle["lon"], circle["lat"]) == (2.0, 1.0)
    assert circle["radius_m"] == pytest.approx(metres, rel=1e-12)


def test_a_unit_by_itself(file: Path) -> None:
    query = {"geo_distance": {"distance": 3, "unit": "km", "location": [2, 1]}}
    assert wish_of(file, query)["region"]["circle"]["radius_m"] == 3000.0


HOLE = [[0.5, 0.5], [1.5, 0.5], [1.5, 1.5], [0.5, 1.5], [0.5, 0.5]]
FAR = [[5, 0], [7, 0], [7, 2], [5, 2], [5, 0]]
NESTED = [[0.6, 0.6], [1.4, 0.6], [1.4, 1.4], [0.6, 1.4], [0.6, 0.6]]


@pytest.mark.parametrize(
    ("given", "region"),
    [
        ({"type": "envelope", "coordinates": [[0, 2], [2, 0]]}, {"box": [0, 0, 2, 2]}),
        ("ENVELOPE (0, 2, 2, 0)", {"box": [0, 0, 2, 2]}),
        ({"type": "envelope", "coordinates": [[170, 2], [-170, 0]]}, {"box": [170, 0, -170, 2]}),
        ({"type": "Polygon", "coordinates": [SQUARE, HOLE]}, {"polygon": [SQUARE, HOLE]}),
        ("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", {"polygon": [SQUARE]}),
        ({"type": "MultiPolygon", "coordinates": [[SQUARE], [FAR]]}, {"polygon": [SQUARE, FAR]}),
        ("MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)), ((5 0, 7 0, 7 2, 5 2, 5 0)))",
         {"polygon": [SQUARE, FAR]}),
        # An island in a lake: bounding boxes overlap, the polygons do not.
        ({"type": "MultiPolygon", "coordinates": [[SQUARE, HOLE], [NESTED]]},
         {"polygon": [SQUARE, HOLE, NESTED]}),
        ({"type": "circle", "coordinates": [1, 2], "radius": "1km"},
         {"circle": {"lon": 1, "lat": 2, "radius_m": 1000}}),
        ({"type": "point", "coordinates": [1, 2]}, {"box": [1, 2, 1, 2]}),
        ({"type": "geometrycollection",
          "geometries": [{"type": "polygon", "coordinates": [SQUARE]}]}, {"polygon": [SQUARE]}),
    ],
)  # fmt: skip
def test_shapes(file: Path, given: Any, region: Any) -> None:
    assert wish_of(file, shape(given)) == {"region": region}
    assert wish_of(file, shape(given, relation="WITHIN")) == {"region": region}


def test_a_polygon_of_points(file: Path) -> None:
    points = [{"lat": lat, "lon": lon} for lon, lat in SQUARE[:-1]]
    query = {"geo_polygon": {"location": {"points": points}}}
    assert wish_of(file, query) == {"region": {"polygon": [SQUARE]}}


@pytest.mark.parametrize(
    ("clauses", "region"),
    [
        ([box([0, 4], [4, 0]), box([2, 9], [9, 2])], {"box": [2, 2, 4, 4]}),
        ([box([170, 4], [-170, 0]), box([175, 4], [179, 0])], {"box": [175, 0, 179, 4]}),
        ([box([170, 4], [-170, 0]), box([175, 4], [-175, 2])], {"box": [175, 2, -175, 4]}),
        ([box([-180, 90], [180, -90]), box([0, 1], [1, 0])], {"box": [0, 0, 1, 1]}),
        ([box([-1, 9], [9, -1]), shape({"type": "polygon", "coordinates": [SQUARE]})],
         {"polygon": [SQUARE]}),
        ([{"geo_distance": {"distance": d, "location": [1, 1]}} for d in (50, 20)],
         {"circle": {"lon": 1, "lat": 1, "radius_m": 20}}),
    ],
)  # fmt: skip
def test_places_joined_by_and(file: Path, clauses: list[Any], region: Any) -> None:
    assert wish_of(file, {"bool": {"filter": clauses}}) == {"region": region}


@pytest.mark.parametrize(
    ("clauses", "region"),
    [
        ([box([0, 4], [4, 0]), box([1, 3], [3, 1])], {"box": [0, 0, 4, 4]}),
        ([box([170, 4], [180, 0]), box([-180, 4], [-170, 0])], {"box": [170, 0, -170, 4]}),
        ([box([0, 2], [2, 0]), box([5, 2], [7, 0])], {"polygon": [SQUARE, FAR]}),
    ],
)
def test_places_joined_by_or_that_are_one_region(
    file: Path, clauses: list[Any], region: Any
) -> None:
    assert wish_of(file, {"bool": {"should": clauses}}) == {"region": region}


def test_alternatives_that_are_no_one_region_are_split(file: Path) -> None:
    overlapping = [box([0, 4], [4, 0]), box([2, 9], [9, 2])]
    outcome = translate_one(file, {"bool": {"should": overlapping, "must": text("a")}})
    assert [event["id"] for event in outcome.events] == ["q"], "should is optional beside must"
    query = {"bool": {"should": overlapping, "must": text("a"), "minimum_should_match": 1}}
    outcome = translate_one(file, query)
    assert [event["id"] for event in outcome.events] == ["q#1", "q#2"]
    assert {event["where"] for event in outcome.events} == {"a"}
    assert any("split" in note for note in notes_of(outcome))
    mixed = translate_one(file, {"bool": {"should": [text("a"), overlapping[0]]}})
    assert [sorted(event.keys() & {"where", "region"}) for event in mixed.events] == [
        ["where"],
        ["region"],
    ]


@pytest.mark.parametrize(
    "other",
    [NESTED, [[2, 0], [4, 0], [4, 2], [2, 2], [2, 0]], [[1, 1], [4, 1], [4, 4], [1, 4], [1, 1]]],
    ids=["inside", "with an edge in common", "overlapping"],
)
def test_polygons_that_do_not_lie_apart_are_split(file: Path, other: Any) -> None:
    query = shape({"type": "MultiPolygon", "coordinates": [[SQUARE], [other]]})
    regions = [event["region"] for event in translate_one(file, query).events]
    assert regions == [{"polygon": [SQUARE]}, {"polygon": [other]}]


def test_edges_belong_to_what_they_enclose(file: Path) -> None:
    """Of a box, of polygons that became one, and of their holes."""
    apart = shape({"type": "MultiPolygon", "coordinates": [[SQUARE, HOLE], [NESTED], [FAR]]})
    queries = [box([0, 2], [2, 0]), apart]
    hits = [{"_id": str(n), "_source": {"query": query}} for n, query in enumerate(queries)]
    events = [e for o in translate(file, "\n".join(map(json.dumps, hits))) for e in o.events]
    places = [(0, 1), (2, 2), (0.5, 1), (0.55, 1), (0.6, 1), (1, 1), (5, 0.5), (4.9, 0.5)]
    found = found_by(events, [Thing(frozenset(), lon, lat) for lon, lat in places])
    inside = {"0": "012345", "1": "012456"}
    assert found == {(name, number) for name, numbers in inside.items() for number in numbers}


def test_places_that_are_ruled_out(file: Path) -> None:
    hole = shape({"type": "polygon", "coordinates": [SQUARE]})
    outcome = translate_one(file, {"bool": {"must": box([-9, 9], [9, -9]), "must_not": hole}})
    ring = [[-9.0, -9.0], [9.0, -9.0], [9.0, 9.0], [-9.0, 9.0], [-9.0, -9.0]]
    assert outcome.events[0]["region"] == {"polygon": [ring, SQUARE]}
    assert any("edge" in note for note in notes_of(outcome))
    alone = translate_one(file, {"bool": {"must_not": hole}}).events[0]["region"]["polygon"]
    assert alone[1:] == [SQUARE]
    apart = shape({"type": "polygon", "coordinates": [SQUARE]}, relation="disjoint")
    assert translate_one(file, apart).events[0]["region"]["polygon"] == alone


def test_everything_is_the_whole_world(file: Path) -> None:
    assert wish_of(file, {"match_all": {}}) == {"region": {"box": [-180, -90, 180, 90]}}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"geo_distance": {"distance": "1km", "elsewhere": [0, 0]}}, "neither the text nor"),
        ({"geo_distance": {"distance": "1parsec", "location": [0, 0]}}, "a distance must"),
        ({"geo_distance": {"distance": 0, "location": [0, 0]}}, "above zero"),
        ({"geo_distance": {"distance": "1km", "distance_type": "plane", "location": [0]}}, "arc"),
        ({"geo_distance": {"distance": "1km", "location": [200, 0]}}, "out of range"),
        ({"geo_distance": {"distance": "1km", "location": "a place"}}, "not a geohash"),
        (box([0, 0], [1, 1]), "top is below its bottom"),
        ({"geo_bounding_box": {"location": {"top": 1}}}, "four sides"),
        (shape({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}), "no area"),
        (shape({"type": "polygon", "coordinates": [SQUARE[:-1]]}), "closed"),
        (shape({"type": "polygon", "coordinates": [[[-170, 0], [170, 0], [0, 9], [-170, 0]]]}),
         "180 degrees wide"),
        (shape({"type": "polygon", "coordinates": [SQUARE]}, relation="contains"), "relation"),
        (shape("POLYGON ((0 0, 1 1"), "unreadable well-known text"),
        (shape("POINT ()"), "unreadable well-known text"),
        ({"geo_shape": {"location": {"indexed_shape": {"id": "x"}}}}, "indexed shape"),
        ({"bool": {"must_not": {"geo_distance": {"distance": 9, "location": [0, 0]}}}}, "circle"),
        ({"bool": {"filter": [{"geo_distance": {"distance": "99km", "location": [0, 0]}},
                              box([0, 1], [1, 0])]}}, "query.bool: areas that are joined by AND"),
        ({"bool": {"filter": [box([0, 1], [1, 0]), box([5, 6], [6, 5])]}}, "matches nothing"),
    ],
)  # fmt: skip
def test_places_without_a_counterpart(file: Path, query: Any, said: str) -> None:
    assert said in refusal_of(file, query)


@pytest.mark.parametrize(
    "content",
    [
        '{"_index":"i","_id":"a","_source":{"query":%s}}\n'
        '{"_index":"i","_id":"b","_source":{"query":%s}}\n',
        '{"took":1,"hits":{"total":2,"hits":['
        '{"_id":"a","_source":{"query":%s}},{"_id":"b","_source":{"query":%s}}]}}',
        '{\n  "took": 1,\n  "hits": {"hits": [\n'
        '{"_id":"a","_source":{"query":%s}},\n{"_id":"b","_source":{"query":%s}}]}\n}',
        '{"index":{"_index":"i","_id":"a"}}\n{"query":%s}\n{"create":{"_id":"b"}}\n{"query":%s}\n',
        '[\n{"_id":"a","query":%s},\n{"id":"b","query":%s}\n]',
        '\ufeff{"_id":"a","query":%s}\n\n{"_id":"b","query":%s}',
        '{\n"_id":"a",\n"query":%s\n}\n{\n"_id":"b",\n"query":%s\n}\n',
    ],
)  # fmt: skip
def test_files_that_people_have(file: Path, content: str) -> None:
    query = json.dumps(QUERY)
    outcomes = translate(file, content % (query, query))
    assert [str(o.refusal) for o in outcomes if o.refusal] == []
    assert [event["id"] for o in outcomes for event in o.events] == ["a", "b"]
    assert {event["where"] for o in outcomes for event in o.events} == {"coffee"}


def test_a_bulk_file_is_followed(file: Path) -> None:
    lines = [
        {"index": {"_id": "a"}}, {"query": QUERY},
        {"index": {"_id": "a"}}, {"query": {"bool": {"should": [QUERY, box([0, 1], [1, 0])]}}},
        {"index": {"_id": "a"}}, {"query": QUERY},
        {"create": {"_id": "a"}}, {"query": QUERY},
        {"update": {"_id": "a"}}, {"doc": {"query": QUERY}},
        {"delete": {"_id": "a"}},
        {"delete": {"_id": "never"}},
        {"index": {"_id": "b"}}, {"query": QUERY},
        {"index": {"_id": "b"}}, {"query": {"range": {}}},
        {"index": {"_id": "c"}},
    ]  # fmt: skip
    outcomes = translate(file, "\n".join(map(json.dumps, lines)))
    said = [(event["type"], event["id"]) for o in outcomes for event in o.events]
    assert said == [
        ("subscribe", "a"),
        ("unsubscribe", "a"), ("subscribe", "a#1"), ("subscribe", "a#2"),
        ("unsubscribe", "a#1"), ("unsubscribe", "a#2"), ("subscribe", "a"),
        ("unsubscribe", "a"),
        ("subscribe", "b"), ("unsubscribe", "b"),
    ]  # fmt: skip
    refused = [str(o.refusal) for o in outcomes if o.refusal]
    assert len(refused) == 4
    assert "create of a document that exists" in refused[0]
    assert "only whole documents" in refused[1]
    assert "missing" in refused[3]


def test_ids_that_cannot_be_kept(file: Path) -> None:
    two = {"bool": {"should": [QUERY, box([0, 1], [1, 0])]}}
    hits = [
        {"_id": "a", "_index": "one", "_source": {"query": QUERY}},
        {"_id": "a", "_index": "two", "_source": {"query": QUERY}},
        {"_id": "x" * 257, "_source": {"query": QUERY}},
        {"_id": "", "_source": {"query": QUERY}},
        {"_source": {"query": QUERY}},
        {"_id": "b", "_source": {"query": two}},
        {"_id": "b#1", "_source": {"query": QUERY}},
        {"_id": "c#2", "_source": {"query": QUERY}},
        {"_id": "c", "_source": {"query": two}},
        {"_id": "y" * 255, "_source": {"query": two}},
    ]
    outcomes = translate(file, "\n".join(map(json.dumps, hits)))
    said = [str(o.refusal or ",".join(event["id"] for event in o.events)) for o in outcomes]
    assert said[0] == "a"
    assert "another index" in said[1]
    assert "1 to 256 characters, got 257" in said[2]
    assert "1 to 256 characters, got 0" in said[3]
    assert said[4] == "query-5"
    assert any("given one" in note for note in notes_of(outcomes[4]))
    assert said[5] == "b#1,b#2"
    assert "taken by a part" in said[6]
    assert said[7] == "c#2"
    assert "an id of its parts is taken, got 'c#2'" in said[8]
    assert "got 257" in said[9]


def test_a_repeated_id_replaces_and_is_noted(file: Path) -> None:
    hits = [{"_id": "a", "_source": {"query": text(word)}} for word in ("tea", "milk")]
    outcomes = translate(file, "\n".join(map(json.dumps, hits)))
    assert [event["where"] for o in outcomes for event in o.events] == ["tea", "milk"]
    assert any("replaces the earlier" in note for note in notes_of(outcomes[1]))


def test_other_fields_are_data_if_that_is_asked_for(file: Path) -> None:
    hit = json.dumps({"_id": "a", "_source": {"alert": {"query": QUERY}, "owner": "ann"}})
    (outcome,) = translate(file, hit, query_field="alert.query", with_data=True)
    assert outcome.events[0]["data"] == {"owner": "ann"}
    (outcome,) = translate(file, hit, query_field="alert.query")
    assert "data" not in outcome.events[0]
    assert any("--with-data" in note for note in notes_of(outcome))
    (outcome,) = translate(file, hit)
    assert "no query in its field 'query'" in str(outcome.refusal)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"_id":"a","_source":{"query":{"match"', "not JSON"),
        (b'{"_id":"a","_source":7}', "no query in it"),
        (b'"just a string"', "a document must be an object"),
        (b'{"_id":"a","query":{"match":{"message":"\xff"}}}', "not UTF-8: byte 0xff"),
        (b'{"_id":"a","query":{"match":{"message":"\\ud800"}}}', "lone surrogate"),
        (b'{"_id":"a","query":{"match":{"message":"a","message":"b"}}}', "'message' is repeated"),
        (b'{"_id":"a","query":{"geo_distance":{"distance":NaN}}}', "NaN is not JSON"),
        (b'{"_id":"a","query":' + b"[" * 100_000 + b"}", "nested too deeply"),
        (b'{"_id":"a","query":' + b'{"bool":{"must":' * 400 + b'{"match_all":{}}' + b"}}" * 400
         + b"}", "nested more than 64 deep"),
        (b'{"_id":"a","query":{"term":{"message":' + b"9" * 5000 + b"}}}", "too many digits"),
        (b'{"_id":"a","query":{"geo_distance":{"distance":1' + b"0" * 400
         + b',"location":[0,0]}}}', "must be a number"),
        (b'{"hits":{"hits":{}}}', "hits.hits must be a list"),
    ],
)  # fmt: skip
def test_bad_lines_are_told_and_the_others_translated(file: Path, line: bytes, said: str) -> None:
    good = json.dumps({"_id": "good", "_source": {"query": QUERY}}).encode()
    outcomes = translate(file, good + b"\n" + line + b"\n" + good.replace(b"good", b"last"))
    assert [event["id"] for o in outcomes for event in o.events] == ["good", "last"]
    (bad,) = [o for o in outcomes if o.refusal]
    assert bad.line == 2
    assert said in str(bad.refusal)


def test_a_value_over_many_lines_that_is_cut_short(file: Path) -> None:
    (outcome,) = translate(file, '{\n "hits": {\n  "hits": [\n')
    assert "nothing after it is read" in str(outcome.refusal)


@given(raw=st.binary(max_size=200))
@settings(max_examples=examples(150))
def test_no_bytes_bring_it_down(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("raw") / "raw"
    translate(file, raw)
    translate_fences(file, raw)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["a", "1km", "dr5", "POINT (1 1)", "BBOX (1, 2, 2, 1)", ""]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["bool", "must", "should", "must_not", "filter", "minimum_should_match", "match",
             "term", "terms", "message",
             "query", "location", "geo_distance", "distance", "geo_shape",
             "shape", "type", "coordinates", "geo_bounding_box", "top_left", "bottom_right",
             "wkt", "relation", "radius", "multi_match", "fields", "match_phrase", "boost"]
        ),
        inner,
        max_size=3,
    ),
    max_leaves=12,
)  # fmt: skip


CLAUSES = ["bool", "match", "term", "terms", "geo_shape", "geo_distance", "geo_bounding_box"]
CLAUSES += ["multi_match", "exists", "dis_max"]


@given(query=JSON, clause=st.sampled_from(CLAUSES))
@settings(max_examples=examples(400))
def test_no_query_brings_it_down(
    query: Any, clause: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("json") / "q"
    translate(file, json.dumps([{"query": {clause: query}}, {"query": query}]).replace("NaN", "1"))


# Fields


def test_fields_are_found_if_there_is_one_of_each(file: Path) -> None:
    queries = [
        {"bool": {"must": [{"match": {"body": "a"}}, {"term": {"state": "open"}}]}},
        {"bool": {"filter": {"geo_distance": {"distance": 1, "pin.location": [0, 0]}}}},
        {"multi_match": {"query": "b", "fields": ["body^2"]}},
    ]
    lines = "\n".join(json.dumps({"_id": str(n), "query": q}) for n, q in enumerate(queries))
    outcomes = translate(file, lines, text_fields=[], place_fields=[])
    assert [bool(o.refusal) for o in outcomes] == [True, False, False]
    assert "got 'state'" in str(outcomes[0].refusal)
    more = lines + "\n" + json.dumps({"_id": "9", "query": {"match": {"title": "a"}}})
    with pytest.raises(Unusable, match=r"body \(2 times\), title \(1 times\); say .*--text-field"):
        translate(file, more, text_fields=[], place_fields=[])
    outcomes = translate(file, more, text_fields=["body", "title"], place_fields=[])
    assert [bool(o.refusal) for o in outcomes] == [True, False, False, False]


Pair = tuple[Any, Test]  # a query, and what it finds in Elasticsearch


@st.composite
def term_pairs(draw: st.DrawFn) -> Pair:
    if draw(st.booleans()):
        word = draw(st.sampled_from(WORDS))
        return {"term": {"message": word}}, lambda thing: word in thing.words
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
    return {"terms": {"message": words}}, lambda thing: any(w in thing.words for w in words)


@st.composite
def match_pairs(draw: st.DrawFn) -> Pair:
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
    options: dict[str, Any] = {"query": " ".join(words).title()}
    least = 1
    if draw(st.booleans()):
        options["operator"] = draw(st.sampled_from(["and", "AND", "or"]))
        if options["operator"] != "or":
            least = len(words)
    elif draw(st.booleans()):
        asked = draw(st.integers(1, 5))
        options["minimum_should_match"] = draw(st.sampled_from([asked, str(asked)]))
        least = asked if len(words) > 1 else 1
    return (
        {"match": {"message": options if len(options) > 1 else options["query"]}},
        lambda thing: sum(word in thing.words for word in words) >= least,
    )


@st.composite
def box_pairs(draw: st.DrawFn) -> Pair:
    """A box, some of them across the antimeridian."""
    west, width = draw(WHOLE), draw(NUMBERS)
    south, height = draw(WHOLE), draw(NUMBERS)
    if draw(st.integers(0, 9)) == 0:
        west, east = 180 - width, -178 + width
    else:
        east = west + width
    north = south + height
    spelling = draw(st.integers(0, 5))
    corners: dict[str, Any] = {
        0: {"top_left": [west, north], "bottom_right": [east, south]},
        1: {"top_right": f"{north},{east}", "bottom_left": {"lat": south, "lon": west}},
        2: {"top": north, "left": west, "bottom": south, "right": east},
        3: {"wkt": f"BBOX ({west}, {east}, {north}, {south})"},
        4: None, 5: None,
    }[spelling]  # fmt: skip

    def test(thing: Thing) -> bool:
        return in_box(west, south, east, north, thing)

    if corners is not None:
        return {"geo_bounding_box": {"location": corners}}, test
    envelope = {"type": "envelope", "coordinates": [[west, north], [east, south]]}
    if spelling == 4:
        return shape(envelope, relation=draw(st.sampled_from(["intersects", "within"]))), test
    return shape(envelope, relation="disjoint"), lambda thing: not test(thing)


@st.composite
def circle_pairs(draw: st.DrawFn) -> Pair:
    lon, lat = draw(WHOLE), draw(WHOLE)
    km = draw(st.integers(50, 900))
    name, size = draw(st.sampled_from([("km", 1.0), ("m", 0.001), ("mi", 1.609344), ("", 0.001)]))
    point = draw(st.sampled_from([[lon, lat], {"lat": lat, "lon": lon}, f"{lat},{lon}"]))
    query = {"geo_distance": {"distance": f"{km / size}{name}", "location": point}}
    return query, lambda thing: metres_between(lon, lat, thing) <= 1000.0 * km


@st.composite
def polygon_pairs(draw: st.DrawFn) -> Pair:
    """Triangles, one or two; two may lie apart, touch or overlap."""
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        x, y, w, h = draw(WHOLE), draw(WHOLE), draw(NUMBERS), draw(NUMBERS)
        parts.append([[x, y], [x + w, y], [x, y + h], [x, y]])
    found = {"type": "MultiPolygon", "coordinates": [[ring] for ring in parts]}
    return shape(found), lambda thing: any(in_ring(ring, thing.lon, thing.lat) for ring in parts)


def all_pairs() -> st.SearchStrategy[Pair]:
    everything: Pair = ({"match_all": {}}, lambda _: True)
    leaves = (
        term_pairs() | match_pairs() | box_pairs() | circle_pairs() | polygon_pairs()
        | st.just(everything)
    )  # fmt: skip
    return st.recursive(leaves, bool_pairs, max_leaves=8)


def bool_pairs(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    @st.composite
    def draw_pair(draw: st.DrawFn) -> Pair:
        few = st.lists(inner, max_size=2)
        must, filtered, should, ruled = draw(few), draw(few), draw(few), draw(few)
        body: dict[str, Any] = {}
        for name, pairs in (
            ("must", must), ("filter", filtered), ("should", should), ("must_not", ruled),
        ):  # fmt: skip
            if len(pairs) == 1 and draw(st.booleans()):
                body[name] = pairs[0][0]
            elif pairs:
                body[name] = [query for query, _ in pairs]
        least = 0 if must or filtered else min(1, len(should))
        if should and draw(st.booleans()):
            asked = draw(st.integers(0, 2))
            body["minimum_should_match"] = asked
            least = max(least, asked)

        def test(thing: Thing) -> bool:
            return (
                all(find(thing) for _, find in must + filtered)
                and not any(find(thing) for _, find in ruled)
                and sum(find(thing) for _, find in should) >= least
            )

        return {"bool": body}, test

    return draw_pair()


@given(
    pairs=st.lists(all_pairs(), min_size=1, max_size=12),
    things=st.lists(THINGS, min_size=1, max_size=25),
)
@settings(max_examples=examples(EXAMPLES), suppress_health_check=list(HealthCheck))
def test_queries_find_what_they_find_in_elasticsearch(
    pairs: list[Pair], things: list[Thing], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("law") / "queries.jsonl"
    hits = [{"_id": str(n), "_source": {"query": query}} for n, (query, _) in enumerate(pairs)]
    outcomes = translate(file, "\n".join(map(json.dumps, hits)))
    expected = set()
    for (_, test), outcome in zip(pairs, outcomes, strict=True):
        found = {str(n) for n, thing in enumerate(things) if test(thing)}
        if outcome.refusal is None:
            expected |= {(outcome.id, name) for name in found}
        else:
            event(re.sub(r"\d+", "N", outcome.refusal.what))
            if outcome.refusal.what == "it matches nothing":
                assert found == set()
    events = [each for outcome in outcomes for each in outcome.events]
    assert found_by(events, things) == expected


@given(
    pair=st.recursive(term_pairs() | match_pairs(), bool_pairs, max_leaves=6),
    place=box_pairs() | circle_pairs(),
)
@settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))
def test_words_in_one_place_are_always_translated(
    pair: Pair, place: Pair, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Only a query that is beyond a subscription's limits is not, or one that finds nothing."""
    file = tmp_path_factory.mktemp("some") / "queries.jsonl"
    outcome = translate_one(file, {"bool": {"must": [pair[0]], "filter": [place[0]]}})
    if outcome.refusal is not None:
        assert re.match("it matches nothing|beyond what|a minimum_should_match has more",
                        outcome.refusal.what)  # fmt: skip
