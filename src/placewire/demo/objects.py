"""Objects: posts of people, drawn and composed a block at a time.

numpy makes all random draws of a block; one pass of string joins turns them into lines.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from placewire.demo.lines import Floats, Ints, Period, choose, format_decimals
from placewire.demo.places import population, scatter
from placewire.demo.vocabulary import (
    CLOSER,
    EMOJI,
    FIRST_LITERAL,
    FIRST_PLACE,
    LANGUAGE_CODES,
    OPENER,
    PAD,
    TAG,
    compile_templates,
    incidents,
)

OPENER_SHARE, CLOSER_SHARE, EMOJI_SHARE, TAG_SHARE = 0.16, 0.3, 0.14, 0.1
LOWER_SHARE, UPPER_SHARE = 0.15, 0.02
POINT_DECIMALS = 5  # about a metre
LOCAL_SUBJECT_SHARE = 0.45
ENGLISH = LANGUAGE_CODES.index("en")


class PostContexts(NamedTuple):
    """Where, in which language and about what people post, one row per post."""

    component: Ints  # of the population
    language: Ints
    subject: Ints
    lon: Floats
    lat: Floats

    def take(self, rows: Ints) -> PostContexts:
        component, language, subject, lon, lat = self
        return PostContexts(component[rows], language[rows], subject[rows], lon[rows], lat[rows])


@cache
def _language_rows() -> Ints:
    """The language of each entry of the population's `languages`."""
    return np.array([LANGUAGE_CODES.index(code) for code in population().languages], np.int64)


def draw_contexts(
    size: int, weights: Floats, random: np.random.Generator, elapsed: Floats | None = None
) -> PostContexts:
    """Draw contexts by the components' weights.

    With `elapsed`, the fraction of the period at which each post is made, incidents happen. A
    share of the posts moves to an incident; it rises and falls as half a sine.
    """
    components, table = population(), compile_templates()
    component = choose(weights, random.random(size))
    spoken = components.languages_of_city.draw(components.city[component], random.random(size))
    language = _language_rows()[spoken]
    group = language.copy()
    lon, lat = components.lon[component], components.lat[component]
    spread_m = components.spread_m[component]
    chance = random.random(size)
    if elapsed is not None:
        for row, incident in enumerate(incidents()):
            course = (elapsed - incident.begins) / (incident.ends - incident.begins)
            height = incident.share * np.sin(np.pi * np.clip(course, 0.0, 1.0))
            there = np.flatnonzero((chance >= 0) & (chance < height))
            chance -= height  # the next incident draws from the remaining posts
            at = components.find(incident.place)
            from_lon, from_lat = components.lon[at], components.lat[at]
            to_lon, to_lat = incident.moves_to or (from_lon, from_lat)
            component[there] = at
            language[there] = LANGUAGE_CODES.index(incident.language)
            group[there] = len(LANGUAGE_CODES) + row
            lon[there] = from_lon + course[there] * (to_lon - from_lon)
            lat[there] = from_lat + course[there] * (to_lat - from_lat)
            spread_m[there] = incident.spread_m
    subject = table.subjects.draw(group, random.random(size))
    local_subject = table.subject_at[component, language]
    turns_local = random.random(size) < LOCAL_SUBJECT_SHARE
    turns_local &= (local_subject >= 0) & (group < len(LANGUAGE_CODES))
    subject = np.where(turns_local, local_subject, subject)
    return PostContexts(component, language, subject, *scatter(lon, lat, spread_m, random))


def object_lines(
    first: int, seconds: Floats, period: Period, random: np.random.Generator
) -> list[str]:
    """The lines of the objects numbered from `first`, at the given seconds of the period."""
    middle = float(seconds.mean()) if len(seconds) else 0.0
    weights = population().weight_at(period.utc_hour(middle))
    posts = draw_contexts(len(seconds), weights, random, seconds / period.seconds)
    lines = zip(
        period.timestamps(seconds),
        format_decimals(posts.lon, POINT_DECIMALS),
        format_decimals(posts.lat, POINT_DECIMALS),
        compose_texts(posts, random),
        strict=True,
    )
    return [
        f'{{"type":"object","id":"o{number}","ts":"{ts}","lon":{lon},"lat":{lat},"text":"{text}"}}'
        for number, (ts, lon, lat, text) in enumerate(lines, first)
    ]


def compose_texts(posts: PostContexts, random: np.random.Generator) -> list[str]:
    """Compose a text for each post, escaped for JSON."""
    table = compile_templates()
    size = len(posts.component)
    template = table.templates_of_subject.draw(posts.subject, random.random(size))
    chance = random.random((4, size))
    opens = chance[0] < OPENER_SHARE
    closes = (chance[1] < CLOSER_SHARE) & table.takes_closer[template]
    body = table.templates[template + opens * len(table.takes_closer)]
    codes = np.empty((size, body.shape[1] + 4), np.int64)
    codes[:, 0] = np.where(opens, OPENER, PAD)
    codes[:, 1:-3] = body
    codes[:, -3] = np.where(closes, CLOSER, PAD)
    codes[:, -2] = np.where(chance[2] < EMOJI_SHARE, EMOJI, PAD)
    codes[:, -1] = np.where(chance[3] < TAG_SHARE, TAG, PAD)

    rows, columns = np.nonzero((codes >= 0) & (codes < FIRST_LITERAL))
    slots = codes[rows, columns]
    is_place = slots >= FIRST_PLACE
    pools = table.subject_pools[posts.subject[rows], np.where(is_place, 0, slots)]
    place_rows = rows[is_place]
    is_local = (posts.language[place_rows] != ENGLISH).astype(np.int64)
    pools[is_place] = table.place_pools[
        posts.component[place_rows], is_local, slots[is_place] - FIRST_PLACE
    ]
    codes[rows, columns] = FIRST_LITERAL + table.draw_pieces(pools, random.random(len(rows)))

    present = codes != PAD
    pieces = table.pieces[codes[present] - FIRST_LITERAL].tolist()
    ends = np.cumsum(present.sum(axis=1)).tolist()
    texts = []
    start = 0
    for end in ends:
        texts.append("".join(pieces[start:end]))
        start = end
    # Case may change after escaping: the only escapes are \" and \\, which have none.
    case = random.random(size)
    for row in np.flatnonzero(case < LOWER_SHARE).tolist():
        texts[row] = texts[row].lower()
    for row in np.flatnonzero(case > 1 - UPPER_SHARE).tolist():
        texts[row] = texts[row].upper()
    return texts
