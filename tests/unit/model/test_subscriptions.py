"""Rows keep the own columns of their kinds when they are taken, put together, written and read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from change_events import BASE, NEAREST, RELEVANT, block_of, decode_usually
from placewire.kinds.nearest.rows import NO_NEAREST, nearest_columns
from placewire.kinds.relevant.rows import NO_RELEVANT, relevant_columns
from placewire.kinds.trending.rows import NO_TRENDING, trending_columns
from placewire.model.kinds import all_kinds, kind_named
from placewire.model.subscriptions import (
    SubscriptionRows,
    concat_rows,
    no_rows,
    rows_of_arrays,
    rows_to_arrays,
    take_rows,
)
from placewire.storage.arrays import open_arrays, write_arrays

TRENDING = {**BASE, "kind": "trending", "k": 3, "window": "PT1H", "every": "PT5M"}
WORDS = ["tea", "milk", "lemon", "cake"]


def decode(events: list[dict[str, Any]]) -> SubscriptionRows:
    return decode_usually(block_of([json.dumps(event).encode() for event in events])).rows


def make_event(number: int) -> dict[str, Any]:
    """A subscription of any kind; every number in it tells it from the others."""
    words = WORDS[: 1 + number % 4]
    return [
        {**BASE, "where": " OR ".join(words), "id": f"s{number}"},
        {**NEAREST, "lon": number, "within_m": 1 + number, "keywords": words},
        {**RELEVANT, "lat": number / 2, "reach_m": 1 + number, "keywords": words},
        {**TRENDING, "every": f"PT{60 + number}S"},
    ][number % 5 % 4]


def assert_equal(rows: SubscriptionRows, expected: SubscriptionRows) -> None:
    one, other = rows_to_arrays(rows), rows_to_arrays(expected)
    # Seqs and ids are those of the blocks that the rows were decoded from.
    for name in one.keys() | other.keys() - {"rows.begin_seq"}:
        if name != "rows.begin_seq":
            assert np.array_equal(one[name], other[name]), name


numbers = st.lists(st.integers(0, 59), max_size=12)


@given(numbers, st.data())
def test_rows_taken_keep_their_own_columns(numbers, data):
    picked = data.draw(
        st.lists(st.integers(0, len(numbers) - 1), max_size=9) if numbers else st.just([])
    )
    rows = take_rows(decode([make_event(n) for n in numbers]), np.array(picked, np.int64))
    assert_equal(rows, decode([make_event(numbers[at]) for at in picked]))


@given(st.lists(numbers, min_size=1, max_size=3))
def test_rows_put_together_keep_their_own_columns(parts):
    rows = concat_rows([decode([make_event(n) for n in part]) for part in parts])
    assert_equal(rows, decode([make_event(n) for part in parts for n in part]))


def test_rows_in_a_file_keep_their_own_columns(tmp_path: Path) -> None:
    rows = decode([make_event(n) for n in range(20)])
    write_arrays(tmp_path / "rows", rows_to_arrays(rows))
    found = rows_of_arrays(open_arrays(tmp_path / "rows").arrays)
    assert_equal(found, rows)
    assert {type(table) for table in found.own.values()} == {
        type(none) for none in (NO_NEAREST, NO_RELEVANT, NO_TRENDING)
    }


def test_rows_without_own_columns_need_no_memory_for_them() -> None:
    rows = decode([{**BASE, "where": "tea", "id": f"s{n}"} for n in range(9)])
    assert rows.own == {}
    assert no_rows().own == {}
    assert not kind_named("boolean").own_columns


def test_a_kind_without_rows_has_empty_columns() -> None:
    for read, none in (
        (nearest_columns, NO_NEAREST),
        (relevant_columns, NO_RELEVANT),
        (trending_columns, NO_TRENDING),
    ):
        own = read(no_rows())
        assert type(own) is type(none)
        assert all(column.size == 0 for column in own)


@pytest.mark.parametrize("kind", list(all_kinds()), ids=lambda kind: kind.name)
def test_own_columns_have_names_of_their_own(kind: Any) -> None:
    assert not set(kind.own_columns._fields) & set(SubscriptionRows._fields)
