"""Read snapshot queries from events."""

from __future__ import annotations

import math
from typing import NamedTuple

from placewire.ingest.fields import FieldReader, check_kind, read_k
from placewire.model.errors import InvalidEvent
from placewire.model.events import QueryEvent
from placewire.model.expression import ANY_TEXT, Program
from placewire.model.kinds import kind_named
from placewire.model.regions import WHOLE_WORLD, Region
from placewire.model.settings import Settings
from placewire.model.times import format_duration, read_duration
from placewire.text.analyzer import Analyzer


class Query(NamedTuple):
    """One query; fields that its kind does not have keep their defaults.

    With `within_m` the region is that circle. Terms are in code-point order.
    """

    id: str
    kind: str
    last_us: int
    region: Region = WHOLE_WORLD
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
    """Return the query of an event; raises InvalidEvent."""
    try:
        check_kind(event)
        last_us = read_duration(event.last, "last")
        if last_us > settings.retention_us:
            retention = format_duration(settings.retention_us)
            raise InvalidEvent(
                f"last must be at most the retention, {retention}, got {event.last!r}"
            )
        query = Query(event.id, event.kind, last_us)
        reader = FieldReader(analyzer, settings)
        return kind_named(event.kind).read_query(event, query, reader)
    except InvalidEvent as error:
        raise InvalidEvent(f"query {event.id!r}: {error}") from None


def read_ranked(event: QueryEvent, query: Query, reader: FieldReader) -> Query:
    """Return a query with the `k`, point and terms of an event; raises InvalidEvent."""
    k = read_k(event.k)
    lon, lat = reader.point(event)
    terms = tuple(sorted(reader.keywords(event)))
    return query._replace(k=k, lon=lon, lat=lat, terms=terms)
