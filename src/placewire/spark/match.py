"""Match a table of objects with a table of subscriptions in one Spark job.

Times are ignored: every subscription is matched with every object. Use it to see what a
subscription would have matched.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from placewire.batch.coordinator import Coordinator
from placewire.ingest.columns import decode_columns
from placewire.ingest.decode import DecodedBlock
from placewire.ingest.sources import MOST_ROWS, identify_stream, next_blocks
from placewire.kernels.jit import read_only
from placewire.kernels.text.hash_table import numbers_to_groups
from placewire.kinds.candidates import Matches, ObjectBlock, Target
from placewire.model.errors import Unusable
from placewire.model.kinds import all_kinds, kind_numbered
from placewire.model.settings import Settings, check_settings, complete_settings
from placewire.model.subscriptions import SubscriptionRows
from placewire.segments.segment import Segment, open_segments
from placewire.sinks.outbox import dead_letters
from placewire.spark.columns import (
    ANY_TIME,
    AXES,
    OBJECT_NAMES,
    OWN_PREFIX,
    check_frames,
    find_columns,
    quote_column,
    select_changes,
    select_objects,
    type_of,
)
from placewire.spark.intake import object_columns, write_blocks
from placewire.spark.parquet_files import FileTable, find_files, number_portions, read_portions
from placewire.spark.stages import run_on_spark
from placewire.storage.intake import Intake, IntakeBatch
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Manifest, SegmentEntry
from placewire.text.analyzer import Analyzer, open_analyzer

BATCH_SUBSCRIPTIONS = 1_000_000
CARRIED = OWN_PREFIX  # prefix of the columns of objects to keep
IDS = ("subscription", "object")  # what every match has
# Per Arrow batch: enough to amortize its cost, few enough to stay in the CPU caches.
CHUNK_MATCHES = 1 << 18
MAX_BYTES = (1 << 31) - 1  # of a column with 32-bit offsets


class MatchContext(NamedTuple):
    """What a task needs to match objects; it is pickled."""

    root: str
    key: tuple[int, int]
    settings: Settings
    segments: tuple[SegmentEntry, ...]
    kept: int  # columns of objects in the result


def match(
    objects: DataFrame,
    subscriptions: DataFrame,
    *,
    keep: Sequence[str] = (),
    settings: Settings | dict[str, Any] | None = None,
    object_columns: Mapping[str, str] | None = None,
    subscription_columns: Mapping[str, str] | None = None,
    state: Path | str | None = None,
) -> DataFrame:
    """Match a table of objects with a table of `boolean` subscriptions.

    Returns a DataFrame of `subscription` and `object`, both ids, and the columns of objects in
    `keep`. Subscriptions are indexed at once, in `state` or a temporary folder (on a cluster, set
    `state` to one that all machines can read); objects are matched when the result is computed. Of
    subscriptions with the same id the last one counts. Invalid objects match nothing;
    `refused_objects` returns them with the reason.
    """
    check_frames(objects=objects, subscriptions=subscriptions)
    spark = objects.sparkSession
    if objects.isStreaming or subscriptions.isStreaming:
        raise Unusable("match: takes tables; for streaming DataFrames there is Stream")
    check_kept(objects, keep)
    settings = complete_settings(check_settings(settings))
    index = StateDir.given(state if state is not None else make_temporary_folder())
    changes = select_changes(subscriptions, subscription_columns, timeless=True)
    manifest = index_subscriptions(spark, changes, index, settings)
    frame = select_timeless(objects, object_columns, keep)
    context = MatchContext(index.name, manifest.key, settings, tuple(manifest.segments), len(keep))
    kept = {f"kept{number}": name for number, name in enumerate(keep)}
    schema = T.StructType(
        [
            T.StructField("subscriptions", T.ArrayType(T.StringType())),
            T.StructField("object", T.StringType()),
            *(T.StructField(to, objects.schema[name].dataType) for to, name in kept.items()),
        ]
    )
    files = find_files(frame)
    if files is None:
        found = frame.mapInArrow(partial(match_partition, context), schema)
    else:
        found = number_portions(spark, files).mapInArrow(
            partial(match_portions, context, files), schema
        )
    # Python returns each object once with a list of its subscriptions; the JVM explodes it.
    return found.select(
        F.explode("subscriptions").alias("subscription"),
        "object",
        *(F.col(to).alias(name) for to, name in kept.items()),
    )


def check_kept(objects: DataFrame, keep: Sequence[str]) -> None:
    """Reject columns to keep that are missing or clash with those of a match; raises Unusable."""
    for name in keep:
        if name not in objects.columns:
            raise Unusable(
                f"keep: column {name!r} does not exist, got {', '.join(objects.columns)}"
            )
        if name.lower() in IDS:
            raise Unusable(f"keep: {name!r} is a column of every match; rename that of the objects")
        if list(keep).count(name) > 1:
            raise Unusable(f"keep: column {name!r} is given twice")


def refused_objects(
    objects: DataFrame, *, object_columns: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the `id` and `error` of invalid objects."""
    frame = select_timeless(objects, object_columns, ())
    return frame.mapInArrow(refuse_partition, "id string, error string")


