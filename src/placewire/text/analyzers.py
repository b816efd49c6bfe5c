"""Analyzers by the settings that name them, one of each kept by a process."""

from __future__ import annotations

from functools import lru_cache

from placewire.model.analyzers import CJK_BIGRAM, SNOWBALL, check_analyzer
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.settings import Settings
from placewire.text.analyzer import Analyzer
from placewire.text.scripts import CJK_SCRIPTS
from placewire.text.stemming import StemmingAnalyzer


def open_analyzer(settings: Settings, key: tuple[int, int]) -> Analyzer:
    """The analyzer of the settings under a hash key; raises Unusable."""
    return _open(settings.analyzer, settings.stemmer, settings.stop_words or "", *key)


@lru_cache(8)  # what an analyzer has learnt of words is of use to the next block
def _open(name: str, stemmer: str | None, stop_words: str, k0: int, k1: int) -> Analyzer:
    try:
        here = check_analyzer(name)
    except InvalidEvent as error:
        raise Unusable(str(error)) from None
    if stemmer is not None and stemmer != here:
        raise Unusable(f"analyzer: its stems are those of {stemmer}, but {here} is installed")
    if name.startswith(SNOWBALL):
        return StemmingAnalyzer(k0, k1, name.removeprefix(SNOWBALL), stop_words.split())
    return Analyzer(k0, k1, stop_words.split(), CJK_SCRIPTS if name == CJK_BIGRAM else None)
