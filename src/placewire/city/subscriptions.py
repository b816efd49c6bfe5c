"""Subscriptions: standing questions of the same people, about the same places and words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placewire.city.ground import ground
from placewire.city.hour import Hour, printed
from placewire.city.objects import Posts, draw_posts
from placewire.city.phrasebook import COMMON, NAME, WORD, draw_pieces, phrasebook
from placewire.city.regions import EDGE_DECIMALS, draw_regions
from placewire.city.urns import Floats, choose

NEAREST_SHARE = 1 / 8
KEYWORDS = 3  # at most
KEYWORD_SLOTS = ((WORD, 0.64), (NAME, 0.30), (COMMON, 0.06))
EXPIRES_SHARE = 0.10
EXPIRES_AFTER_HOURS = (0.1, 2.0)  # of the log, from its own beginning
# What `where` looks like, by weight. Keywords are filled in, as many as the form has.
WHERE_FORMS = (
    ('"{0}"', 30.0),
    ('"{0} AND {1}"', 18.0),
    ('"{0} OR {1}"', 18.0),
    ('"{0} AND {1} AND {2}"', 7.0),
    ('"{0} {1} {2}"', 5.0),
    ('"{0} OR {1} OR {2}"', 12.0),
    ('"{0} AND NOT {1}"', 3.0),
    ('"({0} OR {1}) NOT {2}"', 2.0),
    ('"{0} AND ({1} OR {2})"', 2.0),
    ('{{"all":["{0}",{{"any":["{1}","{2}"]}}]}}', 1.5),
    ('{{"any":["{0}","{1} AND {2}"]}}', 1.0),
    ('{{"all":["{0}",{{"none":["{1}"]}}]}}', 0.5),
)
# The same for the `keywords` of a nearest subscription; `any` is the mode that goes without saying.
KEYWORDS_FORMS = (
    ('["{0}"]', 40.0),
    ('["{0}","{1}"]', 20.0),
    ('["{0}","{1}","{2}"]', 15.0),
    ('["{0}","{1}"],"mode":"any"', 5.0),
    ('["{0}","{1}"],"mode":"all"', 17.0),
    ('["{0}","{1}","{2}"],"mode":"all"', 3.0),
)
K_WEIGHTS = np.array([24.0, 12.0, 20.0, 6.0, 20.0, 2.0, 2.0, 3.0, 1.0, 10.0])  # of 1 to 10
WITHIN_SHARE = 0.4
WITHIN_M = (500.0, 50_000.0)
_KEYWORD_SLOTS = np.array([slot for slot, _ in KEYWORD_SLOTS])
_KEYWORD_WEIGHTS = np.array([weight for _, weight in KEYWORD_SLOTS])


def subscribe_lines(
    numbers: list[int],
    stamps: list[str],
    begins: Floats,
    hour: Hour,
    random: np.random.Generator,
) -> list[str]:
    """The lines that subscribe (or replace) the given numbers, at second `begins` of the hour."""
    size = len(numbers)
    posts = draw_posts(size, ground().weight, random)
    near = random.random(size) < NEAREST_SHARE
    wishes = [""] * size
    for chosen, draw_wishes in ((~near, _boolean_wishes), (near, _nearest_wishes)):
        rows = np.flatnonzero(chosen)
        drawn = draw_wishes(posts.take(rows), random)
        for row, wish in zip(rows.tolist(), drawn, strict=True):
            wishes[row] = wish
    expiring = np.flatnonzero(random.random(size) < EXPIRES_SHARE)
    shortest, longest = EXPIRES_AFTER_HOURS
    lasting = hour.seconds * (shortest + (longest - shortest) * random.random(len(expiring)))
    expiries = hour.stamps(begins[expiring] + lasting)
    for row, expiry in zip(expiring.tolist(), expiries, strict=True):
        wishes[row] += f',"expires":"{expiry}"'
    return [
        f'{{"type":"subscribe","id":"sub-{number:06d}","ts":"{ts}",{wish}}}'
        for number, ts, wish in zip(numbers, stamps, wishes, strict=True)
    ]


def unsubscribe_line(number: int, stamp: str) -> str:
    """The line that ends a subscription."""
    return f'{{"type":"unsubscribe","id":"sub-{number:06d}","ts":"{stamp}"}}'


def _boolean_wishes(posts: Posts, random: np.random.Generator) -> list[str]:
    """Everything that fits, in a region around each post: the fields as JSON, `kind` first."""
    regions = draw_regions(posts, random)
    wheres = _fill_forms(WHERE_FORMS, posts, random)
    return [
        f'"kind":"boolean","region":{region},"where":{where}'
        for region, where in zip(regions, wheres, strict=True)
    ]


def _nearest_wishes(posts: Posts, random: np.random.Generator) -> list[str]:
    """The few nearest to each post that fit: the fields as JSON, `kind` first."""
    size = len(posts.lon)
    ks = (choose(K_WEIGHTS, random.random(size)) + 1).tolist()
    least_m, most_m = WITHIN_M
    within_m = np.rint(least_m * (most_m / least_m) ** random.random(size)).astype(np.int64)
    limits = [
        f',"within_m":{metres}' if limited else ""
        for metres, limited in zip(
            within_m.tolist(), (random.random(size) < WITHIN_SHARE).tolist(), strict=True
        )
    ]
    lines = zip(
        printed(posts.lon, EDGE_DECIMALS),
        printed(posts.lat, EDGE_DECIMALS),
        _fill_forms(KEYWORDS_FORMS, posts, random),
        ks,
        limits,
        strict=True,
    )
    return [
        f'"kind":"nearest","lon":{lon},"lat":{lat},"k":{k},"keywords":{keywords}{limit}'
        for lon, lat, keywords, k, limit in lines
    ]


def _fill_forms(
    forms: tuple[tuple[str, float], ...], posts: Posts, random: np.random.Generator
) -> list[str]:
    """A form for each post, by weight, with keywords of the post's subject in it."""
    book = phrasebook()
    size = len(posts.subject)
    slot_rows = choose(_KEYWORD_WEIGHTS, random.random((size, KEYWORDS)))
    slots = _KEYWORD_SLOTS[slot_rows]
    pools = book.subject_pools[posts.subject[:, None], slots]
    keywords = book.pieces[draw_pieces(book, pools, random.random((size, KEYWORDS)))].tolist()
    fills: list[Callable[..., str]] = [form.format for form, _ in forms]
    weights = np.array([weight for _, weight in forms])
    chosen = choose(weights, random.random(size)).tolist()
    return [fills[row](*words) for row, words in zip(chosen, keywords, strict=True)]