def select_timeless(
    objects: DataFrame, given: Mapping[str, str] | None, keep: Sequence[str]
) -> DataFrame:
    """Select objects into the intake schema without times, and the columns to keep.

    Columns that are constant or null are left out.
    """
    found = {name: column for name, column in (given or {}).items() if name != "ts"}
    kept = {f"{CARRIED}{number}": objects[quote_column(name)] for number, name in enumerate(keep)}
    whole = objects.withColumns(kept | {CARRIED: F.lit(ANY_TIME)})
    frame = select_objects(whole, {**found, "ts": CARRIED}, carry=list(kept))
    there = find_columns(whole, OBJECT_NAMES, found, "objects")
    place = ["wkb"] if "point" in there else ["lon", "lat"]
    for axis in () if "point" in there else AXES:
        if not isinstance(type_of(whole, there[axis]), T.NumericType):
            place.append(f"{axis}_text")  # for values that are not numbers
    data = ["data", "data_text"] if "data" in there else []
    return frame.select("id", *place, "text", *data, *kept)


def index_subscriptions(
    spark: SparkSession, changes: DataFrame, state: StateDir, settings: Settings
) -> Manifest:
    """Index subscriptions as a stream does; raises Unusable if one is invalid or not exact."""
    coordinator = Coordinator(state, settings, identify_stream, "shared")
    try:
        if coordinator.latest.batch >= 0:
            raise Unusable(f"state {state}: must be new, got one with committed batches")
        intake = Intake(state)
        intake.make()
        recorded = IntakeBatch(0, write_blocks(changes, state.name, MOST_ROWS))
        workers = spark.sparkContext.defaultParallelism
        while True:
            start = coordinator.latest.offset
            refs, end = next_blocks(recorded, start, BATCH_SUBSCRIPTIONS)
            if not refs:
                break
            run = partial(run_on_spark, spark, refs, workers)
            manifest = coordinator.step(coordinator.latest.batch + 1, end, run)
            if manifest.counters.dead_letters:
                letter = dead_letters(state, manifest)[0]
                raise Unusable(f"subscriptions: {letter['error']}, in {letter['event'][:200]}")
        for entry in coordinator.latest.segments:
            kind = kind_numbered(entry.kind)
            if not kind.exact:
                exact = " or ".join(each.name for each in all_kinds() if each.exact)
                raise Unusable(f"match: takes {exact} subscriptions, got {kind.name}")
        return coordinator.latest
    finally:
        coordinator.close()


