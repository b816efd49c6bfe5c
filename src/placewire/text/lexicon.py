"""The lexicon: document frequencies and the idf of terms, for relevance scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.model.errors import Unusable
from placewire.model.settings import LexiconFile
from placewire.text.words import Words


class Lexicon:
    """Document frequencies of terms, and idf computed from them."""

    def __init__(self, documents: int, df: dict[str, int]) -> None:
        self.documents = documents
        self.df = {term.encode(): frequency for term, frequency in df.items()}

    def idf(self, word: bytes) -> float:
        """Return the idf of one word."""
        return self.idf_of_frequency(self.df.get(word, 0))

    def idf_of_frequency(self, frequency: int) -> float:
        """Return ln(1 + N / (1 + df))."""
        return math.log(1 + self.documents / (1 + frequency))

    def idf_of(self, words: Words) -> NDArray[np.float64]:
        """Return the idf of every word."""
        raw, edges = words.raw.tobytes(), words.offsets.tolist()
        idf = np.full(words.hashes.size, self.idf_of_frequency(0))
        for number, (begin, end) in enumerate(pairwise(edges)):
            if raw[begin:end] in self.df:
                idf[number] = self.idf(raw[begin:end])
        return idf


def weigh_terms(terms: Sequence[str], lexicon: Lexicon | None) -> tuple[list[float], float]:
    """Return the idf of terms in code-point order, and their norm, summed in that order."""
    weights = [1.0 if lexicon is None else lexicon.idf(term.encode()) for term in terms]
    total = 0.0
    for weight in weights:
        total += weight * weight
    return weights, math.sqrt(total)


@lru_cache(4)
def read_lexicon(path: str) -> Lexicon:
    """Return the lexicon of a file that never changes; raises Unusable."""
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=LexiconFile)
    except (OSError, msgspec.DecodeError) as error:
        raise Unusable(f"lexicon {path}: cannot be read: {error}") from None
    return Lexicon(found.documents, found.df)
