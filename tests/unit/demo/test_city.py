"""The generated hour: deterministic, valid to the letter of the format, worth listening to."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

import placewire
from placewire.demo import (
    CityLife,
    blocks,
    count_events,
    readable_queries,
    readable_subscriptions,
    write_log,
)
from placewire.demo.places import places
from placewire.demo.vocabulary import compile_templates, languages, stop_words
from placewire.model.errors import Unusable

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
END = START + timedelta(hours=1)
BUSY = CityLife(objects=9_000, subscriptions=3_000, churn=0.3, bad=24)
OBJECT_FIELDS = {"type", "id", "ts", "lon", "lat", "text"}
SUBSCRIBE_FIELDS = {"type", "id", "ts", "kind"}
NEAR_FIELDS = {"lon", "lat", "keywords", "k"}
OWN_FIELDS = {
    "boolean": {"region", "where"},
    "nearest": NEAR_FIELDS,
    "relevant": {*NEAR_FIELDS, "alpha"},
    "trending": {"region", "k"},
}
PACE_FIELDS = {"window", "every"}
MAY_HAVE = {"boolean": {"limit"}, "nearest": {"mode", "within_m"}, "relevant": {"reach_m"}}
READABLE = readable_subscriptions()
UNSUBSCRIBE_FIELDS = {"type", "id", "ts"}


def log_of(life: CityLife, block_events: int = 50_000) -> bytes:
    return b"".join(blocks(life, block_events))


def events_of(life: CityLife) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in log_of(life).split(b"\n")[:-1]]


@pytest.fixture(scope="module")
def hour() -> list[dict[str, Any]]:
    """A log large enough that every story is told."""
    return events_of(CityLife(objects=50_000, subscriptions=5_000, churn=0.2))


@pytest.fixture(scope="module")
def objects(hour: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in hour if event["type"] == "object"]


@pytest.fixture(scope="module")
def subscribes(hour: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in hour if event["type"] == "subscribe"]


@pytest.fixture(scope="module")
def booleans(subscribes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in subscribes if event["kind"] == "boolean"]


@pytest.fixture(scope="module")
def nearests(subscribes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in subscribes if event["kind"] == "nearest"]


@pytest.fixture(scope="module")
def relevants(subscribes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in subscribes if event["kind"] == "relevant"]


@pytest.fixture(scope="module")
def trendings(subscribes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in subscribes if event["kind"] == "trending"]


@pytest.fixture(scope="module")
def queries() -> list[dict[str, Any]]:
    """Those of a log that has many."""
    life = CityLife(objects=500, subscriptions=0, queries=1_500)
    return [event for event in events_of(life) if event["type"] == "query"]


# A brute-force reading of regions and expressions, small on purpose.


def tokens(text: str) -> set[str]:
    return set(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def holds(where: Any, terms: set[str]) -> bool:
    if isinstance(where, dict):
        ((operator, children),) = where.items()
        results = [holds(child, terms) for child in children]
        return {"all": all(results), "any": any(results), "none": not any(results)}[operator]
    words = re.findall(r"[()]|[^\s()]+", where)

    def any_of() -> bool:
        result = all_of()
        while words and words[0] == "OR":
            words.pop(0)
            result = all_of() or result
        return result

    def all_of() -> bool:
        result = one()
        while words and words[0] not in {"OR", ")"}:
            if words[0] == "AND":
                words.pop(0)
            result = one() and result
        return result

    def one() -> bool:
        word = words.pop(0)
        if word == "NOT":
            return not one()
        if word == "(":
            result = any_of()
            assert words.pop(0) == ")"
            return result
        wanted = tokens(word)
        assert wanted, where
        return wanted <= terms

    result = any_of()
    assert not words, where
    return result


def contains(region: dict[str, Any], lon: float, lat: float) -> bool:
    if "box" in region:
        west, south, east, north = region["box"]
        return south <= lat <= north and west <= lon <= east
    if "circle" in region:
        return distance_m(region["circle"], lon, lat) <= float(region["circle"]["radius_m"])
    inside = False
    for ring in region["polygon"]:
        for (ax, ay), (bx, by) in pairwise(ring):
            if (ay > lat) != (by > lat) and lon < (bx - ax) * (lat - ay) / (by - ay) + ax:
                inside = not inside
    return inside


def distance_m(point: dict[str, Any], lon: float, lat: float) -> float:
    phi, theta = math.radians(lat), math.radians(point["lat"])
    half_lon = math.radians(lon - point["lon"]) / 2
    a = math.sin((phi - theta) / 2) ** 2 + (
        math.cos(phi) * math.cos(theta) * math.sin(half_lon) ** 2
    )
    return 2 * 6_371_008.8 * math.asin(math.sqrt(a))


def suits(subscription: dict[str, Any], terms: set[str]) -> bool:
    wanted = set().union(*map(tokens, subscription["keywords"]))
    return wanted <= terms if subscription.get("mode") == "all" else bool(wanted & terms)


def heard(subscription: dict[str, Any], objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects that match, that enter a result, or that a report counts."""
    if subscription["kind"] == "trending":
        region = subscription["region"]
        return [event for event in objects if contains(region, event["lon"], event["lat"])]
    if subscription["kind"] == "boolean":
        return [
            event
            for event in objects
            if contains(subscription["region"], event["lon"], event["lat"])
            and holds(subscription["where"], tokens(event["text"]))
        ]
    best: list[float] = []
    entered = []
    for event in objects:
        distance = distance_m(subscription, event["lon"], event["lat"])
        if distance > subscription.get("within_m", math.inf):
            continue
        terms = tokens(event["text"])
        if suits(subscription, terms):
            rank = distance
            if subscription["kind"] == "relevant":
                rank = -score(subscription, distance, terms)
            best = sorted([*best, rank])[: subscription["k"]]
            if rank in best:
                entered.append(event)
    return entered


