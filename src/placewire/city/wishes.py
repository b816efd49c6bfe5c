"""Wishes: what people ask about the same places and words that they post about, as JSON fields.

A subscription and a query ask for the same things; what each adds of its own, a pace or how far
back to look, is its own module's business.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placewire.city.hour import printed
from placewire.city.objects import Posts
from placewire.city.phrasebook import COMMON, NAME, WORD, draw_pieces, phrasebook
from placewire.city.regions import EDGE_DECIMALS, draw_regions, draw_surroundings
from placewire.city.urns import Floats, Ints, choose

Forms = tuple[tuple[str, float], ...]

KEYWORDS = 3  # at most, but for those who weigh several words against each other
KEYWORD_SLOTS = ((WORD, 0.64), (NAME, 0.30), (COMMON, 0.06))
# What `where` looks like, by weight. Keywords are filled in, as many as the form has.
WHERE_FORMS: Forms = (
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
# The same for `keywords`; some say how many of them are needed, one is if nothing is said.
KEYWORDS_FORMS: Forms = (
    ('["{0}"]', 40.0),
    ('["{0}","{1}"]', 20.0),
    ('["{0}","{1}","{2}"]', 15.0),
    ('["{0}","{1}"],"mode":"any"', 5.0),
    ('["{0}","{1}"],"mode":"all"', 17.0),
    ('["{0}","{1}","{2}"],"mode":"all"', 3.0),
)
# And where all count, each for a part of the score.
WEIGHED_KEYWORDS = 4
WEIGHED_FORMS: Forms = (
    ('["{0}"]', 30.0),
    ('["{0}","{1}"]', 35.0),
    ('["{0}","{1}","{2}"]', 20.0),
    ('["{0}","{1}","{2}","{3}"]', 15.0),
)
K_WEIGHTS = np.array([24.0, 12.0, 20.0, 6.0, 20.0, 2.0, 2.0, 3.0, 1.0, 10.0])  # of 1 to 10
WITHIN_SHARE = 0.4
WITHIN_M = (500.0, 50_000.0)
RELEVANT_KS = np.array([1, 2, 3, 5, 8, 10, 12, 15, 20])
RELEVANT_K_WEIGHTS = np.array([10.0, 5.0, 20.0, 30.0, 5.0, 20.0, 2.0, 3.0, 5.0])
ALPHAS = np.array([0.5, 0.3, 0.7, 0.4, 0.6, 0.2, 0.8, 0.0, 1.0])  # the last two: only one counts
ALPHA_WEIGHTS = np.array([30.0, 16.0, 16.0, 10.0, 10.0, 8.0, 8.0, 1.0, 1.0])
REACH_SHARE = 0.85
REACH_M = (2_000.0, 50_000.0)
TERMS = (5, 10)  # the least and the most terms that one asks for
_KEYWORD_SLOTS = np.array([slot for slot, _ in KEYWORD_SLOTS])
_KEYWORD_WEIGHTS = np.array([weight for _, weight in KEYWORD_SLOTS])


def boolean_wishes(posts: Posts, random: np.random.Generator) -> list[str]:
    """Everything that fits, in a region around each post: the fields as JSON, `kind` first."""
    regions = draw_regions(posts, random)
    wheres = _fill_forms(WHERE_FORMS, posts, random)
    return [
        f'"kind":"boolean","region":{region},"where":{where}'
        for region, where in zip(regions, wheres, strict=True)
    ]


def nearest_wishes(posts: Posts, random: np.random.Generator) -> list[str]:
    """The few nearest to each post that fit: the fields as JSON, `kind` first."""
    ks = (choose(K_WEIGHTS, random.random(len(posts.lon))) + 1).tolist()
    limits = _some_metres("within_m", WITHIN_M, WITHIN_SHARE, len(posts.lon), random)
    lines = zip(_points(posts), _fill_forms(KEYWORDS_FORMS, posts, random), ks, limits, strict=True)
    return [
        f'"kind":"nearest",{point},"k":{k},"keywords":{keywords}{limit}'
        for point, keywords, k, limit in lines
    ]


def relevant_wishes(posts: Posts, random: np.random.Generator) -> list[str]:
    """The few that suit each post best by place and words: the fields as JSON, `kind` first."""
    size = len(posts.lon)
    ks = RELEVANT_KS[choose(RELEVANT_K_WEIGHTS, random.random(size))].tolist()
    alphas = ALPHAS[choose(ALPHA_WEIGHTS, random.random(size))].tolist()
    reaches = _some_metres("reach_m", REACH_M, REACH_SHARE, size, random)
    keywords = _fill_forms(WEIGHED_FORMS, posts, random, WEIGHED_KEYWORDS)
    lines = zip(_points(posts), keywords, ks, alphas, reaches, strict=True)
    return [
        f'"kind":"relevant",{point},"k":{k},"keywords":{words},"alpha":{alpha}{reach}'
        for point, words, k, alpha, reach in lines
    ]


def trending_wishes(posts: Posts, random: np.random.Generator) -> list[str]:
    """What the district of each post talks about: the fields as JSON, `kind` first."""
    least, most = TERMS
    ks = random.integers(least, most + 1, len(posts.lon)).tolist()
    return [
        f'"kind":"trending","region":{region},"k":{k}'
        for region, k in zip(draw_surroundings(posts, random), ks, strict=True)
    ]


def scatter_wishes(
    kinds: Ints,
    drawers: tuple[Callable[[Posts, np.random.Generator], list[str]], ...],
    posts: Posts,
    random: np.random.Generator,
) -> list[str]:
    """A wish for each post, by the drawer of its kind."""
    wishes = [""] * len(kinds)
    for kind, draw_wishes in enumerate(drawers):
        rows = np.flatnonzero(kinds == kind)
        for row, wish in zip(rows.tolist(), draw_wishes(posts.take(rows), random), strict=True):
            wishes[row] = wish
    return wishes


def _points(posts: Posts) -> list[str]:
    lons, lats = printed(posts.lon, EDGE_DECIMALS), printed(posts.lat, EDGE_DECIMALS)
    return [f'"lon":{lon},"lat":{lat}' for lon, lat in zip(lons, lats, strict=True)]


def _some_metres(
    field: str,
    between: tuple[float, float],
    share: float,
    size: int,
    random: np.random.Generator,
) -> list[str]:
    """A distance for a share of the rows, as a further field; the others have none."""
    least, most = between
    metres: Floats = np.rint(least * (most / least) ** random.random(size))
    given = (random.random(size) < share).tolist()
    return [
        f',"{field}":{int(distance)}' if has else ""
        for distance, has in zip(metres.tolist(), given, strict=True)
    ]


def _fill_forms(
    forms: Forms, posts: Posts, random: np.random.Generator, most: int = KEYWORDS
) -> list[str]:
    """A form for each post, by weight, with keywords of the post's subject in it."""
    book = phrasebook()
    size = len(posts.subject)
    slot_rows = choose(_KEYWORD_WEIGHTS, random.random((size, most)))
    slots = _KEYWORD_SLOTS[slot_rows]
    pools = book.subject_pools[posts.subject[:, None], slots]
    keywords = book.pieces[draw_pieces(book, pools, random.random((size, most)))].tolist()
    fills: list[Callable[..., str]] = [form.format for form, _ in forms]
    weights = np.array([weight for _, weight in forms])
    chosen = choose(weights, random.random(size)).tolist()
    return [fills[row](*words) for row, words in zip(chosen, keywords, strict=True)]
