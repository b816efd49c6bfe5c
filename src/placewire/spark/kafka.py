"""Read and write Kafka topics with Spark's connector.

Partitions of a topic have no order among each other; the order in a batch is recorded before it
runs. Results are delivered at least once. A message that is sent again after a failure is identical
and has the same `id` header, by which consumers can drop duplicates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from placewire.sinks.delivery import Delivered
from placewire.spark.columns import DATA_FORM, invalidate_line
from placewire.spark.session import check_package_fit, require_format

MESSAGE = "key string, value binary, id string"
MIN_TASK_MESSAGES = 20_000  # fewer are written by one task
CHUNK_ROWS = 10_000  # at a time
MILLISECOND = "interval '0.001' second"


def read_kafka(
    spark: SparkSession,
    servers: str,
    topic: str,
    *,
    starting: str | Mapping[str, Any] = "earliest",
    most_per_batch: int | None = None,
    tombstones: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read messages of a topic, or of several separated by commas, in the connector's columns.

    `starting` is `earliest`, `latest` or offsets by topic and partition; it applies to a new
    stream, others resume where they left off. With `tombstones` a message without a value ends
    the subscription with its key as id. `options` are those of the connector. Raises Unusable if
    the session lacks the connector.
    """
    require_format(spark, "kafka")
    settings = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": starting if isinstance(starting, str) else json.dumps(starting),
    }
    if most_per_batch is not None:
        settings["maxOffsetsPerTrigger"] = str(most_per_batch)
    frame = spark.readStream.format("kafka").options(**(settings | dict(options or {}))).load()
    if tombstones:
        ends = frame["value"].isNull() & frame["key"].isNotNull()
        ended = unsubscribe_line(frame["key"], frame["timestamp"])
        frame = frame.withColumn("value", F.when(ends, ended).otherwise(frame["value"]))
    return frame


def unsubscribe_line(key: Column, timestamp: Column) -> Column:
    """Write an unsubscribe event for a key, at the time of its message."""
    # Independent of the session's time zone.
    epoch = F.lit("1970-01-01").cast("timestamp_ntz")
    at = epoch + F.unix_millis(timestamp) * F.expr(MILLISECOND)
    text = F.concat(F.regexp_replace(at.cast("string"), " ", "T"), F.lit("Z"))
    event = F.struct(
        F.lit("unsubscribe").alias("type"), key.cast("string").alias("id"), text.alias("ts")
    )
    return invalidate_line(F.to_json(event, DATA_FORM).cast("binary"), [key.cast("string")])


class KafkaSink:
    """Writes each result as a message: its line as value, the subscription's id as key.

    The results of one subscription or query are in one partition, in order.
    """

    def __init__(
        self,
        session: SparkSession,
        name: str,
        servers: str,
        topic: str,
        dead: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        require_format(session, "kafka")
        self.session = session
        self.name = name
        self.dead = dead
        self.settings = {"kafka.bootstrap.servers": servers, "topic": topic} | dict(options or {})

    def write(self, delivered: Delivered) -> None:
        messages = message_table(delivered)
        if not messages.num_rows:
            return
        parts = pack_parts(messages, self.session.sparkContext.defaultParallelism)
        numbers = self.session.range(0, len(parts), 1, len(parts))
        frame = numbers.mapInArrow(partial(unpack_parts, parts), MESSAGE)
        header = F.struct(F.lit("id").alias("key"), F.col("id").cast("binary").alias("value"))
        with check_package_fit("kafka"):
            frame.select("key", "value", F.array(header).alias("headers")).write.format(
                "kafka"
            ).options(**self.settings).save()


def pack_parts(messages: pa.Table, most: int) -> list[bytes]:
    """Pack messages for at most `most` tasks, those of a key in one part, in order.

    Sorting and partitioning rows in Spark took 1.5x as long (docs/benchmarks.md, `endtoend`).
    """
    count = min(most, -(-messages.num_rows // MIN_TASK_MESSAGES))
    if count == 1:
        return [pack(messages)]
    key = messages["key"].combine_chunks().dictionary_encode(null_encoding="encode")
    part = np.asarray(key.indices) % count
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(count + 1))
    return [pack(messages.take(order[first:last])) for first, last in pairwise(ends.tolist())]


def pack(messages: pa.Table) -> bytes:
    """Pack messages as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, messages.schema) as stream:
        stream.write_table(messages, max_chunksize=CHUNK_ROWS)
    return bytes(sink.getvalue())


def unpack_parts(parts: list[bytes], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Unpack the messages of numbered parts."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for some in pa.ipc.open_stream(parts[number]):
                value = some.column("value").cast(pa.binary())
                yield some.set_column(1, pa.field("value", pa.binary()), value)


def message_table(delivered: Delivered) -> pa.Table:
    """Convert a delivery to messages: key, value and the stable id of each, in order."""
    table = delivered.table
    if delivered.dead:
        key = pa.nulls(table.num_rows, pa.string())
        id_ = pc.binary_join_element_wise(table["seq"].cast(pa.string()), "dead", ":")
    else:
        key, id_ = pc.coalesce(table["subscription"], table["query"]), table["id"]
    return pa.table({"key": key, "value": split_lines(delivered), "id": id_})


def split_lines(delivered: Delivered) -> pa.Array:
    """Split a delivery into lines without newlines; JSON contains none."""
    text = np.frombuffer(b"".join(delivered.lines()), np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    offsets = np.append(0, ends - np.arange(ends.size)).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.delete(text, ends))]
    return pa.Array.from_buffers(pa.large_binary(), ends.size, buffers)
