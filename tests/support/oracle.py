"""The oracle: the specification replayed event by event, with nothing clever in it.

It shares no code with the product, so that one mistake cannot hide in both. It is one module, in
the order of the specification's sections, so that it can be read beside that page.

Times and durations are whole microseconds; times count from 0001-01-01T00:00:00Z.
"""

import json
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

ALL_KINDS = frozenset({"boolean", "nearest", "relevant", "trending"})

SECOND = 1_000_000
DAY = 86_400 * SECOND
END_OF_YEAR_9999 = date(9999, 12, 31).toordinal() * DAY
EARTH_RADIUS_M = 6_371_008.8
# A data value of 16 KiB nests at most 8,192 deep, and nothing else valid nests deeper.
JSON_DEPTH = 8_192 + 8

Analyzer = Callable[[str], list[str]]


class Outcome(NamedTuple):
    """What a log gives: results as section 11 sorts them, dead letters, unsubscribes of nothing."""

    results: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    idle_unsubscribes: int


class InvalidEvent(Exception):
    """The event has no effect and goes to the dead letters."""


def refuse(reason: str) -> NoReturn:
    raise InvalidEvent(reason)


def shown(value: Any) -> str:
    """A value for an error's text; a list or an object only by name, it may nest too deep."""
    return type(value).__name__ if isinstance(value, list | dict) else f"{value!r:.60}"


# Section 10: settings


@dataclass(frozen=True)
class Settings:
    analyzer: Analyzer
    documents: int | None  # None: there is no lexicon
    df: dict[str, int]
    window_count: int | None  # exactly one of the two windows is set
    window_time: int | None
    retention: int
    reach_m: float
    max_ahead: int


def read_settings(given: dict[str, Any] | None) -> Settings:
    """Section 10 with defaults; durations are strings, `analyzer` a function, `lexicon` a dict."""
    values: dict[str, Any] = {
        "analyzer": default_analyzer,
        "lexicon": None,
        "window": {"count": 100_000},
        "retention": "P1D",
        "reach_m": 20015114.35,
        "max_ahead": "P366D",
    }
    for name, value in (given or {}).items():
        if name not in values:
            raise ValueError(f"unknown setting {name!r}")
        values[name] = value
    lexicon = values["lexicon"]
    window = values["window"]
    return Settings(
        analyzer=values["analyzer"],
        documents=None if lexicon is None else lexicon["documents"],
        df={} if lexicon is None else lexicon["df"],
        window_count=window.get("count"),
        window_time=read_duration(window["time"]) if "time" in window else None,
        retention=read_duration(values["retention"]),
        reach_m=float(values["reach_m"]),
        max_ahead=read_duration(values["max_ahead"]),
    )


# Section 2: JSON


def object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            refuse(f"repeated key {key!r}")
        value[key] = item
    return value


def integer_of(text: str) -> int:
    if math.isinf(float(text)):
        refuse("a number that is not finite")
    return int(text)


def float_of(text: str) -> float:
    if math.isinf(float(text)):
        refuse("a number that is not finite")
    return float(text)


def literal_of(text: str) -> NoReturn:
    refuse(f"{text} is not JSON")


