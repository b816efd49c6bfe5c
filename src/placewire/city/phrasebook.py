"""The phrasebook: all vocabulary compiled to arrays, so that texts are composed by the block.

Every text is a run of pieces joined without a separator. A piece is a literal of a saying or a
ball from a pool (words, names, numbers, ...), already escaped for JSON. A saying is a row of
codes: `PAD`, a slot, or `FIRST_LITERAL` + the number of a piece. A subject is one topic in one
language, or one incident; it names its pools and its sayings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from string import Formatter
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.city.eastern import EASTERN
from placewire.city.english import ENGLISH
from placewire.city.european import EUROPEAN
from placewire.city.ground import Ground, ground
from placewire.city.incidents import INCIDENTS
from placewire.city.names import rare_names
from placewire.city.places import CITIES
from placewire.city.urns import Floats, Ints, Urns, fill, zipf
from placewire.city.vocabulary import PLACE_SLOTS, SLOTS, Language, Topic

LANGUAGES = (ENGLISH, *EUROPEAN, *EASTERN)
ALL_SLOTS = (*SLOTS, *PLACE_SLOTS)
WORD, NAME, TAG, EMOJI, OPENER, CLOSER, COMMON, FIRST_PLACE = (
    ALL_SLOTS.index(slot)
    for slot in ("word", "name", "tag", "emoji", "opener", "closer", "common", "spot")
)
PAD = -1
FIRST_LITERAL = len(ALL_SLOTS)
NUMBERS = {
    "number": "5 2 3 10 4 6 20 8 15 30 7 12 9 40 25 11 18 35 14 50 22 16 45 60 13 17 90",
    "hour": "5 6 8 7 9 4 3 10 2 11 1 12",
    "few": "2 3 4 5 6",
}
TOPIC_SAYING_WEIGHT_IN_INCIDENT = 0.15
SPOT_ODDS = 4  # people at a hot spot say its name this many ranks before they say the city's


class Phrasebook(NamedTuple):
    pieces: NDArray[np.object_]
    pool_firsts: Ints
    pool_sizes: Ints
    sayings: Ints  # codes, [2 * sayings, columns]; the second half follows an opener
    takes_closer: NDArray[np.bool_]
    subjects: Urns  # an urn a language, then an urn an incident; a ball is a subject
    sayings_of_subject: Urns
    subject_pools: Ints  # [subjects, slots]
    place_pools: Ints  # [anchors, English or local, place slots]
    subject_at: Ints  # [anchors, languages]: the subject people turn to there, or -1


class _Press:
    """Collects pieces, pools and sayings while the phrasebook is being compiled."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.pools: list[tuple[int, int]] = []
        self.sayings: list[list[int]] = []
        self.following: list[list[int]] = []
        self.takes_closer: list[bool] = []

    def pool(self, pieces: Iterable[str]) -> int:
        first = len(self.pieces)
        self.pieces += [msgspec.json.encode(piece)[1:-1].decode() for piece in pieces]
        self.pools.append((first, len(self.pieces) - first))
        return len(self.pools) - 1

    def saying(self, text: str) -> int:
        self.sayings.append(self._codes(text))
        self.following.append(self._codes(_uncapitalised(text)))
        self.takes_closer.append(text[-1] not in ".!?！？")
        return len(self.sayings) - 1

    def _codes(self, text: str) -> list[int]:
        codes: list[int] = []
        for literal, slot, _, _ in Formatter().parse(text):
            if literal:
                codes.append(FIRST_LITERAL + self.pools[self.pool([literal])][0])
            if slot is not None:
                codes.append(ALL_SLOTS.index(slot))
        return codes


def _uncapitalised(text: str) -> str:
    """The saying as it goes on after an opener: no capital, unless it is an acronym or a quote."""
    if text.startswith("{Word}"):
        return "{word}" + text.removeprefix("{Word}")
    return text[0].lower() + text[1:] if text[1:2].islower() else text


