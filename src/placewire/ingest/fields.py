"""The fields of subscriptions and queries: which each kind has, and how their values are read."""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from placewire.model.errors import InvalidEvent
from placewire.model.events import MOST_K, UNSET, QueryEvent, SubscribeEvent
from placewire.model.kinds import kind_named, kind_names
from placewire.model.settings import Settings
from placewire.model.times import DAY_US, SECOND_US, parse_duration, parse_timestamp

MOST_LIMIT = 10_000
USUAL_LIMIT = 100
LONGEST_WINDOW_US = 31 * DAY_US
MOST_STEPS = 10_000


class Fields(NamedTuple):
    """The fields of a kind's own, those it cannot do without, and a quick look at all others."""

    own: frozenset[str]
    needed: tuple[str, ...]
    foreign: tuple[str, ...]
    read_foreign: Any

    def check(self, event: SubscribeEvent | QueryEvent, what: str) -> None:
        """Raise InvalidEvent unless the event has what it needs and nothing of another kind."""
        values = self.read_foreign(event)
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
) -> Fields:
    """The fields of one kind; `every` are those that all kinds have."""
    own = frozenset((*needed, *optional))
    foreign = tuple(n for n in event.__struct_fields__ if n not in own and n not in every)
    return Fields(own, needed, foreign, attrgetter(*foreign))


POINT = ("lon", "lat", "keywords", "k")


@cache
def subscription_fields(kind: str) -> Fields:
    """The fields of a kind's subscriptions."""
    of = kind_named(kind)
    every = ("id", "ts", "kind", "expires", "data")
    return make_fields(SubscribeEvent, every, of.needed, of.optional)


@cache
def query_fields(kind: str) -> Fields:
    """The fields of a kind's queries."""
    of = kind_named(kind)
    assert of.query_needed is not None
    return make_fields(QueryEvent, ("id", "ts", "kind", "last"), of.query_needed, of.query_optional)


def check_kind(event: SubscribeEvent | QueryEvent) -> None:
    """A kind that is built, with all of the fields it needs and only its own."""
    names = kind_names()
    if isinstance(event, QueryEvent):
        names = tuple(name for name in names if kind_named(name).query_needed is not None)
    if event.kind not in names:
        raise InvalidEvent(f"kind must be one of {', '.join(names)}, got {event.kind!r}")
    if isinstance(event, QueryEvent):
        query_fields(event.kind).check(event, "query")
    else:
        subscription_fields(event.kind).check(event, "subscription")


def read_k(k: object) -> int:
    """How many objects or terms are wanted."""
    if not isinstance(k, int) or not 1 <= k <= MOST_K:
        raise InvalidEvent(f"k must be 1..{MOST_K}, got {k!r}")
    return k


def read_limit(limit: object) -> int:
    """How many matching objects a boolean query wants to see."""
    if limit is UNSET:
        return USUAL_LIMIT
    if not isinstance(limit, int) or not 1 <= limit <= MOST_LIMIT:
        raise InvalidEvent(f"limit must be 1..{MOST_LIMIT}, got {limit!r}")
    return limit


def read_mode(mode: object) -> bool:
    """Whether every keyword must be there."""
    if mode not in (UNSET, "any", "all"):
        raise InvalidEvent(f"mode must be 'any' or 'all', got {mode!r}")
    return mode == "all"


def read_alpha(alpha: float) -> float:
    """How much place counts against words."""
    if not 0.0 <= alpha <= 1.0:
        raise InvalidEvent(f"alpha must be in [0, 1], got {alpha!r}")
    return float(alpha)


def read_metres(metres: float, name: str) -> float:
    """A distance greater than zero."""
    if metres <= 0:
        raise InvalidEvent(f"{name} must be > 0, got {float(metres)!r}")
    return float(metres)


def read_reach(event: SubscribeEvent | QueryEvent, settings: Settings) -> float:
    """The distance at which place counts for nothing."""
    if event.reach_m is UNSET:
        return settings.reach_m
    return read_metres(event.reach_m, "reach_m")


def read_window(window: str, every: str) -> tuple[int, int]:
    """The window and the step of a `trending` subscription, in microseconds."""
    window_us, every_us = read_span(window, "window"), read_span(every, "every")
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
    """The time at which a subscription expires."""
    try:
        return parse_timestamp(text)
    except InvalidEvent as error:
        raise InvalidEvent(f"expires: {error}") from None


def read_span(text: str, name: str) -> int:
    """A duration in microseconds."""
    try:
        return parse_duration(text)
    except InvalidEvent as error:
        raise InvalidEvent(f"{name}: {error}") from None
