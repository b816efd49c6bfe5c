"""Which segments compaction merges."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from placewire.segments.compaction import FAN_IN, MOST_DEAD, SMALLEST_TIER, choose_merge, tier_of
from placewire.storage.manifest import (
    SegmentEntry,
)
from profiles import examples

# --- what to merge ---

entries = st.lists(
    st.tuples(st.integers(1, 5_000_000), st.floats(0, 1)).map(
        lambda drawn: SegmentEntry("s", 0, drawn[0], int(drawn[0] * drawn[1]))
    ),
    max_size=40,
)


@given(entries)
def test_chosen_merges_make_sense(segments: list[SegmentEntry]) -> None:
    chosen = choose_merge(segments)
    assert chosen == sorted(set(chosen))
    assert all(0 <= position < len(segments) for position in chosen)
    if len(chosen) == 1:
        (only,) = chosen
        assert segments[only].ended > MOST_DEAD * segments[only].rows
    elif chosen:
        assert len(chosen) >= FAN_IN


@given(entries)
def test_when_nothing_is_chosen_there_are_few_segments_and_none_mostly_dead(
    segments: list[SegmentEntry],
) -> None:
    if choose_merge(segments):
        return
    tiers = [tier_of(entry.rows - entry.ended) for entry in segments]
    assert all(tiers.count(tier) < FAN_IN for tier in tiers)
    assert all(entry.ended <= MOST_DEAD * entry.rows for entry in segments)


@settings(max_examples=examples(50))
@given(st.lists(st.sampled_from([1, 3, 1_000, 20_000, 300_000]), max_size=120), st.randoms())
def test_merging_ends_stays_bounded_and_is_not_too_much_work(adds: list[int], random: Any) -> None:
    """A log-structured tree: few segments, and each row is written a few times only."""
    segments: list[SegmentEntry] = []
    written = 0
    for rows in adds:
        segments.append(SegmentEntry("s", 0, rows))
        rounds = 0
        while chosen := choose_merge(segments):
            rounds += 1
            assert rounds < 50, "merging does not come to an end"
            live = sum(segments[i].rows - segments[i].ended for i in chosen)
            written += live
            segments = [entry for i, entry in enumerate(segments) if i not in chosen]
            segments += [SegmentEntry("s", 0, live)] if live else []
        assert len(segments) <= (FAN_IN - 1) * (1 + tier_of(sum(adds) + 1))
        if segments and random.random() < 0.2:
            at = random.randrange(len(segments))
            segments[at] = SegmentEntry(
                "s", 0, segments[at].rows, random.randrange(segments[at].rows)
            )
    assert written <= 8 * sum(adds) + 8 * SMALLEST_TIER * (1 + len(adds))