@cache
def phrasebook() -> Phrasebook:
    """The phrasebook of the whole vocabulary, compiled once (some 70,000 pieces)."""
    press = _Press()
    numbers = {slot: press.pool(digits.split()) for slot, digits in NUMBERS.items()}
    pools: list[list[int]] = []
    spoken: list[list[float]] = []  # weights of sayings, an urn a subject
    rows: list[list[float]] = []  # weights of subjects, an urn a language or incident
    subject_of: dict[tuple[str, str], int] = {}
    for language in LANGUAGES:
        shared = _shared_pools(press, language, numbers)
        rows.append([topic.weight for topic in language.topics.values()])
        for name, topic in language.topics.items():
            subject_of[language.code, name] = len(pools)
            pools.append(_topic_pools(press, topic, shared))
            spoken.append([1.0 for saying in topic.sayings if press.saying(saying) >= 0])
    topics = {language.code: language.topics for language in LANGUAGES}
    for incident in INCIDENTS:
        topic = topics[incident.language][incident.topic]
        rows.append([1.0])
        pools.append(pools[subject_of[incident.language, incident.topic]])
        for saying in (*incident.sayings, *topic.sayings):
            press.saying(saying)
        usual = [TOPIC_SAYING_WEIGHT_IN_INCIDENT] * len(topic.sayings)
        spoken.append([*[1.0] * len(incident.sayings), *usual])
    anchors = ground()
    place_pools = _place_pools(press, anchors)
    subject_at = [
        [subject_of.get((language.code, topic), -1) for language in LANGUAGES]
        for topic in anchors.topics
    ]
    firsts, sizes = zip(*press.pools, strict=True)
    return Phrasebook(
        pieces=np.array(press.pieces, dtype=object),
        pool_firsts=np.array(firsts, np.int64),
        pool_sizes=np.array(sizes, np.int64),
        sayings=_padded([*press.sayings, *press.following]),
        takes_closer=np.array(press.takes_closer),
        subjects=fill(rows),
        sayings_of_subject=fill(spoken),
        subject_pools=np.array(pools, np.int64),
        place_pools=place_pools,
        subject_at=np.array(subject_at, np.int64),
    )


def _shared_pools(press: _Press, language: Language, numbers: dict[str, int]) -> dict[str, int]:
    return {
        **numbers,
        "name": press.pool(rare_names(language.code)),
        "opener": press.pool(language.openers),
        "closer": press.pool(language.closers),
        "common": press.pool(language.common.split()),
    }


def _topic_pools(press: _Press, topic: Topic, shared: dict[str, int]) -> list[int]:
    words = topic.words.split()
    own = {
        "word": press.pool(words),
        "Word": press.pool(word[0].upper() + word[1:] for word in words),
        "tag": press.pool(f" #{word}" for word in words),
        "emoji": press.pool(f" {emoji}" for emoji in topic.emoji.split()),
    }
    return [{**own, **shared}[slot] for slot in SLOTS]


def _place_pools(press: _Press, anchors: Ground) -> Ints:
    table = []
    for names, city in zip(anchors.names, anchors.city.tolist(), strict=True):
        cities = (CITIES[city].name, CITIES[city].local or CITIES[city].name)
        table.append(
            [
                [press.pool([*[spot] * SPOT_ODDS, name]), press.pool([name])]
                for spot, name in zip(names, cities, strict=True)
            ]
        )
    return np.array(table, np.int64)


def _padded(rows: Sequence[Sequence[int]]) -> Ints:
    width = max(map(len, rows))
    return np.array([[*row, *[PAD] * (width - len(row))] for row in rows], np.int64)


def draw_pieces(book: Phrasebook, pools: Ints, u: Floats) -> Ints:
    """A piece from each row's pool, the frequent first (Zipf)."""
    return book.pool_firsts[pools] + zipf(book.pool_sizes[pools], u)
