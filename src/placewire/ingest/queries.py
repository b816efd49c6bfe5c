"""Snapshot queries: what an event or a user's own words ask of the retained objects."""

from __future__ import annotations

import math
from typing import NamedTuple

from placewire.ingest.fields import (
    check_kind,
    read_alpha,
    read_k,
    read_limit,
    read_metres,
    read_mode,
    read_reach,
    read_span,
)
from placewire.model.errors import InvalidEvent
from placewire.model.events import UNSET, QueryEvent, check_point
from placewire.model.expression import ANY_TEXT, Program, compile_expression
from placewire.model.regions import CIRCLE, NOWHERE_SPECIAL, Region, circle_bounds, read_region
from placewire.model.settings import Settings
from placewire.model.times import format_duration
from placewire.text.analyzer import Analyzer
from placewire.text.query import parse_keywords, parse_where


class Query(NamedTuple):
    """One query; what its kind does not have is left at these values.

    For `nearest` the region is the circle of `within_m`. Terms are in code-point order.
    """

    id: str
    kind: str
    last_us: int
    region: Region = NOWHERE_SPECIAL
    program: Program = ANY_TEXT
    limit: int = 0
    lon: float = 0.0
    lat: float = 0.0
    terms: tuple[str, ...] = ()
    k: int = 0
    every: bool = False
    within_m: float = math.inf
    alpha: float = 0.0
    reach_m: float = 0.0


def read_query(event: QueryEvent, analyzer: Analyzer, settings: Settings) -> Query:
    """The query of an event; raises InvalidEvent."""
    try:
        check_kind(event)
        last_us = read_span(event.last, "last")
        if last_us > settings.retention_us:
            retention = format_duration(settings.retention_us)
            raise InvalidEvent(
                f"last must be at most the retention, {retention}, got {event.last!r}"
            )
        query = Query(event.id, event.kind, last_us)
        if event.kind == "boolean":
            return read_boolean(event, query, analyzer)
        query = query._replace(k=read_k(event.k))
        if event.kind == "trending":
            region = NOWHERE_SPECIAL if event.region is UNSET else read_region(event.region)
            return query._replace(region=region)
        return read_ranked(event, query, analyzer, settings)
    except InvalidEvent as error:
        raise InvalidEvent(f"query {event.id!r}: {error}") from None


def read_boolean(event: QueryEvent, query: Query, analyzer: Analyzer) -> Query:
    """The fields of a boolean query."""
    if event.region is UNSET and event.where is UNSET:
        raise InvalidEvent("needs a region or a where, got neither")
    if event.region is not UNSET:
        query = query._replace(region=read_region(event.region))
    if event.where is not UNSET:
        where = parse_where(event.where, analyzer.tokens)
        query = query._replace(program=compile_expression(where))
    return query._replace(limit=read_limit(event.limit))


def read_ranked(event: QueryEvent, query: Query, analyzer: Analyzer, settings: Settings) -> Query:
    """The fields of a `nearest` or a `relevant` query."""
    check_point(event.lon, event.lat)  # type: ignore[arg-type]
    lon, lat = float(event.lon), float(event.lat)  # type: ignore[arg-type]
    terms = tuple(sorted(parse_keywords(event.keywords, analyzer.tokens)))
    query = query._replace(lon=lon, lat=lat, terms=terms)
    if event.kind == "nearest":
        query = query._replace(every=read_mode(event.mode))
        if event.within_m is UNSET:
            return query
        within = read_metres(event.within_m, "within_m")
        region = Region(CIRCLE, circle_bounds(lon, lat, within), (lon, lat, within))
        return query._replace(within_m=within, region=region)
    reach = read_reach(event, settings)
    return query._replace(alpha=read_alpha(event.alpha), reach_m=reach)  # type: ignore[arg-type]
