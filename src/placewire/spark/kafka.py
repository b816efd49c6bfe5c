"""Kafka in and out, by Spark's connector.

Topics have no order among their partitions: the one that a batch gets is recorded before it runs.
Results are delivered at least once. A message that comes again, because a run or a broker died, is
the same to the byte and has the same `id` in its header, so whoever reads drops ids that were seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from placewire.engine.delivery import Delivered
from placewire.spark.columns import DATA_FORM
from placewire.spark.packages import fitting, require_format

ALONE = 20_000  # messages that one task writes as soon as several would
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
    """The messages of a topic, or of several by commas: `key`, `value`, `timestamp` and so on.

    `starting` is `earliest`, `latest` or offsets by topic and partition; it counts when a stream
    begins, later it goes on where it was. With `tombstones` a message without a value ends the
    subscription that its key names. `options` are those of the connector; raises Unusable if the
    session lacks it.
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
    """The end of the subscription that a key names, at the time of its message."""
    epoch = F.lit("1970-01-01").cast("timestamp_ntz")
    at = epoch + F.unix_millis(timestamp) * F.expr(MILLISECOND)  # the session's zone has no say
    text = F.concat(F.regexp_replace(at.cast("string"), " ", "T"), F.lit("Z"))
    event = F.struct(
        F.lit("unsubscribe").alias("type"), key.cast("string").alias("id"), text.alias("ts")
    )
    return F.to_json(event, DATA_FORM).cast("binary")


class KafkaSink:
    """Writes each result as a message: the line that it is, under the subscription's id as key.

    What one subscription gets, or one query, stands in one partition, in order.
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
        frame = self.session.createDataFrame(messages)
        if messages.num_rows <= ALONE:
            frame = frame.coalesce(1)
        else:
            parts = self.session.sparkContext.defaultParallelism
            frame = frame.repartition(parts, "key").sortWithinPartitions("number")
        header = F.struct(F.lit("id").alias("key"), F.col("id").cast("binary").alias("value"))
        with fitting("kafka"):
            frame.select("key", "value", F.array(header).alias("headers")).write.format(
                "kafka"
            ).options(**self.settings).save()


def message_table(delivered: Delivered) -> pa.Table:
    """What is delivered as messages: number, key, value and the stable id of each."""
    table = delivered.table
    if delivered.dead:
        key = pa.nulls(table.num_rows, pa.string())
        id_ = pc.binary_join_element_wise(table["seq"].cast(pa.string()), "dead", ":")
    else:
        key, id_ = pc.coalesce(table["subscription"], table["query"]), table["id"]
    number = pa.array(np.arange(table.num_rows))
    return pa.table({"number": number, "key": key, "value": split_lines(delivered), "id": id_})


def split_lines(delivered: Delivered) -> pa.Array:
    """The lines one by one, without their ends; JSON has no newline inside."""
    text = np.frombuffer(b"".join(delivered.lines()), np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    offsets = np.append(0, ends - np.arange(ends.size)).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.delete(text, ends))]
    return pa.Array.from_buffers(pa.large_binary(), ends.size, buffers)
