"""The words of the demo: languages with their topics, made-up names, and scripted incidents.

Each language is a file in `data/`. A topic has words, from frequent to rare, and templates:
sentences with slots that are filled separately for every post:

- `{word}` `{Word}`: one of the topic's words, as it is or with a capital;
- `{name}`: a rare name out of thousands (a shop, a street, a person), see `rare_names`;
- `{spot}`: the hot spot the post is from, or its city; `{city}`: the city;
- `{number}` `{hour}` `{few}`: a number up to 90, an hour of the clock, two to six.

A post may add an opener before the sentence, and a closer, an emoji and a hashtag after it. Words
and names are drawn by Zipf's law, so that a few terms are common and many are rare, as in real
posts. Chinese and Japanese templates put spaces between words, since the default analyzer does
not segment.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from itertools import product

import msgspec
import numpy as np

LANGUAGE_CODES = ("en", "es", "fr", "de", "pt", "tr", "ru", "ar", "hi", "zh", "ja", "ko")
SLOTS = (
    *("word", "Word", "name", "number", "hour", "few"),
    *("tag", "emoji", "opener", "closer", "common"),
)
PLACE_SLOTS = ("spot", "city")
NUMBERS = {
    "number": "5 2 3 10 4 6 20 8 15 30 7 12 9 40 25 11 18 35 14 50 22 16 45 60 13 17 90",
    "hour": "5 6 8 7 9 4 3 10 2 11 1 12",
    "few": "2 3 4 5 6",
}


class Topic(msgspec.Struct, frozen=True):
    """Something people post about; `words` and `emoji` are separated by spaces."""

    weight: float
    emoji: str
    words: str
    templates: tuple[str, ...]


class NameParts(msgspec.Struct, frozen=True):
    """The parts of which a language's names are built; `-` is an empty part."""

    first: str
    middle: str
    last: str


class Language(msgspec.Struct, frozen=True):
    """A language that people post in."""

    code: str
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    common: str  # words of the templates that people also subscribe to
    name_parts: NameParts
    topics: dict[str, Topic]
    stop_words: str = ""


class Incident(msgspec.Struct, frozen=True):
    """A burst of posts about one topic at one place; see `data/incidents.toml`."""

    place: str
    language: str
    topic: str
    begins: float
    ends: float
    share: float
    spread_m: float
    templates: tuple[str, ...]
    moves_to: tuple[float, float] | None = None


class _Incidents(msgspec.Struct):
    incidents: tuple[Incident, ...]


def read_data(name: str) -> bytes:
    """The content of a file in `data/`."""
    return resources.files("placewire.demo").joinpath("data", name).read_bytes()


@cache
def languages() -> tuple[Language, ...]:
    """All languages, English first."""
    return tuple(
        msgspec.toml.decode(read_data(f"{code}.toml"), type=Language) for code in LANGUAGE_CODES
    )


@cache
def incidents() -> tuple[Incident, ...]:
    """The scripted incidents of the period."""
    return msgspec.toml.decode(read_data("incidents.toml"), type=_Incidents).incidents


def stop_words() -> list[str]:
    """Frequent words that say nothing about a topic, for settings that report trending terms.

    No generated subscription asks for any of them.
    """
    words = {word for language in languages() for word in language.stop_words.split()}
    return sorted(words | set(map(str, range(61))))


def rare_names(parts: NameParts) -> list[str]:
    """All names that can be built from the parts, each once, from frequent to rare.

    The order is one fixed shuffle, so that logs of different seeds use the same frequent names.
    """
    first, middle, last = (
        [part.replace("-", "") for part in group.split()]
        for group in (parts.first, parts.middle, parts.last)
    )
    names = list(dict.fromkeys("".join(chosen) for chosen in product(first, middle, last)))
    order = np.random.Generator(np.random.PCG64(20260301)).permutation(len(names))
    return [names[row] for row in order]
