"""DuckDB as a peer: objects and postings in files, sorted so that scans are short.

DuckDB keeps the least and the greatest value of each row group, so that sorting is the index. It
gets a table of objects with lists of terms, by day and place on a Z-curve, and one of postings, by
term and time, each with about 500 row groups. What was tried, in one run
on 1 M objects on a shared machine:

- row groups of 2,048 rows for both: the postings' 5,000 row groups take 8 ms to pass over, 16,384
  rows 1.6 ms; objects are the other way round, 3.9 ms and 6.8 ms;
- postings by term and place: as fast for `boolean`, a quarter slower for `nearest`;
- for several keywords, postings joined with each other or a filter on the lists of terms: the
  lists for `boolean` (4.8 ms and 10), where the box leaves out most row groups, the join for
  `nearest` (12 and 21), which has no box;
- for `trending`, (term, place, time) rows instead of lists: about as fast, or slower;
- integers for terms, and a vocabulary (50 k objects): the look-up costs more than it spares.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.papers.sstd.data import RetainedObjects
from bench.papers.sstd.queries import (
    BOOLEAN,
    NEAREST,
    RADIUS_M,
    TRENDING,
    Answer,
    PeerQuery,
    Query,
    boolean_answer,
    nearest_answer,
    read_query,
    trending_answer,
)
from placewire.kernels.space.z_curve import points_to_curve

VECTOR = 2048  # DuckDB's least row group, of which others are multiples
ROW_GROUPS, MOST_VECTORS = 500, 60
THREADS = 2
DAY_US = 86_400_000_000

_LOAD = f"""
CREATE TABLE by_place.objects AS
  SELECT seq, epoch_us(ts) AS ts, lon, lat, terms FROM arrived
  ORDER BY epoch_us(ts) // {DAY_US}, place;
CREATE TABLE by_term.postings AS
  SELECT * FROM (SELECT unnest(terms) AS term, seq, epoch_us(ts) AS ts, lon, lat FROM arrived)
  ORDER BY term, ts;
CHECKPOINT by_place;
CHECKPOINT by_term;
"""
_IN_BOX = "lon BETWEEN $west AND $east AND lat BETWEEN $south AND $north AND ts > $after"
_AWAY = (
    f"round(2e3 * {RADIUS_M} * asin(sqrt(least(1.0, sin(radians(lat - $lat) / 2) ** 2"
    " + cos(radians($lat)) * cos(radians(lat)) * sin(radians(lon - $lon) / 2) ** 2)))) / 1e3"
)


class Duck:
    """Two database files, and a connection to both."""

    name = "DuckDB"
    kinds = (BOOLEAN, NEAREST, TRENDING)

    def __init__(self, retained: RetainedObjects, folder: Path) -> None:
        self.now_us = retained.now_us
        folder.mkdir(parents=True)
        self.db = duckdb.connect()
        self.db.execute(f"SET threads = {THREADS}")
        objects = retained.objects
        postings = pc.sum(pc.list_value_length(objects["terms"])).as_py()
        for name, rows in (("by_place", objects.num_rows), ("by_term", postings)):
            size = VECTOR * min(max(rows // (ROW_GROUPS * VECTOR), 1), MOST_VECTORS)
            self.db.execute(f"ATTACH '{folder / name}.db' AS {name} (ROW_GROUP_SIZE {size})")
        seqs = pa.array(np.arange(objects.num_rows, dtype=np.int32))
        places = points_to_curve(objects["lon"].to_numpy(), objects["lat"].to_numpy())
        arrived = objects.append_column("seq", seqs).append_column("place", pa.array(places))
        self.db.register("arrived", arrived)
        for statement in _LOAD.split(";\n")[:-1]:  # a transaction writes to one file only
            self.db.execute(statement)
        self.db.unregister("arrived")

    def answer(self, query: Query) -> Answer:
        asked = read_query(query, self.now_us)
        values: dict[str, object] = {"after": asked.after_us}
        values |= {f"term{i}": term for i, term in enumerate(asked.terms)}
        if asked.kind == NEAREST:
            return self.find_nearest(asked, values)
        values |= zip(("west", "south", "east", "north"), asked.box, strict=True)
        if asked.kind == BOOLEAN:
            return self.find_all(asked, values)
        terms = f"SELECT unnest(terms) AS term FROM by_place.objects WHERE {_IN_BOX}"
        counted = f"SELECT term, count(*) AS n FROM ({terms}) GROUP BY term"
        ranked = f"{counted} ORDER BY n DESC, term LIMIT {asked.k}"
        return trending_answer(self.db.execute(ranked, values).fetchall())

    def find_all(self, asked: PeerQuery, values: dict[str, object]) -> Answer:
        table, has_terms = "by_term.postings", "term = $term0"
        if len(asked.terms) > 1:
            conditions = (f"list_contains(terms, $term{i})" for i in range(len(asked.terms)))
            table, has_terms = "by_place.objects", " AND ".join(conditions)
        # `max(seq, n)` is the n greatest, descending: cheaper than a sort and a window.
        found = f"SELECT count(*), max(seq, {asked.limit}) FROM {table}"
        row = self.db.execute(f"{found} WHERE {has_terms} AND {_IN_BOX}", values).fetchone()
        return boolean_answer(row[0], row[1] or ())

    def find_nearest(self, asked: PeerQuery, values: dict[str, object]) -> Answer:
        values |= {"lon": asked.lon, "lat": asked.lat}
        having = "SELECT {} FROM by_term.postings WHERE term = $term{} AND ts > $after"
        found = f"({having.format('seq, lon, lat', 0)})"
        for other in range(1, len(asked.terms)):
            found += f" JOIN ({having.format('seq', other)}) AS has{other} USING (seq)"
        ranked = f"SELECT seq, {_AWAY} AS away FROM {found} ORDER BY away, seq LIMIT {asked.k}"
        rows = self.db.execute(ranked, values).fetchall()
        return nearest_answer(*(zip(*rows, strict=True) if rows else ((), ())))

    def close(self) -> None:
        self.db.close()
