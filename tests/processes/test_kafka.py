"""Kafka for real: topics in and out of a broker, with the job and the broker killed between."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from kafka_jars import find_jars
from logs import BUILT_KINDS
from oracle import Outcome, replay
from peers import need_peers
from placewire import Stream
from placewire.demo import CityLife, write_log
from placewire.model.times import parse_timestamp
from placewire.sinks.files import FolderSink
from placewire.spark.config import read_config
from placewire.spark.kafka import KafkaSink, read_kafka
from placewire.spark.runner import Run
from placewire.storage.intake import Intake, IntakeBatch
from waits import until

if not find_jars("broker"):
    pytest.skip("Kafka's jars are not there: make kafka", allow_module_level=True)
need_peers("confluent_kafka")

from kafka_broker import Broker

pytestmark = pytest.mark.kafka
SECONDS = 180.0
NUMBERS = count()
# A run that is killed when results are in the topic and that is not written down yet.
KILLED = """
import os, signal, sys
from placewire.cli.main import main
from placewire.spark.kafka import KafkaSink
from placewire.storage.intake import Intake

write = KafkaSink.write


def write_and_die(self, delivered):
    write(self, delivered)
    if delivered.batch >= 2:
        os.kill(os.getpid(), signal.SIGKILL)


KafkaSink.write = write_and_die
Intake.tidy = lambda self: None
sys.argv = ["placewire", "run", *sys.argv[1:]]
main()
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    started = Broker(tmp_path_factory.mktemp("broker"))
    try:
        started.start()
        yield started
    finally:
        started.kill()


