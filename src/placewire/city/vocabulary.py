"""The vocabulary's shape: a language has topics, a topic has words and ways of saying something.

A saying is a sentence with slots, each drawn anew for every post:

- `{word}` `{Word}`: one of the topic's words, as it is or with a capital;
- `{name}`: a rare name out of thousands (a shop, a street, a person), see `names`;
- `{spot}`: the hot spot the post is from, or its city; `{city}`: the city;
- `{number}` `{hour}` `{few}`: a number up to 90, an hour of the clock, two to six.

Before it may come an opener, after it a closer, an emoji and a hashtag. Words and names are
listed from frequent to rare and drawn by Zipf's law, so that the distribution of terms has the
few common and the many rare ones that real posts have. Chinese and Japanese sayings put spaces
between words, since the default analyzer does not segment.
"""

from __future__ import annotations

from typing import NamedTuple


class Topic(NamedTuple):
    weight: float
    emoji: str
    words: str
    sayings: tuple[str, ...]


class Language(NamedTuple):
    code: str
    topics: dict[str, Topic]
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    common: str  # words of the sayings that people also subscribe to


SLOTS = (
    *("word", "Word", "name", "number", "hour", "few"),
    *("tag", "emoji", "opener", "closer", "common"),
)
PLACE_SLOTS = ("spot", "city")