def match_portions(
    context: MatchContext, files: FileTable, numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read objects from Parquet files and match them."""
    return match_partition(context, read_portions(files, numbers))


def match_partition(
    context: MatchContext, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Match the objects of a partition, block by block."""
    state = StateDir.at(context.root)
    analyzer = open_analyzer(context.settings, context.key)
    by_kind: dict[int, list[tuple[Segment, NDArray[np.uint64], pa.Array]]] = {}
    for segment, dead in open_segments(state, context.segments):
        by_kind.setdefault(segment.kind, []).append((segment, dead, id_strings(segment.rows)))
    for table in gather_rows(batches):
        block = decode_block(table, analyzer)
        o = block.objects
        objects = ObjectBlock(block.codes, o.lon, o.lat, o.now_us, o.term_offsets, o.terms)
        carried = table.select(
            ["id", *(f"{CARRIED}{n}" for n in range(context.kept))]
        ).combine_chunks()
        for number, group in by_kind.items():
            targets = [Target(segment, dead) for segment, dead, _ in group]
            matches = kind_numbered(number).match(objects, targets, scan=False)
            for (_, _, ids), found in zip(group, matches, strict=True):
                yield from write_lists(found, o.event, ids, carried)


def write_lists(
    found: Matches, event: NDArray[np.uint32], ids: pa.Array, carried: pa.Table
) -> Iterator[pa.RecordBatch]:
    """Write matches as rows of an object and a list of its subscriptions."""
    offsets, order = numbers_to_groups(read_only(found.object), event.size)
    rows = found.row[order]
    matched = np.flatnonzero(np.diff(offsets))
    starts = offsets[matched]
    for first in range(0, rows.size, CHUNK_MATCHES):
        last = min(first + CHUNK_MATCHES, rows.size)
        here = slice(
            np.searchsorted(starts, first, "right") - 1, np.searchsorted(starts, last, "left")
        )
        cuts = np.append(np.maximum(starts[here], first), last) - first
        taken = ids.take(pa.array(rows[first:last])).cast(pa.string())
        lists = pa.ListArray.from_arrays(pa.array(cuts.astype(np.int32)), taken)
        columns = carried.take(pa.array(event[matched[here]])).combine_chunks().columns
        yield pa.RecordBatch.from_arrays(
            [lists, *(column.chunk(0) for column in columns)],
            names=["subscriptions", "object", *(f"kept{n}" for n in range(len(columns) - 1))],
        )


def id_strings(rows: SubscriptionRows) -> pa.Array:
    """Wrap the ids of a segment's file as an Arrow array, without copying."""
    small = rows.id_bytes.size <= MAX_BYTES
    kind, offsets = (pa.StringArray, np.int32) if small else (pa.LargeStringArray, np.int64)
    places = pa.py_buffer(rows.id_offsets.astype(offsets))
    return kind.from_buffers(rows.total, places, pa.py_buffer(rows.id_bytes))


def refuse_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the invalid objects of a partition."""
    analyzer = Analyzer(0, 0)
    for table in gather_rows(batches):
        dead = decode_block(table, analyzer).dead
        if dead:
            ids = table["id"].take([letter.event for letter in dead]).combine_chunks()
            errors = pa.array([letter.error for letter in dead], pa.string())
            yield pa.RecordBatch.from_arrays([ids, errors], names=["id", "error"])


def decode_block(table: pa.Table, analyzer: Analyzer) -> DecodedBlock:
    """Decode objects of the intake schema, all with the same time."""
    size = table.num_rows
    columns = {"ts_us": pa.repeat(pa.scalar(0, pa.int64()), size)}
    for name in ("lon", "lat", "lon_text", "lat_text", "wkb", "data", "data_text"):
        columns[name] = table[name] if name in table.column_names else pa.nulls(size)
    columns |= {"id": table["id"], "text": table["text"]}
    return decode_columns(object_columns(pa.table(columns)), analyzer, None, 0)


def gather_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Gather rows into tables of a block's size; small blocks cost more per object."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
        if count >= MOST_ROWS:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)


def make_temporary_folder() -> Path:
    """Make a folder that is deleted when this process exits."""
    folder = Path(tempfile.mkdtemp(prefix="placewire-match-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "state"
