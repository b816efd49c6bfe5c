"""Subscriptions and queries: generated ones, and readable ones with something to find.

The readable ones are data files in `data/`. Each readable query is asked at a fraction of the
period, when the incident it asks about has happened.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.demo.criteria import (
    boolean_criteria,
    draw_criteria,
    nearest_criteria,
    relevant_criteria,
    trending_criteria,
)
from placewire.demo.lines import Period
from placewire.demo.objects import PostContexts, draw_contexts
from placewire.demo.places import population
from placewire.demo.sampling import Floats, choose
from placewire.demo.vocabulary import read_data

NEAREST_SHARE = 1 / 8
RELEVANT_SHARE = 1 / 40
TRENDING_SHARE = 1 / 40
EVERY = ("PT5M", "PT10M")
WINDOWS = ("PT10M", "PT20M", "PT30M")
EXPIRES_SHARE = 0.10
EXPIRES_AFTER_PERIODS = (0.1, 2.0)
QUERY_KIND_WEIGHTS = np.array([3.0, 3.0, 2.0, 2.0])
LAST = ("PT5M", "PT10M", "PT15M", "PT30M", "PT1H")


class ReadableQuery(NamedTuple):
    """A query without `type` and `ts`, and the fraction of the period at which it is asked."""

    at: float
    event: dict[str, Any]


@cache
def _readable_events() -> list[dict[str, Any]]:
    lines = read_data("subscriptions.jsonl")
    return msgspec.json.Decoder(dict[str, Any]).decode_lines(lines)


def readable_subscriptions(start: str = "2026-03-01T12:00:00Z") -> list[dict[str, Any]]:
    """The readable subscriptions as `subscribe` events at `start`, in the order of the log."""
    return [
        {"type": "subscribe", "id": event["id"], "ts": start, **event}
        for event in _readable_events()
    ]


@cache
def readable_queries() -> tuple[ReadableQuery, ...]:
    """The readable queries in the order of the log."""
    lines = msgspec.json.Decoder(dict[str, Any]).decode_lines(read_data("queries.jsonl"))
    return tuple(ReadableQuery(**line) for line in lines)


def subscribe_lines(
    numbers: list[int],
    timestamps: list[str],
    begins: Floats,
    period: Period,
    random: np.random.Generator,
) -> list[str]:
    """The lines that subscribe (or replace) the given numbers, at second `begins` of the period."""
    size = len(numbers)
    posts = draw_contexts(size, population().weight, random)
    kinds = np.searchsorted(_KIND_EDGES, random.random(size), side="right")
    criteria = draw_criteria(kinds, _SUBSCRIPTION_CRITERIA, posts, random)
    expiring = np.flatnonzero(random.random(size) < EXPIRES_SHARE)
    shortest, longest = EXPIRES_AFTER_PERIODS
    lasting = period.seconds * (shortest + (longest - shortest) * random.random(len(expiring)))
    expiries = period.timestamps(begins[expiring] + lasting)
    for row, expiry in zip(expiring.tolist(), expiries, strict=True):
        criteria[row] += f',"expires":"{expiry}"'
    return [
        f'{{"type":"subscribe","id":"sub-{number:06d}","ts":"{ts}",{fields}}}'
        for number, ts, fields in zip(numbers, timestamps, criteria, strict=True)
    ]


def unsubscribe_line(number: int, timestamp: str) -> str:
    """The line that ends a subscription."""
    return f'{{"type":"unsubscribe","id":"sub-{number:06d}","ts":"{timestamp}"}}'


def query_lines(numbers: range, timestamps: list[str], random: np.random.Generator) -> list[str]:
    """The lines of the queries of the given numbers."""
    size = len(numbers)
    posts = draw_contexts(size, population().weight, random)
    kinds = choose(QUERY_KIND_WEIGHTS, random.random(size))
    criteria = draw_criteria(kinds, _QUERY_CRITERIA, posts, random)
    lasts = random.integers(0, len(LAST), size).tolist()
    return [
        f'{{"type":"query","id":"query-{number:06d}","ts":"{ts}",{fields},"last":"{LAST[last]}"}}'
        for number, ts, fields, last in zip(numbers, timestamps, criteria, lasts, strict=True)
    ]


def _trending_subscription_criteria(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """Criteria of a trending with its window and how often it reports."""
    size = len(posts.lon)
    windows = random.integers(0, len(WINDOWS), size).tolist()
    every = random.integers(0, len(EVERY), size).tolist()
    criteria = trending_criteria(posts, random)
    return [
        f'{fields},"window":"{WINDOWS[window]}","every":"{EVERY[pace]}"'
        for fields, window, pace in zip(criteria, windows, every, strict=True)
    ]


_QUERY_CRITERIA = (boolean_criteria, nearest_criteria, relevant_criteria, trending_criteria)
_SUBSCRIPTION_CRITERIA = (*_QUERY_CRITERIA[:3], _trending_subscription_criteria)
_KIND_EDGES = 1 - np.cumsum([TRENDING_SHARE, RELEVANT_SHARE, NEAREST_SHARE])[::-1]
