"""tantivy as a peer: an inverted index of terms, with places and times as fast fields.

Terms go in as they are, one value each of a `raw` field, so that they match as ours do. All
documents are in one segment, in the order of days and, in a day, of a Z-curve: against the order of
arrival and the curve alone (100 k posts, boolean) that took a third of the time. Grid cells
as further terms were tried at three sizes: at 100 k posts they cost more than they spare.

`nearest` takes all documents with the terms when these are few, and looks into growing boxes when
they are many; `trending` is the aggregation `terms`, asked again for more when its last bucket ties
with the k-th. Objects are named by an integer fast field, which is less work than stored ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from tantivy import Document, FieldType, Index, Occur, Order, Query, Schema, SchemaBuilder

from bench.snapshot_answers import (
    boolean_answer,
    distances_m,
    nearest_answer,
    take_nearest,
    trending_answer,
)
from bench.snapshot_data import Retained
from bench.snapshot_queries import BOOLEAN, NEAREST, TRENDING, Answer, Asked, read_query
from bench.snapshot_queries import Query as Question
from bench.workload import KM_PER_DEG
from placewire.kernels.curve import points_to_curve

DAY_US = 86_400_000_000
HEAP_BYTES = 2_000_000_000  # so that there is one segment
CHUNK = 50_000
FEW = 2_000  # documents with a term: so many are looked at one by one
FIRST_DEG, GROWTH = 0.25, 4.0  # half a side of the first box about a point, and of the next
SPARE = 4  # buckets asked for, as a multiple of k


class Tantivy:
    """An index on disk, and its searcher."""

    name = "tantivy"
    kinds = (BOOLEAN, NEAREST, TRENDING)

    def __init__(self, retained: Retained, folder: Path) -> None:
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

    def select(self, asked: Asked, box: Sequence[float] | None) -> Query:
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

    def measure(self, asked: Asked, box: Sequence[float] | None) -> tuple[np.ndarray, np.ndarray]:
        """The seqs of all documents that are wanted, and their distances."""
        query = self.select(asked, box)
        found = self.searcher.search(query, self.total, count=False, order_by_field="seq")
        seqs = np.array([seq for seq, _ in found.hits], np.int64)
        at = [address for _, address in found.hits]
        lon, lat = (np.array(self.searcher.fast_field_values(x, at), float) for x in ("lon", "lat"))
        return seqs, distances_m(asked.lon, asked.lat, lon, lat)

    def look_around(self, asked: Asked) -> tuple[np.ndarray, np.ndarray]:
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

    def count_terms(self, asked: Asked) -> Answer:
        query, size = self.select(asked, asked.box), SPARE * asked.k
        while True:
            wanted = {"field": "terms", "size": size, "segment_size": size}
            buckets = self.searcher.aggregate(query, {"of": {"terms": wanted}})["of"]["buckets"]
            counts = [bucket["doc_count"] for bucket in buckets]
            if len(counts) < size or counts[-1] < counts[asked.k - 1]:
                break
            size *= 8
        ranked = sorted((-bucket["doc_count"], bucket["key"]) for bucket in buckets)
        return trending_answer((term, -count) for count, term in ranked[: asked.k])

    def close(self) -> None:
        """The files go with their folder."""


def make_schema() -> Schema:
    builder = SchemaBuilder()
    for name in ("seq", "ts"):
        builder.add_integer_field(name, fast=True)
    for name in ("lon", "lat"):
        builder.add_float_field(name, fast=True)
    builder.add_text_field("terms", fast=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def make_documents(retained: Retained, schema: Schema) -> Iterator[Document]:
    """The objects by day and place."""
    objects = retained.objects
    lon, lat = objects["lon"].to_numpy(), objects["lat"].to_numpy()
    ts = objects["ts"].cast(pa.int64()).to_numpy()
    terms = objects["terms"].combine_chunks()
    order = np.lexsort((points_to_curve(lon, lat), ts // DAY_US))
    names = ("seq", "ts", "lon", "lat", "terms")
    for begin in range(0, order.size, CHUNK):
        rows = order[begin : begin + CHUNK]
        columns = [column.tolist() for column in (rows, ts[rows], lon[rows], lat[rows])]
        for row in zip(*columns, terms.take(pa.array(rows)).to_pylist(), strict=True):
            yield Document.from_dict(dict(zip(names, row, strict=True)), schema)
