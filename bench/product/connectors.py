"""Sources and sinks of the end-to-end experiment: Kafka topics, or folders of Parquet."""

from __future__ import annotations

import json
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from bench.workload import Workload, object_lines, subscribe_events
from placewire.model.errors import Unusable

TESTS = Path(__file__).parents[2] / "tests" / "support"  # the broker is theirs
TS = "2026-01-01T00:00:00Z"
SCHEMA = "id string, ts timestamp, lon double, lat double, text string"
OBJECT_ID = re.compile(rb'"(?:object|id)":"o(\d+)"')


class Connector(ABC):
    """A source of objects, one of subscriptions and a sink; `batch` objects are taken at once."""

    def __init__(self, session: SparkSession, folder: Path, batch: int) -> None:
        folder.mkdir()
        self.session, self.folder, self.batch = session, folder, batch

    @abstractmethod
    def config(self) -> str:
        """What `placewire run` gets."""

    @abstractmethod
    def publish(self, objects: pa.Table) -> None:
        """Some more objects, in one go."""

    @abstractmethod
    def publish_subscriptions(self, workload: Workload) -> None:
        """All subscriptions."""

    @abstractmethod
    def copy(self, available: bool, times: int = 1) -> StreamingQuery:
        """A query that passes objects on, so many times each, until all is done or for ever."""

    @abstractmethod
    def watch(self) -> Callable[[], np.ndarray]:
        """Gives a look at the sink: rows of the objects in what has come out since the last."""

    def started(self, writer: Any, available: bool) -> StreamingQuery:
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        return (writer.trigger(availableNow=True) if available else writer).start()


def repeated(frame: DataFrame, times: int) -> DataFrame:
    """Every row so many times."""
    if times == 1:
        return frame
    every = F.explode(F.sequence(F.lit(1), F.lit(times))).alias("time")
    return frame.select("*", every).drop("time")


def subscribe_lines(workload: Workload) -> Iterator[tuple[str, bytes]]:
    """Ids and lines of the subscriptions."""
    for batch in workload.subscriptions.to_batches(max_chunksize=50_000):
        for event in subscribe_events(batch, TS):
            yield str(event["id"]), msgspec.json.encode(event)


class Folders(Connector):
    """Files of Parquet: of a backlog one a batch, of a steady stream all that are there."""

    def __init__(self, session: SparkSession, folder: Path, batch: int) -> None:
        super().__init__(session, folder, batch)
        self.files = 0
        self.at_once = 1
        for name in ("objects", "subscriptions", "hidden"):
            (folder / name).mkdir()

    def config(self) -> str:
        return f"""state = "state"
workers = 2
[[source]]
takes = "subscriptions"
format = "jsonl"
path = "subscriptions"
[[source]]
takes = "objects"
format = "parquet"
path = "objects"
schema = "{SCHEMA}"
options = {{ maxFilesPerTrigger = "{self.at_once}" }}
[[sink]]
name = "results"
format = "parquet"
path = "out"
"""

    def publish(self, objects: pa.Table) -> None:
        name = f"{self.files:06}.parquet"
        self.files += 1
        pq.write_table(objects, self.folder / "hidden" / name)
        (self.folder / "hidden" / name).rename(self.folder / "objects" / name)

    def publish_subscriptions(self, workload: Workload) -> None:
        path = self.folder / "subscriptions" / "all.jsonl"
        path.write_bytes(b"".join(line + b"\n" for _, line in subscribe_lines(workload)))

    def copy(self, available: bool, times: int = 1) -> StreamingQuery:
        reader = self.session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", self.at_once)
        frame = reader.parquet(str(self.folder / "objects"))
        frame = repeated(frame, times)
        writer = frame.writeStream.format("parquet").option("path", str(self.folder / "out"))
        return self.started(writer, available)

    def watch(self) -> Callable[[], np.ndarray]:
        self.at_once = 1_000
        seen = set(self._files())

        def look() -> np.ndarray:
            new = [path for path in self._files() if path not in seen]
            seen.update(new)
            if not new:
                time.sleep(0.005)
            rows = [object_rows(pq.read_table(path)) for path in new]
            return np.concatenate([np.empty(0, np.int64), *rows])

        return look

    def _files(self) -> list[Path]:
        """Files that are whole: of Spark's those that a commit names."""
        out = self.folder / "out"
        commits = out / "_spark_metadata"
        if not commits.exists():
            return sorted(out.glob("*.parquet"))
        found = []
        for commit in commits.iterdir():
            if commit.name.split(".")[0].isdigit():
                lines = commit.read_text().splitlines()[1:]
                found += [out / Path(json.loads(line)["path"]).name for line in lines]
        return found