def score(subscription: dict[str, Any], distance: float, terms: set[str]) -> float:
    """How relevant an object is, all words weighing the same."""
    wanted = set().union(*map(tokens, subscription["keywords"]))
    nearness = max(0.0, 1 - distance / subscription["reach_m"])
    cosine = len(wanted & terms) / math.sqrt(len(wanted) * len(terms))
    alpha = float(subscription["alpha"])
    return alpha * nearness + (1 - alpha) * cosine


def test_equal_descriptions_give_equal_bytes() -> None:
    assert log_of(BUSY) == log_of(BUSY)
    assert log_of(BUSY) != log_of(BUSY._replace(seed=8))


@pytest.mark.parametrize("block_events", [1, 997, 8_192, 10**9])
def test_bytes_do_not_depend_on_the_block_size(block_events: int) -> None:
    life = CityLife(objects=1_500, subscriptions=400, churn=0.5, bad=12)
    parts = list(blocks(life, block_events))
    assert b"".join(parts) == log_of(life)
    assert all(part.count(b"\n") == block_events for part in parts[:-1])


def test_every_line_has_exactly_the_fields_of_its_type(hour: list[dict[str, Any]]) -> None:
    for event in hour:
        fields = set(event)
        if event["type"] == "object":
            assert fields == OBJECT_FIELDS
            assert isinstance(event["text"], str)
            assert not any(unicodedata.category(letter) == "Cc" for letter in event["text"])
        elif event["type"] == "subscribe":
            own = OWN_FIELDS[event["kind"]]
            own = own | PACE_FIELDS if event["kind"] == "trending" else own
            assert fields >= SUBSCRIBE_FIELDS | own
            assert fields - {"expires"} - MAY_HAVE.get(event["kind"], set()) == (
                SUBSCRIBE_FIELDS | own
            )
        elif event["type"] == "query":
            own = OWN_FIELDS[event["kind"]] | {"last"}
            assert fields - MAY_HAVE.get(event["kind"], set()) == SUBSCRIBE_FIELDS | own
        else:
            assert event["type"] == "unsubscribe"
            assert fields == UNSUBSCRIBE_FIELDS


def test_times_ascend_within_the_hour_but_for_a_few_late_ones(hour: list[dict[str, Any]]) -> None:
    times = [datetime.fromisoformat(event["ts"]) for event in hour]
    assert all(START <= time < END for time in times)
    late = sum(after < before for before, after in pairwise(times))
    assert 0 < late < 0.02 * len(times)
    assert times[-1] > END - timedelta(seconds=60)


