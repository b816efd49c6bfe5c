"""Index retained objects for queries by place, word and time, with term counts by cell.

Rows are grouped by part (plan leaf), and sorted by cell in a part. Words are numbered in code-point
order, so that a row's terms ascend in the order in which the specification sums them. Postings
lists are in row order: the rows of a cell are a range of every list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import codes_to_order, slices_to_buffer
from placewire.kernels.jit import read_only
from placewire.model.subscriptions import concat_offsets, take_slices
from placewire.objects.kernels.index import (
    TABLE_ROWS,
    codes_to_nodes,
    nodes_to_tables,
    sort_lists,
    terms_to_lists,
    terms_to_norms,
)
from placewire.text.words import Lexicon, Words, rank_words

NO_OFFSETS = np.zeros(1, np.int64)
NO_BYTES = np.empty(0, np.uint8)
OPTIONAL = ("data", "text")  # columns that may be empty for all rows


class Rows(NamedTuple):
    """Objects to retain, in any order: their columns, with terms as numbers of `words`.

    If no object has data, or texts are not kept, these offsets are only the 0. `part` is the part
    of the plan that keeps each object.
    """

    seq: NDArray[np.int64]
    ts_us: NDArray[np.int64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    code: NDArray[np.uint32]
    part: NDArray[np.int32]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    data_offsets: NDArray[np.int64]
    data_bytes: NDArray[np.uint8]
    text_offsets: NDArray[np.int64]
    text_bytes: NDArray[np.uint8]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint32]


class Retained(NamedTuple):
    """n retained objects and their indexes, v words, p parts, t tables.

    Columns of rows are as in `Rows`. Part i is `part[i]` of the plan, rows
    part_rows[i]:part_rows[i+1]. Lists of words and tables of nodes are CSR columns; node i is rows
    nodes[i, 0]:nodes[i, 1]. A lexicon adds idf f64[v] of words and norms f64[n] of rows.
    """

    seq: NDArray[np.int64]
    ts_us: NDArray[np.int64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    code: NDArray[np.uint32]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    data_offsets: NDArray[np.int64]
    data_bytes: NDArray[np.uint8]
    text_offsets: NDArray[np.int64]
    text_bytes: NDArray[np.uint8]
    term_offsets: NDArray[np.int64]
    terms: NDArray[np.uint32]
    part: NDArray[np.int32]
    part_rows: NDArray[np.int64]
    word_hash: NDArray[np.uint64]
    word_offsets: NDArray[np.int64]
    word_bytes: NDArray[np.uint8]
    list_offsets: NDArray[np.int64]
    lists: NDArray[np.uint32]
    nodes: NDArray[np.int64]
    table_offsets: NDArray[np.int64]
    table_terms: NDArray[np.uint32]
    table_counts: NDArray[np.uint32]
    idf: NDArray[np.float64]
    norm: NDArray[np.float64]

    @property
    def total(self) -> int:
        return int(self.seq.size)

    @property
    def words(self) -> Words:
        return Words(self.word_hash, self.word_offsets, self.word_bytes)


def make_retained(columns: Mapping[str, NDArray[Any]]) -> Retained:
    """Build `Retained` from columns by name, in the form that kernels take."""
    return Retained(*(read_only(np.ascontiguousarray(columns[name])) for name in Retained._fields))


def build_retained(rows: Rows, words: Words, lexicon: Lexicon | None = None) -> Retained:
    """Sort rows and index them."""
    rows = in_order(rows)
    terms = rows.terms.copy()
    sort_lists(rows.term_offsets, terms)
    offsets, terms = read_only(rows.term_offsets), read_only(terms)
    list_offsets, lists = terms_to_lists(offsets, terms, words.hashes.size)
    part, starts = np.unique(rows.part, return_index=True)
    part_rows = np.append(starts, rows.seq.size).astype(np.int64)
    nodes = codes_to_nodes(read_only(rows.code), part_rows, TABLE_ROWS)
    nodes = nodes[np.lexsort((-nodes[:, 1], nodes[:, 0]))]  # the order in which counting reads them
    tables = nodes_to_tables(nodes, offsets, terms, words.hashes.size)
    idf = np.empty(0) if lexicon is None else lexicon.idf_of(words)
    norm = np.empty(0) if lexicon is None else terms_to_norms(offsets, terms, idf)
    return make_retained(
        rows._asdict()
        | {
            "terms": terms,
            "part": part,
            "part_rows": part_rows,
            "word_hash": words.hashes,
            "word_offsets": words.offsets,
            "word_bytes": words.raw,
            "list_offsets": list_offsets,
            "lists": lists,
            "nodes": nodes,
            "table_offsets": tables[0],
            "table_terms": tables[1],
            "table_counts": tables[2],
            "idf": idf,
            "norm": norm,
        }
    )


def in_order(rows: Rows) -> Rows:
    """Sort rows by part and code; ties stay in order."""
    order = codes_to_order(read_only(rows.code))
    if rows.part.size and rows.part.min() != rows.part.max():
        order = order[np.argsort(rows.part[order], kind="stable")]
    if (order[1:] > order[:-1]).all():
        return rows
    return take_retained(rows, order)


def take_retained(rows: Rows, picked: NDArray[np.int64]) -> Rows:
    """Return the rows at the positions `picked`, in that order."""
    columns: dict[str, NDArray[Any]] = {
        name: getattr(rows, name)[picked] for name in ("seq", "ts_us", "lon", "lat", "code", "part")
    }
    for what in ("id", *OPTIONAL):
        offsets, flat = f"{what}_offsets", f"{what}_bytes"
        edges = getattr(rows, offsets)
        if edges.size == 1:
            columns[offsets], columns[flat] = edges, getattr(rows, flat)
            continue
        columns[offsets], columns[flat] = slices_to_buffer(
            read_only(getattr(rows, flat)),
            read_only(edges[:-1][picked]),
            read_only(edges[1:][picked]),
        )
    columns["term_offsets"], at = take_slices(rows.term_offsets, picked)
    columns["terms"] = rows.terms[at]
    return Rows(**columns)


def rows_of(retained: Retained) -> Rows:
    """Return the rows of an index, in the form that it was built from."""
    part = np.repeat(retained.part, np.diff(retained.part_rows))
    return Rows(**{n: getattr(retained, n) for n in Rows._fields if n != "part"}, part=part)


def join_retained(sources: Sequence[tuple[Rows, Words]]) -> tuple[Rows, Words]:
    """Concatenate the rows of several indexes, with a common numbering of words."""
    words = [part for _, part in sources]
    offsets = concat_offsets([part.offsets for part in words])
    raw = np.concatenate([part.raw for part in words])
    ranks, firsts = rank_words(offsets, raw)
    joined = Words(
        np.concatenate([part.hashes for part in words])[firsts],
        *slices_to_buffer(
            read_only(raw), read_only(offsets[firsts]), read_only(offsets[firsts + 1])
        ),
    )
    columns: dict[str, NDArray[Any]] = {}
    for name in ("seq", "ts_us", "lon", "lat", "code", "part", "id_bytes"):
        columns[name] = np.concatenate([getattr(rows, name) for rows, _ in sources])
    columns["id_offsets"] = concat_offsets([rows.id_offsets for rows, _ in sources])
    for what in OPTIONAL:
        raw_parts = [getattr(rows, f"{what}_bytes") for rows, _ in sources]
        edges = [getattr(rows, f"{what}_offsets") for rows, _ in sources]
        columns[f"{what}_bytes"], columns[f"{what}_offsets"] = np.concatenate(raw_parts), NO_OFFSETS
        if any(some.size > 1 for some in edges):
            sizes = [rows.seq.size for rows, _ in sources]
            columns[f"{what}_offsets"] = concat_offsets(list(map(whole_offsets, edges, sizes)))
    columns["term_offsets"] = concat_offsets([rows.term_offsets for rows, _ in sources])
    base, numbered = 0, []
    for rows, part in sources:
        numbered.append(ranks[base : base + part.hashes.size][rows.terms])
        base += part.hashes.size
    columns["terms"] = np.concatenate(numbered)
    return Rows(**columns), joined


def whole_offsets(offsets: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Return offsets for every row, even if the column is empty."""
    return np.zeros(rows + 1, np.int64) if offsets.size == 1 else offsets


def used_words(rows: Rows, words: Words) -> tuple[Rows, Words]:
    """Renumber rows with only the words that some row has."""
    used = np.zeros(words.hashes.size, np.bool_)
    used[rows.terms] = True
    if used.all():
        return rows, words
    kept = np.flatnonzero(used)
    numbers = (np.cumsum(used) - 1).astype(np.uint32)
    offsets, raw = slices_to_buffer(
        read_only(words.raw), read_only(words.offsets[kept]), read_only(words.offsets[kept + 1])
    )
    return rows._replace(terms=numbers[rows.terms]), Words(words.hashes[kept], offsets, raw)
