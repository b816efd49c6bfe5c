"""Sections: files of retained objects opened for searches, and helpers that searches share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import read_only
from placewire.kernels.text.words import place_of_slice
from placewire.model.regions import Region
from placewire.objects.index import Retained
from placewire.objects.kernels.cell_ranges import SearchRegion
from placewire.objects.kernels.index import CountedColumns
from placewire.objects.kernels.score import Columns
from placewire.objects.score_layers import Layers, columns_of
from placewire.objects.store import open_retained
from placewire.storage.layout import StateDir
from placewire.storage.manifest import StoreEntry

FAR_FUTURE = np.iinfo(np.int64).max


class Span(NamedTuple):
    """Which retained objects count: after_us < ts <= until_us, after_seq < seq < before_seq."""

    after_us: int
    until_us: int
    after_seq: int = -1
    before_seq: int = FAR_FUTURE


class Section(NamedTuple):
    """A file of retained objects, opened for a search.

    `rows` i64[p, 2] are the row ranges of the parts to search: all parts, or a worker's own.
    `columns` are those that kernels search, `counted` those that term counts read.
    """

    retained: Retained
    columns: Columns
    counted: CountedColumns
    rows: NDArray[np.int64]
    first_seq: int
    last_seq: int
    first_us: int
    last_us: int
    layers: Layers | None = None  # None: lists are always walked

    def meets(self, span: Span) -> bool:
        return (
            self.last_us > span.after_us
            and self.first_us <= span.until_us
            and self.last_seq > span.after_seq
            and self.first_seq < span.before_seq
        )

    def of_parts(self, rows: NDArray[np.int64]) -> Section:
        """Return the section limited to some parts, given their row ranges: i64[p, 2]."""
        rows = read_only(np.ascontiguousarray(rows))
        return self._replace(rows=rows, columns=self.columns._replace(parts=rows))

    def within(self, span: Span) -> bool:
        """Return true if all objects of the section count."""
        return (
            self.first_us > span.after_us
            and self.last_us <= span.until_us
            and self.first_seq > span.after_seq
            and self.last_seq < span.before_seq
        )


def make_section(retained: Retained, entry: StoreEntry, layers: Layers | None = None) -> Section:
    """Return a section of all parts of a file."""
    rows = np.stack([retained.part_rows[:-1], retained.part_rows[1:]], axis=1)
    times = entry.first_seq, entry.last_seq, entry.first_us, entry.last_us
    counted = CountedColumns(*(getattr(retained, name) for name in CountedColumns._fields))
    return Section(retained, columns_of(retained), counted, read_only(rows), *times, layers)


def open_sections(state: StateDir, entries: Sequence[StoreEntry]) -> list[Section]:
    """Map the store's files and make a section of each."""
    return [
        make_section(open_retained(state.file(entry.name)), entry, Layers()) for entry in entries
    ]


def region_of(region: Region) -> SearchRegion:
    """Return a region in the form that kernels take."""
    return SearchRegion(
        region.kind, read_only(np.array(region.box)), read_only(np.array(region.shape, np.float64))
    )


def words_in(retained: Retained, words: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers of words in a file, -1 for a word that none of its objects has."""
    numbers = np.empty(len(words), np.int64)
    for i, word in enumerate(words):
        raw = encoded(word)
        numbers[i] = place_of_slice(retained.word_offsets, retained.word_bytes, raw)
    return numbers


@lru_cache(4096)
def encoded(word: str) -> NDArray[np.uint8]:
    """Return a word's bytes."""
    return np.frombuffer(word.encode(), np.uint8)


class Json(bytes):
    """A value that is already JSON."""


def name_object(retained: Retained, row: int, with_data: bool, **measure: float) -> dict[str, Any]:
    """Return an object as results name it; its data stays encoded JSON."""
    begin, end = retained.id_offsets[row], retained.id_offsets[row + 1]
    named: dict[str, Any] = {"object": retained.id_bytes[begin:end].tobytes().decode(), **measure}
    if with_data and retained.data_offsets.size > 1:
        begin, end = retained.data_offsets[row], retained.data_offsets[row + 1]
        if end > begin:
            named["data"] = Json(retained.data_bytes[begin:end].tobytes())
    return named


class Latest(NamedTuple):
    """An object's position in the log, and its coordinates."""

    seq: int
    lon: float
    lat: float


def find_latest(sections: Sequence[Section], names: Iterable[str]) -> dict[str, Latest]:
    """Return the latest retained object of each id."""
    wanted = set(names)
    found: dict[str, Latest] = {}
    for section in sorted(sections, key=lambda one: -one.last_seq):
        kept = section.retained
        for name in wanted:
            if name in found and found[name].seq >= section.last_seq:
                continue
            rows = rows_of_id(kept.id_offsets, kept.id_bytes, name)
            if rows.size == 0:
                continue
            row = int(rows[kept.seq[rows].argmax()])
            seq = int(kept.seq[row])
            if name not in found or found[name].seq < seq:
                found[name] = Latest(seq, float(kept.lon[row]), float(kept.lat[row]))
    return found


def rows_of_id(offsets: NDArray[np.int64], raw: NDArray[np.uint8], name: str) -> NDArray[np.int64]:
    """Return the rows with an id, from a CSR column of ids."""
    wanted = name.encode("utf-8", "replace")
    alike = np.flatnonzero(np.diff(offsets) == len(wanted))
    for back, byte in enumerate(reversed(wanted), 1):  # ids differ most in their last bytes
        if alike.size == 0:
            break
        alike = alike[raw[offsets[alike + 1] - back] == byte]
    return alike