def test_subscriptions_come_first_but_for_the_churn(hour: list[dict[str, Any]]) -> None:
    first_object = next(row for row, event in enumerate(hour) if event["type"] == "object")
    before, during = hour[:first_object], hour[first_object:]
    known = {event["id"] for event in before if event["type"] == "subscribe"}
    during_kinds: Counter[str] = Counter()
    for event in during:
        if event["type"] == "unsubscribe":
            assert event["id"] in known
            during_kinds["leaves"] += 1
        elif event["type"] == "subscribe":
            during_kinds["is replaced" if event["id"] in known else "arrives"] += 1
    churning = round(0.2 * (5_000 - len(READABLE)))
    assert abs(sum(during_kinds.values()) - churning) <= 50  # some come before the first object
    assert during_kinds["arrives"] > during_kinds["is replaced"] > during_kinds["leaves"] > 0
    subscribed = {event["id"] for event in hour if event["type"] == "subscribe"}
    assert len(subscribed) == 5_000


def test_points_are_on_the_map_and_near_a_city(objects: list[dict[str, Any]]) -> None:
    for event in objects:
        assert -180 <= event["lon"] <= 180
        assert -90 <= event["lat"] <= 90
    for event in objects[:300]:
        nearest = min(
            math.hypot((event["lon"] - city.lon) * math.cos(math.radians(city.lat)),
                       event["lat"] - city.lat)
            for city in places().cities
        )  # fmt: skip
        assert nearest < 1.2


def test_regions_are_well_formed(booleans: list[dict[str, Any]]) -> None:
    forms = Counter(next(iter(event["region"])) for event in booleans)
    share = {form: count / len(booleans) for form, count in forms.items()}
    assert share == pytest.approx({"box": 0.72, "circle": 0.20, "polygon": 0.08}, abs=0.03)
    for event in booleans:
        region = event["region"]
        assert len(region) == 1
        if "box" in region:
            west, south, east, north = region["box"]
            assert -180 <= west < east <= 180
            assert -90 <= south < north <= 90
        elif "circle" in region:
            assert set(region["circle"]) == {"lon", "lat", "radius_m"}
            assert 0 < region["circle"]["radius_m"] <= 25_000
        else:
            (ring,) = region["polygon"]
            assert ring[0] == ring[-1]
            assert 6 <= len(ring) <= 9
            assert len(set(map(tuple, ring))) == len(ring) - 1


def test_expressions_are_valid_and_of_every_form(booleans: list[dict[str, Any]]) -> None:
    strings = [event["where"] for event in booleans if isinstance(event["where"], str)]
    trees = [event["where"] for event in booleans if isinstance(event["where"], dict)]
    for where in (*strings, *trees):
        holds(where, set())  # asserts that it parses and that no word is empty
    assert 0.01 < len(trees) / len(booleans) < 0.06
    assert 0.03 < sum("NOT" in where for where in strings) / len(booleans) < 0.08
    conjunctions = sum("AND" in where or where.count(" ") == 2 for where in strings)
    assert 0.6 < conjunctions / sum(" OR " in where for where in strings) < 1.7


def test_one_in_eight_is_a_nearest_and_every_field_has_a_use(
    subscribes: list[dict[str, Any]], nearests: list[dict[str, Any]]
) -> None:
    assert len(nearests) / len(subscribes) == pytest.approx(1 / 8, abs=0.02)
    for event in nearests:
        assert -180 <= event["lon"] <= 180
        assert -90 <= event["lat"] <= 90
        assert 1 <= len(event["keywords"]) <= 3
        assert all(tokens(word) for word in event["keywords"])
        assert 1 <= event["k"] <= 10
        assert event.get("mode", "any") in ("any", "all")
        assert event.get("within_m", 1) > 0
    ks = Counter(event["k"] for event in nearests)
    assert set(ks) == set(range(1, 11))
    assert sum(ks[k] for k in range(1, 6)) > 0.75 * len(nearests)
    for field, share in (("mode", 0.25), ("within_m", 0.4), ("expires", 0.1)):
        having = sum(field in event for event in nearests)
        assert having / len(nearests) == pytest.approx(share, abs=0.08), field


