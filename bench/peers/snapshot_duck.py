"""DuckDB as a peer: objects and postings in a file, sorted so that scans are short.

DuckDB keeps the least and the greatest value of each row group, so that sorting is the index;
row groups are as small as it allows, the default of 122,880 rows took up to twice as long.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from bench.snapshot_answers import RADIUS_M, boolean_answer, nearest_answer, trending_answer
from bench.snapshot_data import Retained
from bench.snapshot_queries import BOOLEAN, NEAREST, TRENDING, Answer, Asked, Query, read_query
from placewire.kernels.curve import points_to_curve

ROW_GROUP = 2048
THREADS = 2
DAY_US = 86_400_000_000

_LOAD = f"""
CREATE TABLE objects AS
  SELECT seq, epoch_us(ts) AS ts, lon, lat, terms FROM arrived
  ORDER BY epoch_us(ts) // {DAY_US}, place;
CREATE TABLE postings AS
  SELECT * FROM (SELECT unnest(terms) AS term, seq, epoch_us(ts) AS ts, lon, lat FROM arrived)
  ORDER BY term, ts;
CHECKPOINT;
"""
_IN_BOX = "lon BETWEEN $west AND $east AND lat BETWEEN $south AND $north AND ts > $after"
_AWAY = (
    f"round(2e3 * {RADIUS_M} * asin(sqrt(least(1.0, sin(radians(lat - $lat) / 2) ** 2"
    " + cos(radians($lat)) * cos(radians(lat)) * sin(radians(lon - $lon) / 2) ** 2)))) / 1e3"
)


class Duck:
    """A database file, and a connection to it."""

    name = "DuckDB"
    kinds = (BOOLEAN, NEAREST, TRENDING)

    def __init__(self, retained: Retained, folder: Path) -> None:
        self.now_us = retained.now_us
        folder.mkdir(parents=True)
        self.db = duckdb.connect()
        self.db.execute(f"SET threads = {THREADS}")
        self.db.execute(f"ATTACH '{folder / 'objects.db'}' AS kept (ROW_GROUP_SIZE {ROW_GROUP})")
        self.db.execute("USE kept")
        objects = retained.objects
        seqs = pa.array(np.arange(objects.num_rows, dtype=np.int32))
        places = points_to_curve(objects["lon"].to_numpy(), objects["lat"].to_numpy())
        arrived = objects.append_column("seq", seqs).append_column("place", pa.array(places))
        self.db.register("arrived", arrived)
        self.db.execute(_LOAD)
        self.db.unregister("arrived")

    def answer(self, query: Query) -> Answer:
        asked = read_query(query, self.now_us)
        values: dict[str, object] = {"after": asked.after_us}
        if asked.kind in (BOOLEAN, TRENDING):
            values |= zip(("west", "south", "east", "north"), asked.box, strict=True)
        if asked.kind == TRENDING:
            terms = f"SELECT unnest(terms) AS term FROM objects WHERE {_IN_BOX}"
            counted = f"SELECT term, count(*) AS n FROM ({terms}) GROUP BY term"
            ranked = f"{counted} ORDER BY n DESC, term LIMIT {asked.k}"
            return trending_answer(self.db.execute(ranked, values).fetchall())
        values |= {f"term{i}": term for i, term in enumerate(asked.terms)}
        table, has_terms = find_terms(asked)
        if asked.kind == BOOLEAN:
            # `max(seq, n)` is the n greatest, descending: cheaper than a sort and a window.
            found = f"SELECT count(*), max(seq, {asked.limit}) FROM {table}"
            row = self.db.execute(f"{found} WHERE {has_terms} AND {_IN_BOX}", values).fetchone()
            return boolean_answer(row[0], row[1] or ())
        values |= {"lon": asked.lon, "lat": asked.lat}
        found = f"SELECT seq, {_AWAY} AS away FROM {table} WHERE {has_terms} AND ts > $after"
        rows = self.db.execute(f"{found} ORDER BY away, seq LIMIT {asked.k}", values).fetchall()
        return nearest_answer(*(zip(*rows, strict=True) if rows else ((), ())))

    def close(self) -> None:
        self.db.close()


def find_terms(asked: Asked) -> tuple[str, str]:
    """Where to look for all terms, and the condition on them."""
    if len(asked.terms) == 1:
        return "postings", "term = $term0"
    return "objects", " AND ".join(
        f"list_contains(terms, $term{i})" for i in range(len(asked.terms))
    )
