"""Sections: files of retained objects as questions look at them, and the common moves."""

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
    """A file of retained objects with what is known of it from outside.

    `rows` i64[p, 2] are those of the parts that are asked: all of them, or a worker's own.
    `columns` are those that kernels search, `counted` those whose terms they count.
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
        """The section of some parts, given where their rows begin and end: i64[p, 2]."""
        rows = read_only(np.ascontiguousarray(rows))
        return self._replace(rows=rows, columns=self.columns._replace(parts=rows))

    def within(self, span: Span) -> bool:
        """Whether all of its objects count."""
        return (
            self.first_us > span.after_us
            and self.last_us <= span.until_us
            and self.first_seq > span.after_seq
            and self.last_seq < span.before_seq
        )


def make_section(retained: Retained, entry: StoreEntry, layers: Layers | None = None) -> Section:
    """A section of all parts of a file."""
    rows = np.stack([retained.part_rows[:-1], retained.part_rows[1:]], axis=1)
    times = entry.first_seq, entry.last_seq, entry.first_us, entry.last_us
    counted = CountedColumns(*(getattr(retained, name) for name in CountedColumns._fields))
    return Section(retained, columns_of(retained), counted, read_only(rows), *times, layers)


def open_sections(state: StateDir, entries: Sequence[StoreEntry]) -> list[Section]:
    """The store's files, mapped, with what their entries say."""
    return [
        make_section(open_retained(state.file(entry.name)), entry, Layers()) for entry in entries
    ]


def region_of(region: Region) -> SearchRegion:
    """A region as kernels take it."""
    return SearchRegion(
        region.kind, read_only(np.array(region.box)), read_only(np.array(region.shape, np.float64))
    )


def words_in(retained: Retained, words: Sequence[str]) -> NDArray[np.int64]:
    """The numbers of words in a file, -1 for one that none of its objects has."""
    numbers = np.empty(len(words), np.int64)
    for i, word in enumerate(words):
        raw = encoded(word)
        numbers[i] = place_of_slice(retained.word_offsets, retained.word_bytes, raw)
    return numbers


@lru_cache(4096)
def encoded(word: str) -> NDArray[np.uint8]:
    """A word's bytes."""
    return np.frombuffer(word.encode(), np.uint8)


class Json(bytes):
    """A value that is JSON already."""


def name_object(retained: Retained, row: int, with_data: bool, **measure: float) -> dict[str, Any]:
    """An object as results name it; its data is left as JSON."""
    begin, end = retained.id_offsets[row], retained.id_offsets[row + 1]
    named: dict[str, Any] = {"object": retained.id_bytes[begin:end].tobytes().decode(), **measure}
    if with_data and retained.data_offsets.size > 1:
        begin, end = retained.data_offsets[row], retained.data_offsets[row + 1]
        if end > begin:
            named["data"] = Json(retained.data_bytes[begin:end].tobytes())
    return named


class Latest(NamedTuple):
    """Where an object is in the log, and on earth."""

    seq: int
    lon: float
    lat: float


def find_latest(sections: Sequence[Section], names: Iterable[str]) -> dict[str, Latest]:
    """The latest object of each id, of those that are retained."""
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
    """The rows of an id in a CSR column of ids."""
    wanted = name.encode("utf-8", "replace")
    alike = np.flatnonzero(np.diff(offsets) == len(wanted))
    for back, byte in enumerate(reversed(wanted), 1):  # ids differ in their last bytes most
        if alike.size == 0:
            break
        alike = alike[raw[offsets[alike + 1] - back] == byte]
    return alike
