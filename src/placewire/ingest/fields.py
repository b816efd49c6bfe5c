"""Check and read the fields of subscriptions and queries."""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from placewire.model.errors import InvalidEvent
from placewire.model.events import MOST_K, UNSET, QueryEvent, SubscribeEvent, check_point
from placewire.model.expression import ANY_TEXT, Program, compile_expression
from placewire.model.kinds import kind_named, kind_names
from placewire.model.regions import WHOLE_WORLD, Region, read_region
from placewire.model.settings import Settings
from placewire.model.times import DAY_US, SECOND_US, parse_timestamp, read_duration
from placewire.text.analyzer import Analyzer
from placewire.text.query import parse_keywords, parse_where
from placewire.text.words import Lexicon

MOST_LIMIT = 10_000
DEFAULT_LIMIT = 100
LONGEST_WINDOW_US = 31 * DAY_US
MOST_STEPS = 10_000


class KindFields(NamedTuple):
    """The fields that a kind has, those that it requires, and those that only other kinds have."""

    own: frozenset[str]
    needed: tuple[str, ...]
    foreign: tuple[str, ...]
    get_foreign: Any

    def check_event(self, event: SubscribeEvent | QueryEvent, what: str) -> None:
        """Raise InvalidEvent unless an event has the required fields and none of another kind."""
        values = self.get_foreign(event)
        if any(value is not UNSET for value in values):
            name = next(n for n in self.foreign if getattr(event, n) is not UNSET)
            raise InvalidEvent(f"a {event.kind} {what} has no field {name!r}")
        for name in self.needed:
            if getattr(event, name) is UNSET:
                raise InvalidEvent(f"a {event.kind} {what} needs the field {name!r}")


def make_fields(
    event: type[SubscribeEvent] | type[QueryEvent],
    every: tuple[str, ...],
    needed: tuple[str, ...],
    optional: tuple[str, ...],
) -> KindFields:
    """Build the fields of one kind; all kinds have those in `every`."""
    own = frozenset((*needed, *optional))
    foreign = tuple(n for n in event.__struct_fields__ if n not in own and n not in every)
    return KindFields(own, needed, foreign, attrgetter(*foreign))


POINT = ("lon", "lat", "keywords", "k")


@cache
def subscription_fields(kind: str) -> KindFields:
    """Return the fields of a kind's subscriptions."""
    of = kind_named(kind)
    every = ("id", "ts", "kind", "expires", "data")
    return make_fields(SubscribeEvent, every, of.needed, of.optional)


@cache
def query_fields(kind: str) -> KindFields:
    """Return the fields of a kind's queries."""
    of = kind_named(kind)
    assert of.query_needed is not None
    return make_fields(QueryEvent, ("id", "ts", "kind", "last"), of.query_needed, of.query_optional)


def check_kind(event: SubscribeEvent | QueryEvent) -> None:
    """Raise InvalidEvent unless the kind exists and the event has the fields of that kind."""
    names = kind_names()
    if isinstance(event, QueryEvent):
        names = tuple(name for name in names if kind_named(name).query_needed is not None)
    if event.kind not in names:
        raise InvalidEvent(f"kind must be one of {', '.join(names)}, got {event.kind!r}")
    if isinstance(event, QueryEvent):
        query_fields(event.kind).check_event(event, "query")
    else:
        subscription_fields(event.kind).check_event(event, "subscription")


class FieldReader(NamedTuple):
    """Reads the fields that several kinds share, of subscriptions and queries."""

    analyzer: Analyzer
    settings: Settings
    lexicon: Lexicon | None = None

    def region(self, event: SubscribeEvent | QueryEvent) -> Region:
        """Return the region, the whole world by default; raises InvalidEvent."""
        return WHOLE_WORLD if event.region is UNSET else read_region(event.region)

    def where(self, event: SubscribeEvent | QueryEvent) -> Program:
        """Return the compiled expression, any text by default; raises InvalidEvent."""
        if event.where is UNSET:
            return ANY_TEXT
        return compile_expression(parse_where(event.where, self.analyzer.tokens))

    def point(self, event: SubscribeEvent | QueryEvent) -> tuple[float, float]:
        """Return longitude and latitude; raises InvalidEvent."""
        check_point(event.lon, event.lat)  # type: ignore[arg-type]
        return float(event.lon), float(event.lat)  # type: ignore[arg-type]

    def keywords(self, event: SubscribeEvent | QueryEvent) -> list[str]:
        """Return the distinct terms of the keywords; raises InvalidEvent."""
        return parse_keywords(event.keywords, self.analyzer.tokens)


def read_k(k: object) -> int:
    """Return the number of objects or terms of a result."""
    if not isinstance(k, int) or not 1 <= k <= MOST_K:
        raise InvalidEvent(f"k must be 1..{MOST_K}, got {k!r}")
    return k


def read_limit(limit: object) -> int:
    """Return the most objects that an answer lists."""
    if limit is UNSET:
        return DEFAULT_LIMIT
    if not isinstance(limit, int) or not 1 <= limit <= MOST_LIMIT:
        raise InvalidEvent(f"limit must be 1..{MOST_LIMIT}, got {limit!r}")
    return limit


def read_mode(mode: object) -> bool:
    """Return whether an object must have every keyword."""
    if mode not in (UNSET, "any", "all"):
        raise InvalidEvent(f"mode must be 'any' or 'all', got {mode!r}")
    return mode == "all"


def read_alpha(alpha: float) -> float:
    """Return the weight of distance against text, 0 to 1."""
    if not 0.0 <= alpha <= 1.0:
        raise InvalidEvent(f"alpha must be in [0, 1], got {alpha!r}")
    return float(alpha)


def read_metres(metres: float, name: str) -> float:
    """Return a distance greater than zero."""
    if metres <= 0:
        raise InvalidEvent(f"{name} must be > 0, got {float(metres)!r}")
    return float(metres)


def read_reach(event: SubscribeEvent | QueryEvent, settings: Settings) -> float:
    """Return the distance at which the spatial score is zero."""
    if event.reach_m is UNSET:
        return settings.reach_m
    return read_metres(event.reach_m, "reach_m")


def read_window(window: str, every: str) -> tuple[int, int]:
    """Return the window and interval of reports in microseconds."""
    window_us, every_us = read_duration(window, "window"), read_duration(every, "every")
    if window_us > LONGEST_WINDOW_US:
        raise InvalidEvent(f"window must be at most P31D, got {window!r}")
    if every_us < SECOND_US:
        raise InvalidEvent(f"every must be at least PT1S, got {every!r}")
    if window_us > MOST_STEPS * every_us:
        raise InvalidEvent(
            f"window must be at most {MOST_STEPS} times every, got {window!r} and {every!r}"
        )
    return window_us, every_us


def read_expires(text: str) -> int:
    """Return the time at which a subscription expires."""
    try:
        return parse_timestamp(text)
    except InvalidEvent as error:
        raise InvalidEvent(f"expires: {error}") from None