@pytest.fixture(autouse=True)
def intake_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was recorded is kept, so that it can be read back."""
    monkeypatch.setattr(Intake, "tidy", lambda _: None)


def new_topic(broker: Broker, partitions: int) -> str:
    topic = f"topic{next(NUMBERS)}"
    broker.create(topic, partitions)
    return topic


def city_lines(folder: Path, **life: Any) -> list[bytes]:
    log = folder / "city.jsonl"
    write_log(CityLife(**life), str(log))
    return log.read_bytes().splitlines()


def as_messages(lines: list[bytes]) -> list[tuple[str | None, bytes | None, int]]:
    """Events by their ids, at their times."""
    events = [json.loads(line) for line in lines]
    return [
        (event["id"], line, parse_timestamp(event["ts"]) // 1000)
        for line, event in zip(lines, events, strict=True)
    ]


def recorded_log(state: Path) -> bytes:
    """The order that the intake has recorded, as the log that it is."""
    folder = state / "intake"
    numbers = sorted(int(path.stem) for path in folder.glob("*.json"))
    batches = [
        msgspec.json.decode((folder / f"{number}.json").read_bytes(), type=IntakeBatch)
        for number in numbers
    ]
    return b"".join((folder / block.file).read_bytes() for one in batches for block in one.blocks)


def expected(log: bytes) -> Outcome:
    return replay(log, kinds=BUILT_KINDS)


def header_of(message: Any) -> str:
    [(name, value)] = message.headers()
    assert name == "id"
    return str(value.decode())


def check_messages(messages: list[Any], results: list[dict[str, Any]]) -> Counter[str]:
    """All results are there, those of a key in order; gives how often each id is."""
    found: dict[str, bytes] = {}
    last: dict[bytes, tuple[int, str]] = {}
    times: Counter[str] = Counter()
    for message in messages:
        id_, value = header_of(message), message.value()
        times[id_] += 1
        assert found.setdefault(id_, value) == value
        result = json.loads(value)
        name = result.get("subscription", result.get("query"))
        assert message.key().decode() == name
        assert id_.startswith(f"{result['seq']}:{result['type']}:{name}")
        if times[id_] == 1:
            place = (result["seq"], result.get("at", ""))
            assert last.get(message.key(), (-1, "")) < place
            last[message.key()] = place
    assert len(found) == len(results)

    def shown(result: dict[str, Any]) -> str:
        return json.dumps(result, sort_keys=True)

    assert sorted(shown(json.loads(value)) for value in found.values()) == sorted(
        map(shown, results)
    )
    return times


def write_config(folder: Path, broker: Broker, topics: dict[str, str], **more: Any) -> Path:
    """A configuration with a source or a sink for each topic."""
    place = f'format = "kafka"\nservers = "{broker.servers}"\n'
    text = f'state = "{folder}/state"\n' + "".join(
        f"{k} = {json.dumps(v)}\n" for k, v in more.items()
    )
    for takes, topic in topics.items():
        if takes in ("results", "dead"):
            text += f'[[sink]]\nname = "{takes}"\ntakes = "{takes}"\n'
        else:
            text += f'[[source]]\ntakes = "{takes}"\nrows = 150\n'
        text += f'topic = "{topic}"\n{place}'
    jars = ",".join(map(str, find_jars("connector")))
    text += f'[spark]\n"spark.jars" = "{jars}"\n'
    path = folder / "run.toml"
    path.write_text(text)
    return path


def no_failures(what: str, facts: dict[str, Any]) -> None:
    assert what != "failed", facts


def test_events_of_one_partition_are_a_log(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    lines = city_lines(tmp_path, objects=900, subscriptions=200, queries=12, seed=5)
    source, results = new_topic(broker, 1), new_topic(broker, 1)
    broker.produce(source, as_messages(lines))
    stream = Stream(spark, state=tmp_path / "state", workers=2)
    query = stream.start(
        events=read_kafka(spark, broker.servers, source, most_per_batch=600),
        to=[
            KafkaSink(spark, "kafka", broker.servers, results),
            FolderSink("files", tmp_path / "files", "jsonl"),
        ],
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    assert recorded_log(tmp_path / "state").splitlines() == lines
    messages = broker.consume(results)
    outcome = expected(b"\n".join(lines) + b"\n")
    assert [json.loads(message.value()) for message in messages] == outcome.results
    files = sorted((tmp_path / "files").glob("*.jsonl"))
    assert b"".join(message.value() + b"\n" for message in messages) == b"".join(
        path.read_bytes() for path in files
    )
    times = check_messages(messages, outcome.results)
    assert set(times.values()) == {1}
    assert len({json.loads(message.value())["type"] for message in messages}) == 4


def test_topics_with_partitions_and_tombstones(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placewire.spark.kafka.MIN_TASK_MESSAGES", 5)  # so that several tasks write
    lines = city_lines(tmp_path, objects=500, subscriptions=150, queries=12, bad=20, seed=6)
    topics = {
        "subscriptions": new_topic(broker, 3),
        "events": new_topic(broker, 1),
        "objects": new_topic(broker, 3),
        "results": new_topic(broker, 3),
        "dead": new_topic(broker, 1),
    }
    published: dict[str, list[tuple[str | None, bytes | None, int]]] = {}
    ended = 0
    for number, line in enumerate(lines):
        kind, id_, at = "events", None, 0
        try:
            event = json.loads(line)
            at = parse_timestamp(event["ts"]) // 1000
            id_ = str(event["id"])
            kind = event["type"]
        except Exception:
            published.setdefault("events", []).append((None, line, at))
            continue
        takes = {"object": "objects", "subscribe": "subscriptions"}.get(kind, "events")
        value: bytes | None = line
        if kind == "unsubscribe":
            takes, value, ended = "subscriptions", None, ended + 1
        published.setdefault(takes, []).append((id_, value, at))
        if takes == "subscriptions" and number % 7 == 0:
            published[takes].append((id_, None, at + 250))
            ended += 1
    published["subscriptions"].append((None, None, 1))
    for takes, messages in published.items():
        broker.produce(topics[takes], messages)
    config = read_config(write_config(tmp_path, broker, topics, workers=2))
    lags: list[dict[str, Any]] = []

    def tell(what: str, facts: dict[str, Any]) -> None:
        no_failures(what, facts)
        if what == "lag":
            lags.append({source["source"]: source for source in facts["sources"]})

    monkeypatch.setattr("placewire.spark.runner.LAG_INTERVAL_S", 0.0)
    Run(spark, config, tell).go(available=True)
    waiting = [lag[f"kafka {topics['objects']}"] for lag in lags]
    assert 0 < waiting[0]["messages"] < len(published["objects"])
    assert waiting[0]["messages"] == sum(waiting[0]["partitions"].values())
    assert waiting[-1]["partitions"] == {f"{topics['objects']}-{part}": 0 for part in range(3)}
    log = recorded_log(tmp_path / "state")
    assert log.count(b"\n") == sum(map(len, published.values()))
    assert log.count(b'{"type":"unsubscribe",') == ended > 10
    outcome = expected(log)
    assert len(outcome.results) > 50
    times = check_messages(broker.consume(topics["results"]), outcome.results)
    assert set(times.values()) == {1}
    assert outcome.dead
    letters = broker.consume(topics["dead"])
    assert [header_of(letter) for letter in letters] == [
        f"{one['seq']}:dead" for one in outcome.dead
    ]
    assert [json.loads(letter.value())["seq"] for letter in letters] == [
        one["seq"] for one in outcome.dead
    ]


def test_a_killed_job_goes_on(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """It dies with a batch in the topic and not noted: that one comes twice, the same."""
    lines = city_lines(tmp_path, objects=500, subscriptions=120, queries=12, seed=7)
    topics = {"events": new_topic(broker, 2), "results": new_topic(broker, 2)}
    broker.produce(topics["events"], as_messages(lines))
    path = write_config(tmp_path, broker, topics, workers=2, master="local[2]")
    with open(tmp_path / "said", "wb") as said:
        # Into a file, and not waiting for it to be closed: Java may outlive who started it.
        process = subprocess.run(
            [sys.executable, "-c", KILLED, "--config", str(path), "--once"],
            stdout=said,
            stderr=said,
            check=False,
            timeout=SECONDS,
        )
    assert process.returncode == -signal.SIGKILL, (tmp_path / "said").read_text()
    before = broker.consume(topics["results"])
    assert before
    Run(spark, read_config(path), no_failures).go(available=True)
    outcome = expected(recorded_log(tmp_path / "state"))
    messages = broker.consume(topics["results"])
    times = check_messages(messages, outcome.results)
    assert set(times.values()) == {1, 2}
    assert len(before) < len(messages)
    twice = {id_ for id_, often in times.items() if often == 2}
    assert twice <= {header_of(message) for message in before}


def test_a_killed_broker_comes_back(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    lines = city_lines(tmp_path, objects=700, subscriptions=150, queries=12, seed=8)
    half = len(lines) // 2
    topics = {"events": new_topic(broker, 1), "results": new_topic(broker, 2)}
    broker.produce(topics["events"], as_messages(lines[:half]))
    told: list[tuple[str, dict[str, Any]]] = []
    config = read_config(write_config(tmp_path, broker, topics, workers=2))
    run = Run(spark, config, lambda what, facts: told.append((what, facts)))
    worker = threading.Thread(target=run.go)
    worker.start()

    def events_done() -> int:
        return max((facts["events"] for what, facts in told if what == "batch"), default=0)

    try:
        wait_until(lambda: events_done() >= 150, worker)
        assert events_done() < half
        broker.kill()
        broker.start()  # takes seconds
        broker.produce(topics["events"], as_messages(lines[half:]))
        wait_until(lambda: events_done() == len(lines), worker)
    finally:
        run.stop()
        worker.join(SECONDS)
    assert recorded_log(tmp_path / "state").splitlines() == lines
    check_messages(broker.consume(topics["results"]), expected(b"\n".join(lines) + b"\n").results)


def wait_until(done: Callable[[], bool], worker: threading.Thread) -> None:
    def checked() -> bool:
        assert worker.is_alive(), "the run has ended"
        return done()

    until(checked, "the events are processed", SECONDS)
