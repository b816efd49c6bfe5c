"""Snapshot queries: what an event or a user's own words ask of the retained objects."""

from __future__ import annotations

import math
from typing import NamedTuple

from placewire.ingest.fields import (
    check_kind,
    read_span,
)
from placewire.model.errors import InvalidEvent
from placewire.model.events import UNSET, QueryEvent, check_point
from placewire.model.expression import ANY_TEXT, Program, compile_expression
from placewire.model.kinds import kind_named
from placewire.model.regions import NOWHERE_SPECIAL, Region, read_region
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
        reader = QueryReader(analyzer, settings)
        return kind_named(event.kind).read_query(event, query, reader)
    except InvalidEvent as error:
        raise InvalidEvent(f"query {event.id!r}: {error}") from None


class QueryReader(NamedTuple):
    """Reads the fields that queries of several kinds share; raises InvalidEvent."""

    analyzer: Analyzer
    settings: Settings

    def region(self, event: QueryEvent) -> Region:
        """The region, or everywhere."""
        return NOWHERE_SPECIAL if event.region is UNSET else read_region(event.region)

    def where(self, event: QueryEvent) -> Program:
        """The compiled expression, or that of any text."""
        if event.where is UNSET:
            return ANY_TEXT
        return compile_expression(parse_where(event.where, self.analyzer.tokens))

    def ranked(self, event: QueryEvent, query: Query) -> Query:
        """The point and the terms of a ranked query."""
        check_point(event.lon, event.lat)  # type: ignore[arg-type]
        lon, lat = float(event.lon), float(event.lat)  # type: ignore[arg-type]
        terms = tuple(sorted(parse_keywords(event.keywords, self.analyzer.tokens)))
        return query._replace(lon=lon, lat=lat, terms=terms)
