"""tantivy as a peer: an inverted index of terms, with places and times as fast fields.

Terms go in as they are, one value each of a `raw` field, so that they match as ours do. All
documents are in one segment, the newest day first and, in a day, in the order of a Z-curve. What
was tried, on 1 M objects on a shared machine:

- other orders for `boolean`: the oldest day first 0.93 ms and the newest first 0.52 in one run (a
  range on a fast field is scanned up to its first document); the oldest day first 0.98, the curve
  alone 2.1 and arrival 2.3 in another;
- days and grid cells (the finest of three sizes with few of them in the box) as further terms: they
  cost `boolean` more than they spare, but `trending` takes 2.1 ms with both, 2.5 with cells, 4.4
  with days and 7.0 with neither, and in boxes of 1% of the space 3.9 and 15;
- for `nearest`, all documents with the terms, or growing boxes: all while a term has up to 20,000.

`trending` is the aggregation `terms`, asked again for more when its last bucket ties with the k-th.
Objects are named by an integer fast field, which is less work than stored ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from tantivy import Document, FieldType, Index, Occur, Order, Query, Schema, SchemaBuilder

from bench.papers.sstd.data import RetainedObjects
from bench.papers.sstd.queries import (
    BOOLEAN,
    NEAREST,
    TRENDING,
    Answer,
    PeerQuery,
    boolean_answer,
    distances_m,
    nearest_answer,
    read_query,
    take_nearest,
    trending_answer,
)
from bench.papers.sstd.queries import Query as Question
from bench.workload import KM_PER_DEG
from placewire.kernels.space.z_curve import points_to_curve

DAY_US = 86_400_000_000
HEAP_BYTES = 2_000_000_000  # so that there is one segment
CHUNK = 50_000
FEW = 20_000  # documents with a term: so many are looked at one by one
FIRST_DEG, GROWTH = 0.25, 4.0  # half a side of the first box about a point, and of the next
SPARE = 4  # buckets asked for, as a multiple of k
CELLS_DEG, MOST_CELLS = (0.25, 2.0, 16.0), 16
COLUMN = 4096  # more than the rows of any grid
LANDMARKS = ("day", *(f"cell{level}" for level in range(len(CELLS_DEG))))


class Tantivy:
    """An index on disk, and its searcher."""

    name = "tantivy"
    kinds = (BOOLEAN, NEAREST, TRENDING)

    def __init__(self, retained: RetainedObjects, folder: Path) -> None:
        self.now_us = retained.now_us
        self.schema = make_schema()
        folder.mkdir(parents=True)
        index = Index(self.schema, path=str(folder))
        writer = index.writer(HEAP_BYTES, 1)
        for document in make_documents(retained, self.schema):
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self.searcher = index.searcher()
        self.total = retained.objects.num_rows

    def answer(self, query: Question) -> Answer:
        asked = read_query(query, self.now_us)
        if asked.kind == BOOLEAN:
            found = self.searcher.search(
                self.select(asked, asked.box), asked.limit, order_by_field="seq", order=Order.Desc
            )
            return boolean_answer(found.count, (seq for seq, _ in found.hits))
        if asked.kind == TRENDING:
            return self.count_terms(asked)
        fewest = min(self.searcher.doc_freq("terms", term) for term in asked.terms)
        found = self.measure(asked, None) if fewest <= FEW else self.look_around(asked)
        seqs, distances = take_nearest(*found, asked.k)
        return nearest_answer(seqs.tolist(), distances.tolist())

    def select(self, asked: PeerQuery, box: Sequence[float] | None) -> Query:
        """Documents with all terms that are recent enough, in a box if there is one."""
        schema = self.schema
        parts = [Query.term_query(schema, "terms", t, index_option="basic") for t in asked.terms]
        if box is not None:
            west, south, east, north = box
            parts.append(Query.range_query(schema, "lon", FieldType.Float, west, east))
            parts.append(Query.range_query(schema, "lat", FieldType.Float, south, north))
        recent = (schema, "ts", FieldType.Integer, asked.after_us)
        parts.append(Query.range_query(*recent, include_lower=False))
        return Query.boolean_query([(Occur.Must, part) for part in parts])

    def measure(
        self, asked: PeerQuery, box: Sequence[float] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The seqs of all documents that are wanted, and their distances."""
        query = self.select(asked, box)
        found = self.searcher.search(query, self.total, count=False, order_by_field="seq")
        seqs = np.array([seq for seq, _ in found.hits], np.int64)
        at = [address for _, address in found.hits]
        lon, lat = (np.array(self.searcher.fast_field_values(x, at), float) for x in ("lon", "lat"))
        return seqs, distances_m(asked.lon, asked.lat, lon, lat)

    def look_around(self, asked: PeerQuery) -> tuple[np.ndarray, np.ndarray]:
        """What is in a box that is known to hold the k nearest, if there are so many."""
        half = FIRST_DEG
        while abs(asked.lat) + half < 85:
            across = half / np.cos(np.radians(abs(asked.lat) + half))
            west, east = asked.lon - across, asked.lon + across
            if west < -180 or east > 180:
                break
            box = (west, asked.lat - half, east, asked.lat + half)
            seqs, distances = self.measure(asked, box)
            if np.count_nonzero(distances <= 999 * KM_PER_DEG * half) >= asked.k:
                return seqs, distances
            half *= GROWTH
        return self.measure(asked, None)

    def count_terms(self, asked: PeerQuery) -> Answer:
        parts = [*self.find_landmarks(asked), self.select(asked, asked.box)]
        query = Query.boolean_query([(Occur.Must, part) for part in parts])
        size = SPARE * asked.k
        while True:
            wanted = {"field": "terms", "size": size, "segment_size": size}
            buckets = self.searcher.aggregate(query, {"of": {"terms": wanted}})["of"]["buckets"]
            counts = [bucket["doc_count"] for bucket in buckets]
            if len(counts) < size or counts[-1] < counts[asked.k - 1]:
                break
            size *= 8
        ranked = sorted((-bucket["doc_count"], bucket["key"]) for bucket in buckets)
        return trending_answer((term, -count) for count, term in ranked[: asked.k])

    def find_landmarks(self, asked: PeerQuery) -> Iterator[Query]:
        """The days and the cells that hold all documents of a box, as sets of terms."""
        days = list(range(asked.after_us // DAY_US, self.now_us // DAY_US + 1))
        yield Query.term_set_query(self.schema, "day", days)
        west, south, east, north = asked.box
        for level, side in enumerate(CELLS_DEG):
            columns = range(int((west + 180) // side), int((east + 180) // side) + 1)
            rows = range(int((south + 90) // side), int((north + 90) // side) + 1)
            if len(columns) * len(rows) <= MOST_CELLS:
                cells = [COLUMN * column + row for column in columns for row in rows]
                yield Query.term_set_query(self.schema, f"cell{level}", cells)
                return

    def close(self) -> None:
        """The files go with their folder."""


def make_schema() -> Schema:
    builder = SchemaBuilder()
    for name in ("seq", "ts"):
        builder.add_integer_field(name, fast=True)
    for name in ("lon", "lat"):
        builder.add_float_field(name, fast=True)
    for name in LANDMARKS:
        builder.add_integer_field(name, indexed=True)
    builder.add_text_field("terms", fast=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def make_documents(retained: RetainedObjects, schema: Schema) -> Iterator[Document]:
    """The objects by day, the newest first, and place."""
    objects = retained.objects
    lon, lat = objects["lon"].to_numpy(), objects["lat"].to_numpy()
    ts = objects["ts"].cast(pa.int64()).to_numpy()
    terms = objects["terms"].combine_chunks()
    order = np.lexsort((points_to_curve(lon, lat), -(ts // DAY_US)))
    cells = [
        COLUMN * ((lon + 180) // side).astype(int) + ((lat + 90) // side).astype(int)
        for side in CELLS_DEG
    ]
    columns = (ts, lon, lat, ts // DAY_US, *cells)
    names = ("seq", "ts", "lon", "lat", *LANDMARKS, "terms")
    for begin in range(0, order.size, CHUNK):
        rows = order[begin : begin + CHUNK]
        values = [rows.tolist(), *(column[rows].tolist() for column in columns)]
        for row in zip(*values, terms.take(pa.array(rows)).to_pylist(), strict=True):
            yield Document.from_dict(dict(zip(names, row, strict=True)), schema)
