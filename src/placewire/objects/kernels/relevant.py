"""The most relevant rows of a file for one search, by page_layers or by walking lists.

Words are taken by rising length of their lists. A row that comes first in the list of one has none
of the words before it, so what all words from there on could give bounds its text. With
page_layers the frequent words come last and together.
"""

from __future__ import annotations

import math

import numpy as np

from placewire.kernels.jit import subkernel
from placewire.objects.kernels.page_bounds import TEXT_SLACK, balls_to_space, most_text
from placewire.objects.kernels.page_search import FEW, Scratch, search_bits, search_list
from placewire.objects.kernels.score import (
    Aim,
    Ask,
    Columns,
    ScoredObjects,
    offer_row,
    row_norm,
    score_to_reach,
)
from placewire.objects.kernels.score_layers import RARE, PageLayers, mark_of_word


@subkernel
def words_in_turn(
    list_offsets: np.ndarray,
    asked: np.ndarray,
    weights: np.ndarray,
    norm: float,
    turn: np.ndarray,
    ranks: np.ndarray,
    gain: np.ndarray,
) -> None:
    """Put the asked words in their turn, by length of their lists, and find what each gains."""
    for number in range(asked.size):
        length = list_offsets[asked[number] + 1] - list_offsets[asked[number]]
        at = number
        while at > 0:
            other = asked[turn[at - 1]]
            if list_offsets[other + 1] - list_offsets[other] <= length:
                break
            turn[at] = turn[at - 1]
            at -= 1
        turn[at] = number
    for at in range(asked.size):
        ranks[turn[at]] = at
        weight = weights[turn[at]]
        gain[at] = weight * weight / norm * TEXT_SLACK if norm > 0.0 else 0.0


@subkernel
def search_file(
    page_layers: PageLayers,
    layered: bool,
    file: Columns,
    ask: Ask,
    aim: Aim,
    first: int,
    held: int,
    found: ScoredObjects,
    scratch: Scratch,
) -> int:
    """Offer what a file has; gives how many objects are held.

    Callers give `first` and `held` as np.int64(0): to the compiler a bare 0 is a type of its own,
    for which the whole search would be compiled once more.
    """
    if ask.asked.size == 0 or (not aim.every and aim.room == 0):
        return held
    words_in_turn(
        file.list_offsets,
        ask.asked,
        ask.weights,
        ask.norm,
        scratch.turn,
        scratch.ranks,
        scratch.gain,
    )
    if not layered:
        return walk_lists(file, ask, aim, first, held, found, scratch)
    lon, lat = math.radians(ask.lon), math.radians(ask.lat)
    x, y, z = math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)
    rare = longest = np.int64(0)
    for turn in range(ask.asked.size):
        word = ask.asked[scratch.turn[turn]]
        number = np.int64(page_layers.bitmap[word])
        if number == RARE:
            rare += 1
            longest = page_layers.place_offsets[word + 1] - page_layers.place_offsets[word]
            scratch.columns[turn], scratch.masks[turn] = 3, mark_of_word(word)
        else:
            scratch.numbers[turn - rare] = number
            scratch.columns[turn] = 2
            scratch.masks[turn] = np.uint64(1) << np.uint64(number & 63)
            scratch.ranks[scratch.turn[turn]] = rare  # they come together
    if longest > FEW or rare < ask.asked.size:
        balls_to_space(page_layers.page_balls, x, y, z, ask.alpha, ask.reach_m, scratch.space)
    for turn in range(rare):
        held = search_list(page_layers, file, ask, aim, first, held, found, scratch, turn, x, y, z)
    if rare < ask.asked.size:
        held = search_bits(page_layers, file, ask, aim, first, held, found, scratch, rare, x, y, z)
    return held


@subkernel
def walk_lists(
    file: Columns, ask: Ask, aim: Aim, first: int, held: int, found: ScoredObjects, scratch: Scratch
) -> int:
    """Offer the rows of the whole lists; gives how many objects are held."""
    alpha, lists, norms, offsets = ask.alpha, file.lists, file.norm, file.term_offsets
    for turn in range(ask.asked.size):
        gain = scratch.gain[turn : ask.asked.size].sum()
        most = most_text(gain, ask.norm)
        least = score_to_reach(aim, first, held, found)
        word = ask.asked[scratch.turn[turn]]
        for at in range(file.list_offsets[word], file.list_offsets[word + 1]):
            row = np.int64(lists[at])
            norm = row_norm(norms, offsets, row)
            text = min(most, gain / norm) if norm > 0.0 else 0.0
            if alpha + (1.0 - alpha) * text >= least:
                scratch.looked[0] += 1
                held = offer_row(file, ask, row, scratch.ranks, turn, aim, first, held, found)
                least = score_to_reach(aim, first, held, found)
    return held
