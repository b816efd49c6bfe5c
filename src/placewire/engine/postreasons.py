"""Where a subscription is posted, and whether an object's probe comes by there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.engine.seen import Seen
from placewire.index.boolean import BooleanIndex
from placewire.index.groups import GroupIndex
from placewire.kernels.cells import MAX_LEVEL, codes_to_columns_rows
from placewire.kernels.interning import EMPTY
from placewire.kernels.postings import ANY_TERM, ROW


class Post(NamedTuple):
    """A posting: its term, its cell (None where a term's list has no cells), its part."""

    term: int
    level: int | None
    code: int
    part: int = 0


def posts_of_row(index: BooleanIndex, row: int, part: int = 0) -> list[Post]:
    """The postings of a row."""
    at = np.flatnonzero(index.postings[:, ROW] == row)
    cells = np.searchsorted(index.cell_offsets, at, "right") - 1
    runs = np.searchsorted(index.run_cells, cells, "right") - 1
    numbers = np.searchsorted(index.run_offsets, runs, "right") - 1
    terms = terms_by_number(index.term_table)
    return [
        Post(terms[number], int(index.run_level[run]), int(index.cell_code[cell]), part)
        for number, run, cell in zip(numbers.tolist(), runs.tolist(), cells.tolist(), strict=True)
    ]


def posts_in_groups(index: GroupIndex, row: int, part: int = 0) -> list[Post]:
    """The postings of a `relevant` row: of its terms that can bring an object to its threshold."""
    at = np.flatnonzero(index.posting_row == row)
    cells = np.searchsorted(index.cell_offsets, at, "right") - 1
    numbers = np.unique(np.searchsorted(index.term_cells, cells, "right") - 1)
    terms = terms_by_number(index.term_table)
    return [Post(terms[number], None, 0, part) for number in numbers.tolist()]


def terms_by_number(table: NDArray[np.uint64]) -> dict[int, int]:
    """The hashes of a table by their numbers."""
    filled = np.flatnonzero(table[1::2] != EMPTY)
    return dict(zip(table[2 * filled + 1].tolist(), table[2 * filled].tolist(), strict=True))


def reaches(post: Post, seen: Seen, code: int) -> bool:
    """Whether an object with cell code `code` at MAX_LEVEL looks at a posting."""
    if not has_term(post, seen):
        return False
    return post.level is None or code >> (2 * (MAX_LEVEL - post.level)) == post.code


def has_term(post: Post, seen: Seen) -> bool:
    return post.term == int(ANY_TERM) or post.term in seen.words


def tell_post(post: Post, words: dict[int, str], seen: Seen, code: int) -> dict[str, Any]:
    """A posting, JSON-ready; its term is None if it is under every text."""
    told: dict[str, Any] = {"any_text": post.term == int(ANY_TERM)}
    if not told["any_text"]:
        told["term"] = words.get(post.term)
        told["hash"] = f"{post.term:016x}"
    told |= {"object_has_term": has_term(post, seen), "reached": reaches(post, seen, code)}
    if post.level is not None:
        told["cell"] = {"level": post.level, "code": post.code, "box": box_of_cell(post)}
    return told


def box_of_cell(post: Post) -> list[float]:
    """West, south, east, north of a posting's cell."""
    assert post.level is not None
    fine = np.array([post.code << (2 * (MAX_LEVEL - post.level))], np.uint32)
    columns, rows = codes_to_columns_rows(fine)
    shift, side = MAX_LEVEL - post.level, 1 << post.level
    column, row = int(columns[0]) >> shift, int(rows[0]) >> shift
    wide, high = 360.0 / side, 180.0 / side
    west, south = column * wide - 180.0, row * high - 90.0
    return [west, south, west + wide, south + high]