def test_one_in_forty_is_a_relevant_of_every_weight(
    subscribes: list[dict[str, Any]], relevants: list[dict[str, Any]]
) -> None:
    assert len(relevants) / len(subscribes) == pytest.approx(1 / 40, abs=0.01)
    for event in relevants:
        assert -180 <= event["lon"] <= 180
        assert -90 <= event["lat"] <= 90
        assert all(tokens(word) for word in event["keywords"])
        assert 1 <= event["k"] <= 20
        assert 0 <= event["alpha"] <= 1
        assert 2_000 <= event.get("reach_m", 2_000) <= 50_000
    assert {len(event["keywords"]) for event in relevants} == {1, 2, 3, 4}
    assert {1, 3, 5, 10, 20} <= {event["k"] for event in relevants}
    usual = sum(0.2 <= event["alpha"] <= 0.8 for event in relevants)
    assert usual > 0.9 * len(relevants)
    reaching = sum("reach_m" in event for event in relevants)
    assert 0.7 * len(relevants) < reaching < len(relevants)


def test_one_in_forty_is_a_trending_of_a_district_or_a_circle(
    subscribes: list[dict[str, Any]], trendings: list[dict[str, Any]]
) -> None:
    assert len(trendings) / len(subscribes) == pytest.approx(1 / 40, abs=0.01)
    forms = Counter(next(iter(event["region"])) for event in trendings)
    assert forms["box"] > forms["circle"] > 0 == forms["polygon"]
    districts = Counter(str(event["region"]) for event in trendings if "box" in event["region"])
    assert districts.most_common(1)[0][1] > 1  # those who ask about one district ask alike
    assert {event["k"] for event in trendings} == set(range(5, 11))
    assert {event["every"] for event in trendings} == {"PT5M", "PT10M"}
    assert {event["window"] for event in trendings} == {"PT10M", "PT20M", "PT30M"}