def read_json(line: bytes) -> dict[str, Any]:
    """The one JSON object on a line, or InvalidEvent."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        refuse("not UTF-8")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(JSON_DEPTH + 2_000)
    try:
        event = json.loads(
            text,
            object_pairs_hook=object_of_pairs,
            parse_int=integer_of,
            parse_float=float_of,
            parse_constant=literal_of,
        )
    except json.JSONDecodeError as error:
        refuse(f"bad JSON: {error}")
    except RecursionError:
        refuse("nested deeper than any valid event")
    finally:
        sys.setrecursionlimit(limit)
    if not isinstance(event, dict):
        refuse("not a JSON object")
    refuse_lone_surrogates(event)
    return event


def refuse_lone_surrogates(event: Any) -> None:
    waiting = [event]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.keys())
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and re.search("[\ud800-\udfff]", value):
            refuse("a lone surrogate")


def compact_json_bytes(value: Any) -> int:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(JSON_DEPTH + 2_000)
    try:
        return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
    finally:
        sys.setrecursionlimit(limit)


# Section 2: times and durations

TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
DURATION = re.compile(
    r"P(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]+))?S)?)?"
)
LONGEST_DURATION = 36_500 * DAY


def microseconds_of(fraction: str | None) -> int:
    """The digits after the point, cut off after the sixth."""
    return int(((fraction or "") + "000000")[:6])


def read_time(value: Any) -> int:
    if not isinstance(value, str):
        refuse("a time must be a string")
    found = TIME.fullmatch(value)
    if found is None:
        refuse(f"not an RFC 3339 time: {value!r}")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = found.groups()[6:]
    if hour > 23 or minute > 59 or second > 59:
        refuse(f"no such time of day: {value!r}")
    # Year 0000 may still be year 0001 in UTC; `date` has no year 0, the calendar repeats after
    # 400 years of 146,097 days.
    years, leap = (400, 146_097) if year == 0 else (0, 0)
    try:
        days = date(year + years, month, day).toordinal() - leap - 1
    except ValueError:
        refuse(f"no such day: {value!r}")
    time = days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + microseconds_of(fraction)
    if sign is not None:
        if int(offset_hours) > 23 or int(offset_minutes) > 59:
            refuse(f"no such offset: {value!r}")
        offset = (int(offset_hours) * 60 + int(offset_minutes)) * 60 * SECOND
        time += offset if sign == "-" else -offset
    if not 0 <= time < END_OF_YEAR_9999:
        refuse(f"outside the years 0001-9999 in UTC: {value!r}")
    return time


def print_time(time: int) -> str:
    """UTC with `Z`, and a fraction (six digits) only when it is not zero."""
    return (datetime(1, 1, 1) + timedelta(microseconds=time)).isoformat() + "Z"


def read_duration(value: Any) -> int:
    if not isinstance(value, str):
        refuse("a duration must be a string")
    found = DURATION.fullmatch(value)
    if found is None or value == "P":
        refuse(f"not a duration PnDTnHnMnS: {value!r}")
    numbers = [(part or "").lstrip("0") or "0" for part in found.groups()[:4]]
    if any(len(number) > 20 for number in numbers):
        refuse(f"longer than P36500D: {value[:40]!r}")
    days, hours, minutes, seconds = (int(number) for number in numbers)
    duration = days * DAY + ((hours * 60 + minutes) * 60 + seconds) * SECOND
    duration += microseconds_of(found.group(5))
    if not 0 < duration <= LONGEST_DURATION:
        refuse(f"not greater than zero and at most P36500D: {value!r}")
    return duration


# Section 2: fields


def read_number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(f"not a number: {shown(value)}")
    if not low <= float(value) <= high:
        refuse(f"out of {low}..{high}: {value!r}")
    return float(value)


def read_positive(value: Any) -> float:
    number = read_number(value)
    if not number > 0:
        refuse(f"not greater than zero: {value!r}")
    return number


def read_integer(value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(f"not an integer: {shown(value)}")
    if not low <= value <= high:
        refuse(f"out of {low}..{high}: {value!r}")
    return value


def read_lon(value: Any) -> float:
    return read_number(value, -180.0, 180.0)


def read_lat(value: Any) -> float:
    return read_number(value, -90.0, 90.0)


def check_fields(value: dict[str, Any], required: Iterable[str], optional: Iterable[str]) -> None:
    for name in required:
        if name not in value:
            refuse(f"missing field {name!r}")
    for name in value:
        if name not in required and name not in optional:
            refuse(f"unknown field {name!r:.60}")


# Section 3: space


def distance_m(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """The great-circle distance, rounded half to even to whole millimetres."""
    phi1, phi2 = math.radians(lat1), math.radians(lat2)
    sin_lat = math.sin((phi2 - phi1) / 2)
    sin_lon = math.sin((math.radians(lon2) - math.radians(lon1)) / 2)
    a = sin_lat * sin_lat + math.cos(phi1) * math.cos(phi2) * (sin_lon * sin_lon)
    d = 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, a)))
    return round(1000 * d) / 1000


Position = tuple[float, float]
Inside = Callable[[float, float], bool]  # lon, lat


def read_region(value: Any) -> Inside:
    """A region as the question whether it holds a point."""
    if not isinstance(value, dict) or len(value) != 1:
        refuse("a region is an object with one of box, circle, polygon")
    if "box" in value:
        return read_box(value["box"])
    if "circle" in value:
        return read_circle(value["circle"])
    if "polygon" in value:
        return read_polygon(value["polygon"])
    refuse("a region is a box, a circle or a polygon")


def read_box(value: Any) -> Inside:
    if not isinstance(value, list) or len(value) != 4:
        refuse("a box is [west, south, east, north]")
    west, south = read_lon(value[0]), read_lat(value[1])
    east, north = read_lon(value[2]), read_lat(value[3])
    if south > north:
        refuse("south > north")

    def inside(lon: float, lat: float) -> bool:
        if not south <= lat <= north:
            return False
        if west > east:
            return lon >= west or lon <= east
        return west <= lon <= east

    return inside


def read_circle(value: Any) -> Inside:
    if not isinstance(value, dict):
        refuse("a circle is an object")
    check_fields(value, ("lon", "lat", "radius_m"), ())
    lon0, lat0 = read_lon(value["lon"]), read_lat(value["lat"])
    radius_m = read_positive(value["radius_m"])
    return lambda lon, lat: distance_m(lon0, lat0, lon, lat) <= radius_m


def read_polygon(value: Any) -> Inside:
    if not isinstance(value, list) or not value:
        refuse("a polygon is a list of one ring or more")
    rings = [read_ring(ring) for ring in value]
    edges = [edge for ring in rings for edge in pairwise(ring)]

    def inside(x: float, y: float) -> bool:
        crossings = 0
        for (ax, ay), (bx, by) in edges:
            if (
                (bx - ax) * (y - ay) == (by - ay) * (x - ax)
                and min(ax, bx) <= x <= max(ax, bx)
                and min(ay, by) <= y <= max(ay, by)
            ):
                return True
            if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
                crossings += 1
        return crossings % 2 == 1

    return inside


def read_ring(value: Any) -> list[Position]:
    if not isinstance(value, list) or len(value) < 4:
        refuse("a ring has 4 positions or more")
    ring = []
    for position in value:
        if not isinstance(position, list) or len(position) != 2:
            refuse("a position is exactly two numbers")
        ring.append((read_lon(position[0]), read_lat(position[1])))
    if ring[0] != ring[-1]:
        refuse("a ring is closed")
    return ring


# Section 4: text


def default_analyzer(text: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


class Expression(NamedTuple):
    operator: str  # "term", "all", "any" or "none"
    term: str
    parts: list["Expression"]
    depth: int
    width: int

    def holds(self, terms: frozenset[str]) -> bool:
        if self.operator == "term":
            return self.term in terms
        if self.operator == "all":
            return all(part.holds(terms) for part in self.parts)
        if self.operator == "any":
            return any(part.holds(terms) for part in self.parts)
        return not any(part.holds(terms) for part in self.parts)


def combine(operator: str, parts: list[Expression]) -> Expression:
    """One `all`, `any`, `none`, `NOT`, run of `AND` or run of `OR`: each adds 1 to the depth."""
    depth = 1 + max(part.depth for part in parts)
    width = sum(part.width for part in parts)
    if depth > 8:
        refuse("an expression deeper than 8")
    if width > 256:
        refuse("an expression wider than 256 tokens")
    return Expression(operator, "", parts, depth, width)


def read_word(text: str, analyzer: Analyzer) -> Expression:
    """A word or quoted words: all of its tokens."""
    tokens = analyzer(text)
    if not tokens:
        refuse(f"a word without a token: {text!r:.60}")
    parts = [Expression("term", token, [], 1, 1) for token in tokens]
    return parts[0] if len(parts) == 1 else combine("all", parts)


def read_where(value: Any, analyzer: Analyzer, level: int = 1) -> Expression:
    if isinstance(value, str):
        return Parser(value, analyzer).parse()
    if not isinstance(value, dict) or len(value) != 1:
        refuse("an expression is a string or an object with one of all, any, none")
    if level > 8:
        refuse("an expression deeper than 8")
    [(operator, items)] = value.items()
    if operator not in ("all", "any", "none"):
        refuse(f"unknown operator {operator!r:.60}")
    if not isinstance(items, list) or not items:
        refuse(f"{operator!r} needs a list that is not empty")
    return combine(operator, [read_where(item, analyzer, level + 1) for item in items])


class Parser:
    """The query string: NOT binds tightest, then AND (or nothing), then OR."""

    PIECE = re.compile(r'(?P<space>\s+)|(?P<paren>[()])|"(?P<quoted>[^"]*)"|(?P<word>[^\s()"]+)')

    def __init__(self, text: str, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.pieces: list[tuple[str, str]] = []  # ("(" | ")" | "AND" | "OR" | "NOT" | "word", text)
        self.next = 0
        self.nesting = 0
        at = 0
        while at < len(text):
            found = self.PIECE.match(text, at)
            if found is None:
                refuse("quotes do not balance")
            at = found.end()
            if found["paren"] is not None:
                self.pieces.append((found["paren"], ""))
            elif found["quoted"] is not None:
                self.pieces.append(("word", found["quoted"]))
            elif found["word"] in ("AND", "OR", "NOT"):
                self.pieces.append((found["word"], ""))
            elif found["word"] is not None:
                self.pieces.append(("word", found["word"]))

    def peek(self) -> str:
        return self.pieces[self.next][0] if self.next < len(self.pieces) else "end"

    def parse(self) -> Expression:
        expression = self.parse_or()
        if self.peek() != "end":
            refuse(f"unexpected {self.peek()!r}")
        return expression

    def parse_or(self) -> Expression:
        parts = [self.parse_and()]
        while self.peek() == "OR":
            self.next += 1
            parts.append(self.parse_and())
        return parts[0] if len(parts) == 1 else combine("any", parts)

    def parse_and(self) -> Expression:
        parts = [self.parse_not()]
        while self.peek() in ("AND", "word", "(", "NOT"):
            if self.peek() == "AND":
                self.next += 1
            parts.append(self.parse_not())
        return parts[0] if len(parts) == 1 else combine("all", parts)

    def parse_not(self) -> Expression:
        negations = 0
        while self.peek() == "NOT":
            self.next += 1
            negations += 1
        expression = self.parse_atom()
        for _ in range(negations):
            expression = combine("none", [expression])
        return expression

    def parse_atom(self) -> Expression:
        piece = self.peek()
        if piece == "word":
            self.next += 1
            return read_word(self.pieces[self.next - 1][1], self.analyzer)
        if piece != "(":
            refuse(f"expected a word, got {piece!r}")
        self.next += 1
        self.nesting += 1
        if self.nesting > 64:
            refuse("parentheses nest at most 64")
        expression = self.parse_or()
        if self.peek() != ")":
            refuse("parentheses do not balance")
        self.next += 1
        self.nesting -= 1
        return expression


def read_keywords(value: Any, analyzer: Analyzer) -> frozenset[str]:
    if not isinstance(value, list) or not 1 <= len(value) <= 64:
        refuse("keywords is a list of 1 to 64 words")
    terms: set[str] = set()
    for word in value:
        if not isinstance(word, str):
            refuse("a keyword must be a string")
        tokens = analyzer(word)
        if not tokens:
            refuse(f"an empty keyword: {word!r:.60}")
        terms.update(tokens)
    return frozenset(terms)


# Section 2: the valid events

ABSENT = object()  # `null` is data, so None cannot say that there is none


class PlacedObject(NamedTuple):
    seq: int
    id: str
    ts: int
    lon: float
    lat: float
    terms: frozenset[str]
    data: Any


@dataclass
class Ask:
    """A subscription or a query: its fields, and what it remembers while it is live."""

    seq: int
    id: str
    ts: int
    kind: str
    is_query: bool
    expires: int | None = None
    region: Inside | None = None
    where: Expression | None = None
    lon: float = 0.0
    lat: float = 0.0
    keywords: frozenset[str] = frozenset()
    k: int = 0
    mode: str = "any"
    within_m: float | None = None
    alpha: float = 0.0
    reach_m: float = 0.0
    window: int = 0
    every: int = 0
    last: int = 0
    limit: int = 100
    # nearest and relevant: every candidate with its sort key, and the result last told
    candidates: list[tuple[float, int, PlacedObject]] = field(default_factory=list)
    result: list[PlacedObject] = field(default_factory=list)
    # trending: the number of the next report, and the objects that it may count
    report: int = 1
    arrived: list[PlacedObject] = field(default_factory=list)


class Unsubscribe(NamedTuple):
    id: str
    ts: int


# kind -> (required, optional) of its own fields, for a subscription and for a query
SUBSCRIPTION_FIELDS = {
    "boolean": ((), ("region", "where")),
    "nearest": (("lon", "lat", "keywords", "k"), ("mode", "within_m")),
    "relevant": (("lon", "lat", "keywords", "k", "alpha"), ("reach_m",)),
    "trending": (("k", "window", "every"), ("region",)),
}
QUERY_FIELDS = {
    **SUBSCRIPTION_FIELDS,
    "boolean": ((), ("region", "where", "limit")),
    "trending": (("k",), ("region",)),
}


def read_common(event: dict[str, Any], now: int | None, settings: Settings) -> int:
    """Check `id` and give `ts`, which every event has."""
    if not isinstance(event["id"], str) or not 1 <= len(event["id"]) <= 256:
        refuse("id must be a string of 1 to 256 characters")
    ts = read_time(event["ts"])
    if now is not None and ts - now > settings.max_ahead:
        refuse("ts is more than max_ahead past now")
    return ts


def check_data(event: dict[str, Any]) -> None:
    if "data" in event and compact_json_bytes(event["data"]) > 16 * 1024:
        refuse("data over 16 KiB")


def read_object(seq: int, event: dict[str, Any], now: int | None, s: Settings) -> PlacedObject:
    check_fields(event, ("type", "id", "ts", "lon", "lat", "text"), ("data",))
    ts = read_common(event, now, s)
    lon, lat = read_lon(event["lon"]), read_lat(event["lat"])
    text = event["text"]
    if not isinstance(text, str) or len(text.encode()) > 64 * 1024:
        refuse("text must be a string of at most 64 KiB of UTF-8")
    check_data(event)
    terms = frozenset(s.analyzer(text))
    return PlacedObject(seq, event["id"], ts, lon, lat, terms, event.get("data", ABSENT))


def read_ask(seq: int, event: dict[str, Any], now: int | None, s: Settings) -> Ask:
    query = event["type"] == "query"
    kind = event.get("kind")
    if not isinstance(kind, str) or kind not in ALL_KINDS:
        refuse(f"unknown kind {shown(kind)}")
    required, optional = (QUERY_FIELDS if query else SUBSCRIPTION_FIELDS)[kind]
    check_fields(
        event,
        ("type", "id", "ts", "kind", *required, *(("last",) if query else ())),
        optional if query else (*optional, "expires", "data"),
    )
    ask = Ask(seq, event["id"], read_common(event, now, s), kind, query, reach_m=s.reach_m)
    if "expires" in event:
        ask.expires = read_time(event["expires"])
    if "last" in event:
        ask.last = read_duration(event["last"])
        if ask.last > s.retention:
            refuse("last is longer than retention")
    if "limit" in event:
        ask.limit = read_integer(event["limit"], 1, 10_000)
    check_data(event)
    if kind == "boolean" and "region" not in event and "where" not in event:
        refuse("region and where are both absent")
    if "region" in event:
        ask.region = read_region(event["region"])
    if "where" in event:
        ask.where = read_where(event["where"], s.analyzer)
    if "lon" in event:
        ask.lon, ask.lat = read_lon(event["lon"]), read_lat(event["lat"])
        ask.keywords = read_keywords(event["keywords"], s.analyzer)
    if "k" in event:
        ask.k = read_integer(event["k"], 1, 1000)
    if "mode" in event:
        if event["mode"] not in ("any", "all"):
            refuse("mode must be any or all")
        ask.mode = event["mode"]
    if "within_m" in event:
        ask.within_m = read_positive(event["within_m"])
    if "alpha" in event:
        ask.alpha = read_number(event["alpha"], 0.0, 1.0)
    if "reach_m" in event:
        ask.reach_m = read_positive(event["reach_m"])
    if "window" in event:
        ask.window, ask.every = read_duration(event["window"]), read_duration(event["every"])
        if ask.window > 31 * DAY:
            refuse("window is longer than P31D")
        if ask.every < SECOND:
            refuse("every is shorter than PT1S")
        if ask.window > 10_000 * ask.every:
            refuse("window is more than 10,000 times every")
    return ask


def read_event(
    seq: int, line: bytes, now: int | None, settings: Settings
) -> PlacedObject | Ask | Unsubscribe:
    event = read_json(line)
    kind_of_event = event.get("type")
    if kind_of_event == "object":
        return read_object(seq, event, now, settings)
    if kind_of_event in ("subscribe", "query"):
        return read_ask(seq, event, now, settings)
    if kind_of_event == "unsubscribe":
        check_fields(event, ("type", "id", "ts"), ())
        return Unsubscribe(event["id"], read_common(event, now, settings))
    refuse(f"unknown type {shown(kind_of_event)}")


# Sections 5 to 8: what one object is to one subscription or query


def in_region(ask: Ask, placed: PlacedObject) -> bool:
    return ask.region is None or ask.region(placed.lon, placed.lat)


def matches(ask: Ask, placed: PlacedObject) -> bool:
    return in_region(ask, placed) and (ask.where is None or ask.where.holds(placed.terms))


def nearest_distance(ask: Ask, placed: PlacedObject) -> float | None:
    """The distance of a candidate of a `nearest`; None when the object is no candidate."""
    shared = ask.keywords & placed.terms
    if not shared or (ask.mode == "all" and shared != ask.keywords):
        return None
    distance = distance_m(ask.lon, ask.lat, placed.lon, placed.lat)
    if ask.within_m is not None and distance > ask.within_m:
        return None
    return distance


def relevance(ask: Ask, placed: PlacedObject, settings: Settings) -> float | None:
    """The score of a candidate of a `relevant`; None when the object shares no term."""

    def idf(term: str) -> float:
        if settings.documents is None:
            return 1.0
        return math.log(1 + settings.documents / (1 + settings.df.get(term, 0)))

    def norm(terms: frozenset[str]) -> float:
        total = 0.0
        for term in sorted(terms):
            total += idf(term) * idf(term)
        return math.sqrt(total)

    shared = ask.keywords & placed.terms
    if not shared:
        return None
    distance = distance_m(ask.lon, ask.lat, placed.lon, placed.lat)
    spatial = max(0.0, 1 - distance / ask.reach_m)
    textual = 0.0
    ask_norm, object_norm = norm(ask.keywords), norm(placed.terms)
    if ask_norm != 0 and object_norm != 0:
        for term in sorted(shared):
            textual += (idf(term) / ask_norm) * (idf(term) / object_norm)
    score = ask.alpha * spatial + (1 - ask.alpha) * textual
    return round(1e9 * score) / 1e9


def top_terms(objects: list[PlacedObject], k: int) -> list[list[Any]]:
    counts: dict[str, int] = {}
    for placed in objects:
        for term in placed.terms:
            counts[term] = counts.get(term, 0) + 1
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [[term, count] for term, count in ranked[:k]]


def nearest_candidate(ask: Ask, placed: PlacedObject) -> list[tuple[float, int, PlacedObject]]:
    """None or one (distance, seq, object): sorted, the result comes first."""
    distance = nearest_distance(ask, placed)
    return [] if distance is None else [(distance, placed.seq, placed)]


def relevant_candidate(
    ask: Ask, placed: PlacedObject, settings: Settings
) -> list[tuple[float, int, PlacedObject]]:
    """None or one (-score, -seq, object): sorted, the result comes first."""
    score = relevance(ask, placed, settings)
    return [] if score is None else [(-score, -placed.seq, placed)]


# Sections 1, 2 and 9: the log, event by event


class Replay:
    def __init__(self, settings: Settings, with_data: bool) -> None:
        self.settings = settings
        self.with_data = with_data
        self.now: int | None = None
        self.objects: list[PlacedObject] = []  # every object, in seq order
        self.sliding: list[PlacedObject] = []  # the sliding window, in seq order
        self.live: dict[str, Ask] = {}
        self.results: list[tuple[tuple[Any, ...], dict[str, Any]]] = []  # sort key, result
        self.idle_unsubscribes = 0

    def apply(self, seq: int, event: PlacedObject | Ask | Unsubscribe) -> None:
        now = self.now = event.ts if self.now is None else max(self.now, event.ts)
        # Reports are made just before the event is applied, even if it ends their subscription.
        for subscription in self.live.values():
            if subscription.kind == "trending":
                self.make_reports(seq, subscription, now)
        self.live = {
            id: subscription
            for id, subscription in self.live.items()
            if subscription.expires is None or now < subscription.expires
        }
        # The event that ends or replaces a subscription gives nothing more for the old one.
        if isinstance(event, Unsubscribe):
            if event.id in self.live:
                del self.live[event.id]
            else:
                self.idle_unsubscribes += 1
        elif isinstance(event, Ask) and not event.is_query:
            self.live.pop(event.id, None)
        elif isinstance(event, PlacedObject):
            self.objects.append(event)
            self.sliding.append(event)
        left = self.slide(now)
        for subscription in self.live.values():
            if subscription.kind == "relevant":
                self.update_relevant(seq, subscription, event, left)
            elif isinstance(event, PlacedObject):
                self.meet(seq, subscription, event)
        if isinstance(event, Ask) and event.is_query:
            self.answer(seq, event, now)
        elif isinstance(event, Ask) and (event.expires is None or now < event.expires):
            self.live[event.id] = event
            if event.kind == "relevant":
                for placed in self.sliding:
                    event.candidates += relevant_candidate(event, placed, self.settings)
                self.tell_relevant(seq, event)

    def slide(self, now: int) -> set[int]:
        """Let objects leave the sliding window by count or by time; give the seqs that left."""
        if self.settings.window_time is None:
            assert self.settings.window_count is not None
            left = self.sliding[: -self.settings.window_count]
        else:
            oldest = now - self.settings.window_time
            left = [placed for placed in self.sliding if placed.ts <= oldest]
        seqs = {placed.seq for placed in left}
        if seqs:
            self.sliding = [placed for placed in self.sliding if placed.seq not in seqs]
        return seqs

    def meet(self, seq: int, subscription: Ask, placed: PlacedObject) -> None:
        """An object arrives while a boolean, nearest or trending subscription is live."""
        if subscription.kind == "boolean" and matches(subscription, placed):
            told = {"subscription": subscription.id, **self.name(placed)}
            self.tell(seq, "match", subscription.id, told)
        elif subscription.kind == "trending" and in_region(subscription, placed):
            subscription.arrived.append(placed)
        elif subscription.kind == "nearest":
            subscription.candidates += nearest_candidate(subscription, placed)
            # What is not in the result now can never come back: nothing leaves but by a nearer one.
            subscription.candidates = sorted(subscription.candidates)[: subscription.k]
            distances = {one.seq: distance for distance, _, one in subscription.candidates}
            result = [one for _, _, one in subscription.candidates]
            self.tell_change(seq, subscription, result, "distance_m", distances)

    def update_relevant(
        self, seq: int, subscription: Ask, event: PlacedObject | Ask | Unsubscribe, left: set[int]
    ) -> None:
        """Apply the arrival and the expiries of one event together."""
        arrived = []
        if isinstance(event, PlacedObject):
            arrived = relevant_candidate(subscription, event, self.settings)
        if arrived or left:
            candidates = subscription.candidates + arrived
            subscription.candidates = [one for one in candidates if one[2].seq not in left]
            self.tell_relevant(seq, subscription)

    def tell_relevant(self, seq: int, subscription: Ask) -> None:
        first = sorted(subscription.candidates)[: subscription.k]
        scores = {placed.seq: -minus_score for minus_score, _, placed in first}
        self.tell_change(seq, subscription, [placed for _, _, placed in first], "score", scores)

    def tell_change(
        self,
        seq: int,
        subscription: Ask,
        result: list[PlacedObject],
        measure: str,
        measures: dict[int, float],
    ) -> None:
        """One `update` when the result differs from the one last told."""
        before = {placed.seq for placed in subscription.result}
        after = {placed.seq for placed in result}
        add = [
            self.name(placed, **{measure: measures[placed.seq]})
            for placed in result
            if placed.seq not in before
        ]
        drop = [self.name(placed) for placed in subscription.result if placed.seq not in after]
        subscription.result = result
        if add or drop:
            told = {"subscription": subscription.id, "add": add, "drop": drop}
            self.tell(seq, "update", subscription.id, told)

    def make_reports(self, seq: int, subscription: Ask, now: int) -> None:
        """Make every report with t_n < now and t_n < expires that was not made yet."""
        end = now if subscription.expires is None else min(now, subscription.expires)
        while (due := subscription.ts + subscription.report * subscription.every) < end:
            oldest = due - subscription.window
            # Later reports look no further back.
            subscription.arrived = [one for one in subscription.arrived if one.ts > oldest]
            counted = [one for one in subscription.arrived if one.ts <= due]
            if counted:
                told = {
                    "subscription": subscription.id,
                    "at": print_time(due),
                    "terms": top_terms(counted, subscription.k),
                }
                self.tell(seq, "report", subscription.id, told, at=due)
                subscription.report += 1
            else:
                # No report until a due time at or after the next object; if none, until the end.
                target = min([end, *(one.ts for one in subscription.arrived)])
                subscription.report = -((subscription.ts - target) // subscription.every)

    def answer(self, seq: int, query: Ask, now: int) -> None:
        asked = [placed for placed in self.objects if now - query.last < placed.ts <= now]
        told: dict[str, Any] = {"query": query.id}
        if query.kind == "boolean":
            found = [placed for placed in reversed(asked) if matches(query, placed)]
            told["total"] = len(found)
            told["objects"] = [self.name(placed) for placed in found[: query.limit]]
        elif query.kind == "nearest":
            ranked = sorted(one for placed in asked for one in nearest_candidate(query, placed))
            told["objects"] = [
                self.name(placed, distance_m=distance) for distance, _, placed in ranked[: query.k]
            ]
        elif query.kind == "relevant":
            ranked = sorted(
                one for placed in asked for one in relevant_candidate(query, placed, self.settings)
            )
            told["objects"] = [
                self.name(placed, score=-minus_score)
                for minus_score, _, placed in ranked[: query.k]
            ]
        else:
            inside = [placed for placed in asked if in_region(query, placed)]
            told["terms"] = top_terms(inside, query.k)
        self.tell(seq, "answer", query.id, told)

    def name(self, placed: PlacedObject, **measure: float) -> dict[str, Any]:
        named: dict[str, Any] = {"object": placed.id, **measure}
        if self.with_data and placed.data is not ABSENT:
            named["data"] = placed.data
        return named

    def tell(self, seq: int, type: str, id: str, told: dict[str, Any], at: int = 0) -> None:
        self.results.append(((seq, type, id, at), {"seq": seq, "type": type, **told}))


def lines_of(log: bytes) -> list[bytes]:
    lines = log.split(b"\n")
    if lines[-1] == b"":  # nothing follows the last \n (or the log is empty)
        lines.pop()
    return lines


def replay(
    log: bytes,
    *,
    kinds: frozenset[str] = ALL_KINDS,
    with_data: bool = False,
    settings: dict[str, Any] | None = None,
) -> Outcome:
    """Replay a whole event log; subscriptions of kinds outside `kinds` are refused."""
    state = Replay(read_settings(settings), with_data)
    dead = []
    for seq, line in enumerate(lines_of(log)):
        try:
            event = read_event(seq, line, state.now, state.settings)
            if isinstance(event, Ask) and not event.is_query and event.kind not in kinds:
                refuse(f"kind {event.kind!r} is refused")
        except InvalidEvent as error:
            text = line.decode("utf-8", "replace")
            dead.append({"seq": seq, "error": str(error), "event": text})
            continue
        state.apply(seq, event)
    ordered = sorted(state.results, key=lambda result: result[0])
    return Outcome([result for _, result in ordered], dead, state.idle_unsubscribes)
