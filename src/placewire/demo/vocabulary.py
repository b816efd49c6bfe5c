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

Words and templates are compiled to arrays, so that texts are composed a block at a time. A text is
a run of pieces joined without a separator. A piece is a literal of a template or comes from a pool
(words, names, numbers, ...); all are already escaped for JSON. A template is a row of codes: `PAD`,
a slot, or `FIRST_LITERAL` + the number of a piece. A subject is one topic in one language, or one
incident; it has its pools and its templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from string import Formatter
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.demo.lines import Floats, Ints, WeightedGroups, choose_rank, read_data
from placewire.demo.places import Population, places, population

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


ALL_SLOTS = (*SLOTS, *PLACE_SLOTS)
WORD, NAME, TAG, EMOJI, OPENER, CLOSER, COMMON, FIRST_PLACE = (
    ALL_SLOTS.index(slot)
    for slot in ("word", "name", "tag", "emoji", "opener", "closer", "common", "spot")
)
PAD = -1
FIRST_LITERAL = len(ALL_SLOTS)
TOPIC_TEMPLATE_WEIGHT_IN_INCIDENT = 0.15
SPOT_ODDS = 4  # at a hot spot, its name has this many ranks before the city's


class TemplateTable(NamedTuple):
    """The compiled vocabulary: pieces, pools of them, templates and subjects."""

    pieces: NDArray[np.object_]
    pool_firsts: Ints
    pool_sizes: Ints
    templates: Ints  # codes, [2 * templates, columns]; the second half follows an opener
    takes_closer: NDArray[np.bool_]
    subjects: WeightedGroups  # a group per language, then one per incident
    templates_of_subject: WeightedGroups
    subject_pools: Ints  # [subjects, slots]
    place_pools: Ints  # [components, English or local, place slots]
    subject_at: Ints  # [components, languages]: the subject of a hot spot, or -1

    def draw_pieces(self, pools: Ints, u: Floats) -> Ints:
        """Choose a piece from each row's pool by Zipf's law."""
        return self.pool_firsts[pools] + choose_rank(self.pool_sizes[pools], u)


class _Compiler:
    """Collects pieces, pools and templates."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.pools: list[tuple[int, int]] = []
        self.templates: list[list[int]] = []
        self.after_opener: list[list[int]] = []
        self.takes_closer: list[bool] = []

    def add_pool(self, pieces: Iterable[str]) -> int:
        first = len(self.pieces)
        self.pieces += [msgspec.json.encode(piece)[1:-1].decode() for piece in pieces]
        self.pools.append((first, len(self.pieces) - first))
        return len(self.pools) - 1

    def add_template(self, text: str) -> None:
        self.templates.append(self._codes(text))
        self.after_opener.append(self._codes(_uncapitalised(text)))
        self.takes_closer.append(text[-1] not in ".!?！？")

    def _codes(self, text: str) -> list[int]:
        codes: list[int] = []
        for literal, slot, _, _ in Formatter().parse(text):
            if literal:
                codes.append(FIRST_LITERAL + self.pools[self.add_pool([literal])][0])
            if slot is not None:
                codes.append(ALL_SLOTS.index(slot))
        return codes

    def shared_pools(self, language: Language, numbers: dict[str, int]) -> dict[str, int]:
        """The pools that all topics of a language use."""
        return {
            **numbers,
            "name": self.add_pool(rare_names(language.name_parts)),
            "opener": self.add_pool(language.openers),
            "closer": self.add_pool(language.closers),
            "common": self.add_pool(language.common.split()),
        }

    def topic_pools(self, topic: Topic, shared: dict[str, int]) -> list[int]:
        """The pool of each slot in a topic's templates."""
        words = topic.words.split()
        own = {
            "word": self.add_pool(words),
            "Word": self.add_pool(word[0].upper() + word[1:] for word in words),
            "tag": self.add_pool(f" #{word}" for word in words),
            "emoji": self.add_pool(f" {emoji}" for emoji in topic.emoji.split()),
        }
        return [{**own, **shared}[slot] for slot in SLOTS]

    def place_pools(self, components: Population) -> Ints:
        cities = places().cities
        table = []
        for names, number in zip(components.names, components.city.tolist(), strict=True):
            city_names = (cities[number].name, cities[number].local or cities[number].name)
            table.append(
                [
                    [self.add_pool([*[spot] * SPOT_ODDS, city]), self.add_pool([city])]
                    for spot, city in zip(names, city_names, strict=True)
                ]
            )
        return np.array(table, np.int64)


def _uncapitalised(text: str) -> str:
    """The template as it continues after an opener: acronyms and quotes keep their capital."""
    if text.startswith("{Word}"):
        return "{word}" + text.removeprefix("{Word}")
    return text[0].lower() + text[1:] if text[1:2].islower() else text


@cache
def compile_templates() -> TemplateTable:
    """Compile the whole vocabulary, some 70,000 pieces."""
    compiler = _Compiler()
    numbers = {slot: compiler.add_pool(digits.split()) for slot, digits in NUMBERS.items()}
    pools: list[list[int]] = []
    template_weights: list[list[float]] = []  # a group per subject
    subject_weights: list[list[float]] = []  # a group per language or incident
    subject_of: dict[tuple[str, str], int] = {}
    for language in languages():
        shared = compiler.shared_pools(language, numbers)
        subject_weights.append([topic.weight for topic in language.topics.values()])
        for name, topic in language.topics.items():
            subject_of[language.code, name] = len(pools)
            pools.append(compiler.topic_pools(topic, shared))
            for template in topic.templates:
                compiler.add_template(template)
            template_weights.append([1.0] * len(topic.templates))
    topics = {language.code: language.topics for language in languages()}
    for incident in incidents():
        topic = topics[incident.language][incident.topic]
        subject_weights.append([1.0])
        pools.append(pools[subject_of[incident.language, incident.topic]])
        for template in (*incident.templates, *topic.templates):
            compiler.add_template(template)
        usual = [TOPIC_TEMPLATE_WEIGHT_IN_INCIDENT] * len(topic.templates)
        template_weights.append([*[1.0] * len(incident.templates), *usual])
    components = population()
    place_pools = compiler.place_pools(components)
    subject_at = [
        [subject_of.get((language.code, topic), -1) for language in languages()]
        for topic in components.topics
    ]
    firsts, sizes = zip(*compiler.pools, strict=True)
    return TemplateTable(
        pieces=np.array(compiler.pieces, dtype=object),
        pool_firsts=np.array(firsts, np.int64),
        pool_sizes=np.array(sizes, np.int64),
        templates=_padded([*compiler.templates, *compiler.after_opener]),
        takes_closer=np.array(compiler.takes_closer),
        subjects=WeightedGroups.of(subject_weights),
        templates_of_subject=WeightedGroups.of(template_weights),
        subject_pools=np.array(pools, np.int64),
        place_pools=place_pools,
        subject_at=np.array(subject_at, np.int64),
    )


def _padded(rows: Sequence[Sequence[int]]) -> Ints:
    width = max(map(len, rows))
    return np.array([[*row, *[PAD] * (width - len(row))] for row in rows], np.int64)
