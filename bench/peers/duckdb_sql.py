"""DuckDB as a peer: an inverted index of subscriptions by (grid cell, term), joined in SQL.

Measured on a shared machine (20,000 posts, 1 M subscriptions): integer terms and the three shapes
of subscription in tables of their own took 1.1 to 2.8 s; string terms with list functions on each
candidate (`list_has_all`) 22 to 96 s. The whole stream is one query, the best case for a batch
engine.
"""

import tempfile
import time
from pathlib import Path

import duckdb

from bench.peers import WORD_PATTERN, PeerRun
from bench.workload import Workload, write_objects_parquet

CELL_DEG = 0.15  # of 0.05, 0.1, 0.15, 0.25 and 0.5 on posts_us; beyond 0.05 all within noise

_TERMS = f"list_distinct(regexp_extract_all(lower(text), '{WORD_PATTERN}'))"
_IN_BOX = "lon BETWEEN west AND east AND lat BETWEEN south AND north"

# `one`: a single term. `every`: AND, posted under its rarest term, the others in must1 and must2.
# `either`: OR, posted under each term, so that pairs repeat.
_PREPARE = """
CREATE TABLE frequency AS
  SELECT term, count(*) AS n FROM (SELECT unnest({terms}) AS term FROM objects) GROUP BY term;
CREATE TABLE vocabulary AS
  SELECT term, (row_number() OVER ())::INT AS term_row
  FROM (SELECT DISTINCT unnest(keywords) AS term FROM subscriptions);
CREATE TABLE subscription AS
  SELECT (row_number() OVER ())::INT AS sub_row, * FROM subscriptions;
CREATE TABLE posted AS
  SELECT sub_row, operator, list(term_row ORDER BY coalesce(n, 0), term) AS rows
  FROM (SELECT sub_row, operator, unnest(keywords) AS term FROM subscription)
  JOIN vocabulary USING (term) LEFT JOIN frequency USING (term) GROUP BY ALL;
CREATE TABLE covering AS
  SELECT sub_row, west, south, east, north, cx * 100000 + cy AS cell FROM (
    SELECT *, unnest(range(floor(south / {cell})::INT, floor(north / {cell})::INT + 1))::INT AS cy
    FROM (SELECT *, unnest(range(floor(west / {cell})::INT, floor(east / {cell})::INT + 1))::INT
          AS cx FROM subscription));
CREATE TABLE one AS
  SELECT cell, rows[1] AS term_row, west, south, east, north
  FROM posted JOIN covering USING (sub_row) WHERE len(rows) = 1 ORDER BY cell;
CREATE TABLE every AS
  SELECT cell, rows[1] AS term_row, rows[2] AS must1, rows[3] AS must2, west, south, east, north
  FROM posted JOIN covering USING (sub_row)
  WHERE len(rows) > 1 AND operator = 'AND' ORDER BY cell;
CREATE TABLE either AS
  SELECT cell, term_row, sub_row, west, south, east, north
  FROM (SELECT sub_row, unnest(rows) AS term_row FROM posted
        WHERE len(rows) > 1 AND operator = 'OR')
  JOIN covering USING (sub_row) ORDER BY cell;
"""

_MATCH = """
WITH read AS (
  SELECT file_row_number::INT AS object_row, lon, lat, {terms} AS terms,
         floor(lon / {cell})::INT * 100000 + floor(lat / {cell})::INT AS cell
  FROM read_parquet('{objects}', file_row_number = true)),
apart AS (SELECT object_row, lon, lat, cell, unnest(terms) AS term FROM read),
has AS MATERIALIZED (
  SELECT object_row, lon, lat, cell, term_row FROM apart JOIN vocabulary USING (term))
SELECT
  (SELECT count(*) FROM has JOIN one USING (cell, term_row) WHERE {in_box})
+ (SELECT count(*) FROM (SELECT object_row, must1, must2 FROM has JOIN every USING (cell, term_row)
                         WHERE {in_box}) AS found
   JOIN has AS has1 ON has1.object_row = found.object_row AND has1.term_row = must1
   WHERE must2 IS NULL OR EXISTS (SELECT 1 FROM has AS has2
     WHERE has2.object_row = found.object_row AND has2.term_row = must2))
+ (SELECT count(*) FROM (SELECT DISTINCT (object_row::BIGINT << 32) | sub_row
                         FROM has JOIN either USING (cell, term_row) WHERE {in_box}))
"""


def run(
    workload: Workload, *, cell_deg: float = CELL_DEG, threads: int = 2, repeats: int = 3
) -> PeerRun:
    """Count all matches; the clock covers reading Parquet to the count, the best of the repeats.

    At most three keywords a subscription, as the workload has them.
    """
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as db:
        objects = Path(folder) / "objects.parquet"
        write_objects_parquet(workload, objects)
        db.execute(f"SET threads = {threads}")
        db.register("objects", workload.objects)
        db.register("subscriptions", workload.subscriptions)
        start = time.perf_counter()
        db.execute(_PREPARE.format(terms=_TERMS, cell=cell_deg))
        prepare_seconds = time.perf_counter() - start

        match = _MATCH.format(terms=_TERMS, cell=cell_deg, objects=objects, in_box=_IN_BOX)
        seconds, matches = float("inf"), 0
        for _ in range(repeats):
            start = time.perf_counter()
            [(matches,)] = db.execute(match).fetchall()
            seconds = min(seconds, time.perf_counter() - start)
    return PeerRun(matches, seconds, prepare_seconds, workload.objects.num_rows / seconds)
