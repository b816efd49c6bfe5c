"""Phrases of explanations that several kinds use: words, distances, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MOST_WORDS = 6  # of a sentence; the JSON has all


def describe_keywords(keywords: Sequence[dict[str, Any]], every: bool) -> str:
    """Say which keywords an object has or lacks."""
    has = [quote_term(one) for one in keywords if one["holds"]]
    lacks = [quote_term(one) for one in keywords if not one["holds"]]
    if every and lacks:
        return f"lacks {join_shortened(lacks)}"
    if has:
        return f"has {join_shortened(has)}"
    return describe_none(lacks) if len(lacks) > 1 else f"lacks {lacks[0]}"


def describe_none(words: list[str]) -> str:
    """Say that an object has none of some words."""
    if len(words) == 2:
        return f"has neither {words[0]} nor {words[1]}"
    return f"has none of {join_shortened(words, ', ')}"


def join_shortened(words: list[str], joint: str = " and ") -> str:
    """Join words as in a sentence, and only count those past MOST_WORDS."""
    if len(words) <= MOST_WORDS:
        return joint.join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
    return f"{', '.join(words[:MOST_WORDS])} and {len(words) - MOST_WORDS} more"


def join_words(words: list[str]) -> str:
    """Join words as in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def quote_term(leaf: dict[str, Any]) -> str:
    """Quote the word of a term, or show its hash if no retained object has the word."""
    if leaf["term"] is not None:
        return f"'{leaf['term']}'"
    return f"#{leaf['hash'][:8]} (a word that no retained object has)"


def format_metres(value: float) -> str:
    """Format a distance in a few digits."""
    if value < 10:
        return f"{value:.3f}".rstrip("0").rstrip(".") + " m"
    if value < 1_000:
        return f"{value:.0f} m"
    return f"{value / 1_000:.1f} km" if value < 100_000 else f"{value / 1_000:,.0f} km"


def format_ordinal(number: int) -> str:
    """Format a rank: 1st, 2nd, 3rd, 4th."""
    if 10 < number % 100 < 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
