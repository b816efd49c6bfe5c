"""Objects: what people post, composed a block at a time.

All random draws of a block are made by numpy; one pass of string joins turns them into lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.city.ground import ground, liveliness, scatter
from placewire.city.hour import Hour, printed
from placewire.city.incidents import INCIDENTS
from placewire.city.phrasebook import (
    CLOSER,
    EMOJI,
    FIRST_LITERAL,
    FIRST_PLACE,
    LANGUAGES,
    OPENER,
    PAD,
    TAG,
    draw_pieces,
    phrasebook,
)
from placewire.city.urns import Floats, Ints, choose

OPENER_SHARE, CLOSER_SHARE, EMOJI_SHARE, TAG_SHARE = 0.16, 0.3, 0.14, 0.1
LOWER_SHARE, UPPER_SHARE = 0.15, 0.02
POINT_DECIMALS = 5  # about a metre
LOCAL_SUBJECT_SHARE = 0.45
_LANGUAGE_ROWS = {language.code: row for row, language in enumerate(LANGUAGES)}
_LANGUAGE_ROW_OF = np.array([_LANGUAGE_ROWS[code] for code in ground().languages], np.int64)


class Posts(NamedTuple):
    """Who posts what, where, one a row: an anchor, a language, a subject, a point."""

    anchor: Ints
    language: Ints
    subject: Ints
    lon: Floats
    lat: Floats

    def take(self, rows: Ints) -> Posts:
        """Some of the posts."""
        anchor, language, subject, lon, lat = self
        return Posts(anchor[rows], language[rows], subject[rows], lon[rows], lat[rows])


def draw_posts(
    size: int, weights: Floats, random: np.random.Generator, elapsed: Floats | None = None
) -> Posts:
    """Posts by the anchors' `weights`; with `elapsed` (fractions of the hour) incidents happen."""
    anchors, book = ground(), phrasebook()
    anchor = choose(weights, random.random(size))
    spoken = anchors.languages_of_city.draw(anchors.city[anchor], random.random(size))
    language = _LANGUAGE_ROW_OF[spoken]
    urn = language.copy()
    lon, lat, spread_m = anchors.lon[anchor], anchors.lat[anchor], anchors.spread_m[anchor]
    chance = random.random(size)
    if elapsed is not None:
        for row, incident in enumerate(INCIDENTS):
            course = (elapsed - incident.begins) / (incident.ends - incident.begins)
            height = incident.share * np.sin(np.pi * np.clip(course, 0.0, 1.0))
            there = np.flatnonzero((chance >= 0) & (chance < height))
            chance -= height  # the next incident draws from those who are left
            at = anchors.anchor(incident.spot)
            to_lon, to_lat = incident.to or (anchors.lon[at], anchors.lat[at])
            anchor[there] = at
            language[there] = _LANGUAGE_ROWS[incident.language]
            urn[there] = len(LANGUAGES) + row
            lon[there] = anchors.lon[at] + course[there] * (to_lon - anchors.lon[at])
            lat[there] = anchors.lat[at] + course[there] * (to_lat - anchors.lat[at])
            spread_m[there] = incident.spread_m
    subject = book.subjects.draw(urn, random.random(size))
    local_subject = book.subject_at[anchor, language]
    turns_local = random.random(size) < LOCAL_SUBJECT_SHARE
    turns_local &= (local_subject >= 0) & (urn < len(LANGUAGES))
    subject = np.where(turns_local, local_subject, subject)
    return Posts(anchor, language, subject, *scatter(lon, lat, spread_m, random))


def object_lines(first: int, seconds: Floats, hour: Hour, random: np.random.Generator) -> list[str]:
    """The lines of the objects numbered from `first`, at the given seconds of the hour."""
    middle = float(seconds.mean()) if len(seconds) else 0.0
    weights = liveliness(ground(), hour.utc_hour(middle))
    posts = draw_posts(len(seconds), weights, random, seconds / hour.seconds)
    lines = zip(
        hour.stamps(seconds),
        printed(posts.lon, POINT_DECIMALS),
        printed(posts.lat, POINT_DECIMALS),
        compose(posts, random),
        strict=True,
    )
    return [
        f'{{"type":"object","id":"o{number}","ts":"{ts}","lon":{lon},"lat":{lat},"text":"{text}"}}'
        for number, (ts, lon, lat, text) in enumerate(lines, first)
    ]


def compose(posts: Posts, random: np.random.Generator) -> list[str]:
    """A text for each post, escaped for JSON."""
    book = phrasebook()
    size = len(posts.anchor)
    saying = book.sayings_of_subject.draw(posts.subject, random.random(size))
    chance = random.random((4, size))
    opens = chance[0] < OPENER_SHARE
    closes = (chance[1] < CLOSER_SHARE) & book.takes_closer[saying]
    body = book.sayings[saying + opens * len(book.takes_closer)]
    codes = np.empty((size, body.shape[1] + 4), np.int64)
    codes[:, 0] = np.where(opens, OPENER, PAD)
    codes[:, 1:-3] = body
    codes[:, -3] = np.where(closes, CLOSER, PAD)
    codes[:, -2] = np.where(chance[2] < EMOJI_SHARE, EMOJI, PAD)
    codes[:, -1] = np.where(chance[3] < TAG_SHARE, TAG, PAD)

    rows, columns = np.nonzero((codes >= 0) & (codes < FIRST_LITERAL))
    slots = codes[rows, columns]
    is_place = slots >= FIRST_PLACE
    pools = book.subject_pools[posts.subject[rows], np.where(is_place, 0, slots)]
    place_rows = rows[is_place]
    speaks_locally = (posts.language[place_rows] != _LANGUAGE_ROWS["en"]).astype(np.int64)
    pools[is_place] = book.place_pools[
        posts.anchor[place_rows], speaks_locally, slots[is_place] - FIRST_PLACE
    ]
    codes[rows, columns] = FIRST_LITERAL + draw_pieces(book, pools, random.random(len(rows)))

    present = codes != PAD
    pieces = book.pieces[codes[present] - FIRST_LITERAL].tolist()
    ends = np.cumsum(present.sum(axis=1)).tolist()
    texts = []
    start = 0
    for end in ends:
        texts.append("".join(pieces[start:end]))
        start = end
    # Case may change after escaping: the only escapes here are \" and \\, which have none.
    mood = random.random(size)
    for row in np.flatnonzero(mood < LOWER_SHARE).tolist():
        texts[row] = texts[row].lower()
    for row in np.flatnonzero(mood > 1 - UPPER_SHARE).tolist():
        texts[row] = texts[row].upper()
    return texts
