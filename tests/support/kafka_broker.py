"""A Kafka broker (one node, KRaft) that tests kill and start again."""

from __future__ import annotations

import base64
import logging
import os
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_jars import find_jars
from placewire.spark.session import find_java
from ports import free_ports
from waits import WAIT_S, until

# Events of tests are of a day long ago: nothing is too old to be kept.
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
auto.create.topics.enable=false
log.retention.ms=-1
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
"""
JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LOGGING = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
# Kills the broker when its input ends: also when the tests die before they can.
GUARD = '"$@" & read line; kill -9 $!; wait $!'
QUIET = logging.getLogger("kafka-of-tests")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Broker:
    """A broker with its data in a folder, always on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, controller = free_ports(2)
        self.servers = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.java = str(find_java().home / "bin" / "java")
        self.classpath = os.pathsep.join(map(str, find_jars("broker")))
        self.properties = folder / "server.properties"
        self.properties.write_text(
            PROPERTIES.format(folder=folder, port=self.port, controller=controller)
        )
        cluster = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c"),
            check=True,
            capture_output=True,
        )

    def _java(self, main: str, *arguments: str) -> list[str]:
        command = [self.java, *JVM, LOGGING, "-cp", self.classpath, main]
        return [*command, *arguments, str(self.properties)]

    def start(self) -> None:
        """Start it and wait until it answers."""
        with open(self.folder / "broker.log", "ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", GUARD, "sh", *self._java("kafka.Kafka")],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        until(self._listens, "the broker listens")
        self.admin = AdminClient({"bootstrap.servers": self.servers}, logger=QUIET)
        until(self._answers, "the broker answers")

    def _listens(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            output = (self.folder / "broker.log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the broker does not start: {output}")
        with socket.socket() as probe:
            probe.settimeout(10)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _answers(self) -> bool:
        try:
            self.admin.list_topics(timeout=10)
        except KafkaException:
            return False
        return True

    def kill(self) -> None:
        """Kill it without a shutdown, as `kill -9`."""
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait()
            self.process = None

    def create(self, topic: str, partitions: int = 1) -> None:
        made = self.admin.create_topics([NewTopic(topic, partitions, 1)])
        made[topic].result(WAIT_S)

    def produce(self, topic: str, messages: Iterable[tuple[str | None, bytes | None, int]]) -> None:
        """Publish messages (key, value, time in milliseconds) and wait for all acknowledgements."""
        settings = {"bootstrap.servers": self.servers, "linger.ms": 5, "enable.idempotence": True}
        producer = Producer(settings, logger=QUIET)
        for key, value, at in messages:
            while True:
                try:
                    producer.produce(topic, value, key, timestamp=at)
                    break
                except BufferError:
                    producer.poll(0.1)
        if producer.flush(WAIT_S):
            raise RuntimeError(f"{topic}: not all messages were acknowledged")

    def consume(self, topic: str) -> list[Message]:
        """Return all messages of a topic, partition by partition."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.servers,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
        }
        consumer = Consumer(settings, logger=QUIET)
        try:
            partitions = consumer.list_topics(topic, WAIT_S).topics[topic].partitions
            ends = {
                number: consumer.get_watermark_offsets(TopicPartition(topic, number), WAIT_S)[1]
                for number in partitions
            }
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            found: list[Message] = []
            end = time.monotonic() + WAIT_S
            while len(found) < sum(ends.values()):
                if time.monotonic() > end:
                    raise RuntimeError(f"{topic}: {len(found)} messages of {sum(ends.values())}")
                for message in consumer.consume(10_000, 0.2):
                    if message.error() is None and message.offset() < ends[message.partition()]:
                        found.append(message)
        finally:
            consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))