def test_queries_are_of_all_four_kinds_and_spread_over_the_hour(
    queries: list[dict[str, Any]],
) -> None:
    assert len(queries) == 1_500
    assert len({event["id"] for event in queries}) == 1_500
    kinds = Counter(event["kind"] for event in queries)
    assert set(kinds) == set(OWN_FIELDS)
    assert min(kinds.values()) > 200
    quarters = Counter(datetime.fromisoformat(event["ts"]).minute // 15 for event in queries)
    assert min(quarters.values()) > 300
    for kind, field in (("nearest", "mode"), ("nearest", "within_m"), ("relevant", "reach_m")):
        having = sum(field in event for event in queries if event["kind"] == kind)
        assert 0 < having < kinds[kind], field


def test_every_query_is_answered_and_every_subscription_valid() -> None:
    life = CityLife(objects=4_000, subscriptions=1_000, queries=300, churn=0.2)
    log = log_of(life)
    outcome = placewire.run(log.split(b"\n")[:-1], batch_rows=2_000)
    assert outcome.dead_letters == []
    kinds = Counter(result["type"] for result in outcome.results)
    assert kinds["answer"] == 300
    assert kinds["report"] > 50
    updates = [result for result in outcome.results if result["type"] == "update"]
    scored = sum(any("score" in added for added in result["add"]) for result in updates)
    assert 50 < scored < len(updates) - 50


def test_with_small_words_left_out_every_subscription_is_still_valid() -> None:
    settings = {"stop_words": stop_words()}
    life = CityLife(objects=3_000, subscriptions=5_000, queries=0)
    events = [line for block in blocks(life) for line in bytes(block).splitlines()]
    outcome = placewire.run([msgspec.json.decode(line) for line in events], settings=settings)
    assert outcome.dead_letters == []
    told = {term for r in outcome.results if r["type"] == "report" for term, _ in r["terms"]}
    assert told
    assert not told & set(stop_words())


@pytest.mark.parametrize("query", readable_queries(), ids=lambda query: query.event["id"])
def test_readable_queries_come_in_time_and_have_an_answer(
    query: Any, hour: list[dict[str, Any]]
) -> None:
    at = next(row for row, event in enumerate(hour) if event["id"] == query.event["id"])
    asked = hour[at]
    assert asked["ts"] == f"{START + timedelta(hours=query.at):%Y-%m-%dT%H:%M:%S.%fZ}"
    minutes = int(asked["last"].removeprefix("PT").removesuffix("M"))
    since = datetime.fromisoformat(asked["ts"]) - timedelta(minutes=minutes)
    recent = [
        event
        for event in hour[:at]
        if event["type"] == "object" and datetime.fromisoformat(event["ts"]) > since
    ]
    if "keywords" in asked:
        found = [event for event in recent if suits(asked, tokens(event["text"]))]
        assert min(distance_m(asked, event["lon"], event["lat"]) for event in found) < 2_000
    else:
        found = heard(asked, recent)
    assert len(found) >= 5


def test_queries_may_be_few_or_none() -> None:
    for queries in (0, 1, 3, 4, 5):
        life = CityLife(objects=20, subscriptions=0, queries=queries)
        events = events_of(life)
        assert sum(event["type"] == "query" for event in events) == queries
        assert len(events) == count_events(life)


def test_replacements_may_change_the_kind(subscribes: list[dict[str, Any]]) -> None:
    kinds: dict[str, list[str]] = {}
    for event in subscribes:
        kinds.setdefault(event["id"], []).append(event["kind"])
    assert ["boolean", "nearest"] in kinds.values()
    assert ["nearest", "boolean"] in kinds.values()


def test_a_tenth_expire_after_they_begin(subscribes: list[dict[str, Any]]) -> None:
    expiring = [event for event in subscribes if "expires" in event]
    assert len(expiring) / len(subscribes) == pytest.approx(0.1, abs=0.02)
    ends = [datetime.fromisoformat(event["expires"]) for event in expiring]
    for event, end in zip(expiring, ends, strict=True):
        assert end > datetime.fromisoformat(event["ts"])
    assert any(end < END for end in ends)
    assert any(end > END for end in ends)


def test_texts_have_many_scripts_cases_and_a_long_tail(objects: list[dict[str, Any]]) -> None:
    texts = [event["text"] for event in objects]
    together = "".join(texts)
    for letter in "éßçışжقच咖の커☕#":
        assert letter in together
    assert any('"' in text for text in texts)
    assert any(text.isupper() for text in texts)
    assert any(text.islower() for text in texts)
    frequency = Counter(term for text in texts for term in tokens(text))
    assert len(frequency) > 12_000
    assert frequency.most_common(1)[0][1] < 0.2 * len(texts)
    assert sum(count == 1 for count in frequency.values()) > 4_000
    lengths = sorted(len(text.split()) for text in texts)
    assert lengths[len(lengths) // 50] >= 4
    assert lengths[-1] <= 20


@pytest.mark.parametrize("subscription", READABLE, ids=lambda event: event["id"])
def test_readable_subscriptions_have_something_to_hear(
    subscription: dict[str, Any], hour: list[dict[str, Any]], objects: list[dict[str, Any]]
) -> None:
    assert subscription in hour[: len(READABLE)]
    assert len(heard(subscription, objects)) >= 5


def test_there_are_as_many_readable_ones_as_the_words_say() -> None:
    assert len(READABLE) == 18
    kinds = Counter(event["kind"] for event in READABLE)
    assert kinds == {"boolean": 12, "nearest": 3, "relevant": 1, "trending": 2}
    asked = [query.event["kind"] for query in readable_queries()]
    assert sorted(asked) == ["boolean", "nearest", "relevant", "trending"]


def test_a_storm_crosses_london_from_west_to_east(objects: list[dict[str, Any]]) -> None:
    def mean_lon(begin: int, end: int) -> float:
        lons = [
            event["lon"]
            for event in objects
            if contains({"box": [-0.6, 51.3, 0.4, 51.7]}, event["lon"], event["lat"])
            and tokens(event["text"]) & {"flooding", "flooded", "flood"}
            and begin <= datetime.fromisoformat(event["ts"]).minute < end
        ]
        assert len(lons) > 20
        return sum(lons) / len(lons)

    assert mean_lon(12, 22) < mean_lon(28, 40)


def test_there_is_jazz_by_the_river_all_the_time(objects: list[dict[str, Any]]) -> None:
    jazz = next(event for event in READABLE if event["kind"] == "relevant")
    near = [
        event
        for event in objects
        if {"jazz", "trumpet", "river"} <= tokens(event["text"])
        and distance_m(jazz, event["lon"], event["lat"]) < jazz["reach_m"]
    ]
    quarters = Counter(datetime.fromisoformat(event["ts"]).minute // 15 for event in near)
    assert all(quarters[quarter] >= jazz["k"] for quarter in range(4))
    assert len({" ".join(event["text"].split()[:2]).casefold() for event in near}) > 10


def test_malformed_lines_are_sprinkled_in_and_nothing_else_changes_shape() -> None:
    lines = log_of(BUSY).split(b"\n")[:-1]
    assert len(lines) == count_events(BUSY)
    marked = [row for row, line in enumerate(lines) if b"bad-" in line or not line]
    assert len(marked) == BUSY.bad
    assert marked[-1] - marked[0] > BUSY.objects / 2
    broken = 0
    for row in marked:
        try:
            msgspec.json.decode(lines[row])
        except (msgspec.DecodeError, UnicodeDecodeError):
            broken += 1
    assert broken == 4 * 2  # of each dozen: cut off, not JSON, not UTF-8, empty
    for row in set(range(len(lines))) - set(marked):
        msgspec.json.decode(lines[row])


def test_write_log_writes_the_blocks_and_tells_progress(tmp_path: Path) -> None:
    life = CityLife(objects=60_000, subscriptions=100, queries=0)
    told: list[tuple[int, int]] = []
    events = write_log(
        life, tmp_path / "hour.jsonl", lambda done, total: told.append((done, total))
    )
    assert events == count_events(life) == 60_100
    assert told == [(50_000, 60_100), (60_100, 60_100)]
    assert (tmp_path / "hour.jsonl").read_bytes() == log_of(life)


@pytest.mark.parametrize(
    ("life", "events"),
    [
        (CityLife(objects=0, subscriptions=0, queries=0), 0),
        (CityLife(objects=3, subscriptions=5, queries=0), 8),
        (CityLife(objects=0, subscriptions=40, churn=1.0), 18 + 11 + 22 + 40),
        (CityLife(objects=1, subscriptions=0, bad=1, queries=2), 4),
        (CityLife(objects=50, subscriptions=19, churn=1.0, seconds=0.001), 69 + 40),
    ],
)
def test_small_logs(life: CityLife, events: int) -> None:
    log = log_of(life)
    assert log.count(b"\n") == count_events(life) == events


@pytest.mark.parametrize(
    "life",
    [
        CityLife(objects=-1),
        CityLife(queries=-1),
        CityLife(churn=1.5),
        CityLife(seconds=0),
        CityLife(start="noon"),
        CityLife(start="2026-03-01T12:00:00"),
    ],
)
def test_impossible_descriptions_are_refused(life: CityLife) -> None:
    with pytest.raises(Unusable, match=r"city life: .*, got"):
        next(blocks(life))


def test_the_map_is_consistent() -> None:
    names = [city.name for city in places().cities]
    assert 120 <= len(names) == len(set(names)) <= 160
    codes = {language.code for language in languages()}
    assert len(codes) == 12
    for city in places().cities:
        assert set(city.languages.split()) <= codes
    centre = {city.name: city for city in places().cities}
    for spot in places().hot_spots:
        city = centre[spot.city]
        assert math.hypot(spot.lon - city.lon, spot.lat - city.lat) < 0.35, spot.name


def test_topical_words_are_single_words() -> None:
    for language in languages():
        for topic in language.topics.values():
            words = topic.words.split()
            assert len(words) == len(set(words)), (language.code, words)
            for word in words:
                assert re.fullmatch(r"\S+", word)
                assert language.code == "hi" or len(tokens(word)) == 1, word
    assert len(compile_templates().pieces) > 40_000