def object_rows(table: pa.Table) -> np.ndarray:
    """Rows of the workload, of objects or of results."""
    ids = table["object" if "object" in table.column_names else "id"]
    return pc.utf8_slice_codeunits(ids, 1).cast(pa.int64()).to_numpy()


class Topics(Connector):
    """Topics of a broker, objects and results with two partitions each."""

    def __init__(
        self, session: SparkSession, folder: Path, batch: int, broker: Any, way: str
    ) -> None:
        super().__init__(session, folder, batch)
        self.broker, self.way = broker, way
        for name, partitions in (("objects", 2), ("subscriptions", 1), ("out", 2)):
            broker.create(self.topic(name), partitions)

    def topic(self, name: str) -> str:
        return f"{self.way}-{name}"

    def config(self) -> str:
        place = f'format = "kafka"\nservers = "{self.broker.servers}"\n'
        text = 'state = "state"\nworkers = 2\n'
        for takes in ("subscriptions", "objects"):
            text += f'[[source]]\ntakes = "{takes}"\ntopic = "{self.topic(takes)}"\n{place}'
            text += f"rows = {self.batch if takes == 'objects' else 200_000}\n"
        return text + f'[[sink]]\nname = "results"\ntopic = "{self.topic("out")}"\n{place}'

    def publish(self, objects: pa.Table) -> None:
        lines = b"".join(object_lines(Workload(objects, objects))).splitlines()
        ids = objects["id"].to_pylist()
        now = int(time.time() * 1000)
        self.broker.produce(
            self.topic("objects"), [(i, line, now) for i, line in zip(ids, lines, strict=True)]
        )

    def publish_subscriptions(self, workload: Workload) -> None:
        messages = ((i, line, 1_767_225_600_000) for i, line in subscribe_lines(workload))
        self.broker.produce(self.topic("subscriptions"), messages)

    def copy(self, available: bool, times: int = 1) -> StreamingQuery:
        reader = self.session.readStream.format("kafka")
        frame = (
            reader.option("kafka.bootstrap.servers", self.broker.servers)
            .option("subscribe", self.topic("objects"))
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self.batch)
            .load()
        )
        writer = repeated(frame.select("key", "value"), times).writeStream.format("kafka")
        writer = writer.option("kafka.bootstrap.servers", self.broker.servers)
        return self.started(writer.option("topic", self.topic("out")), available)

    def watch(self) -> Callable[[], np.ndarray]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.servers,
                "group.id": self.way,
                "enable.auto.commit": False,
            }
        )
        places = [TopicPartition(self.topic("out"), number) for number in range(2)]
        for place in places:
            place.offset = consumer.get_watermark_offsets(place, 60)[1]
        consumer.assign(places)

        def look() -> np.ndarray:
            messages = consumer.consume(10_000, 0.01)
            values = [one.value() for one in messages if one.error() is None]
            found = (OBJECT_ID.search(value) for value in values)
            return np.array([int(one.group(1)) for one in found if one is not None], np.int64)

        return look


def connector() -> dict[str, str]:
    """Settings of Spark's that bring Kafka's connector."""
    from kafka_jars import find_jars

    return {"spark.jars": ",".join(map(str, find_jars("connector")))}


@contextmanager
def open_broker(folder: Path) -> Iterator[Any]:
    """A broker of this machine, with its data in a folder."""
    sys.path.insert(0, str(TESTS))
    from kafka_jars import find_jars

    if not find_jars("broker"):
        raise Unusable("its jars are not there: make kafka")
    try:
        from kafka_broker import Broker
    except ImportError:
        raise Unusable("needs the package confluent-kafka") from None
    (folder / "broker").mkdir()
    broker = Broker(folder / "broker")
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
