"""The sample of docs/adding-a-kind.md, built as a module, registered and run."""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from placewire import replay
from placewire.model import kinds

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-kind.md"
MODULE = "placewire_count"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONGEST = 150


def sample() -> str:
    return max(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S), key=len)


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{MODULE}.py").write_text(sample())
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__(MODULE)
    kinds.register(module.CountKind, MODULE)
    yield
    kinds.unregister("count")
    del sys.modules[MODULE]


def stamp(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def make_log(seed: int, events: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    log, clock = [], 0.0
    for number in range(events):
        clock += rng.choice([0, 1, 5, 20, 90])
        ts = stamp(clock - rng.choice([0, 0, 30]))
        name = f"s{rng.randrange(4)}"
        kind = rng.random()
        if kind < 0.15:
            wanted = {"kind": "count", "where": rng.choice(["coffee", "tea OR coffee", "NOT tea"])}
            if rng.random() < 0.3:
                wanted["expires"] = stamp(clock + 200)
            log.append({"type": "subscribe", "id": name, "ts": ts, **wanted})
        elif kind < 0.2:
            log.append({"type": "unsubscribe", "id": name, "ts": ts})
        else:
            text = " ".join(rng.sample(["coffee", "tea", "cake"], 2))
            place = {"lon": 1.0, "lat": 2.0, "text": text}
            log.append({"type": "object", "id": f"o{number}", "ts": ts, **place})
    return log


HOLDS = {
    "coffee": lambda words: "coffee" in words,
    "tea OR coffee": lambda words: bool({"tea", "coffee"} & words),
    "NOT tea": lambda words: "tea" not in words,
}


def expect(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reports of a log, by looking at every pair."""
    live: dict[str, dict[str, Any]] = {}
    counts: Counter[tuple[str, int]] = Counter()
    reports, now = [], None
    for seq, event in enumerate(log):
        ts = datetime.fromisoformat(event["ts"])
        now = ts if now is None else max(now, ts)
        minute = int(now.timestamp() // 60)
        for name, counted in sorted(key for key in counts if key[1] < minute):
            due = datetime.fromtimestamp(60 * (counted + 1), UTC)
            number = counts.pop((name, counted))
            if "expires" not in live[name] or due < datetime.fromisoformat(live[name]["expires"]):
                at = due.isoformat().replace("+00:00", "Z")
                told = {"seq": seq, "type": "report", "subscription": name}
                reports.append(told | {"at": at, "count": number})
        if event["type"] == "object":
            words = set(event["text"].split())
            for name, wanted in live.items():
                expires = wanted.get("expires")
                over = expires is not None and now >= datetime.fromisoformat(expires)
                if not over and HOLDS[wanted["where"]](words):
                    counts[name, minute] += 1
            continue
        counts = Counter({key: n for key, n in counts.items() if key[0] != event["id"]})
        live.pop(event["id"], None)
        if event["type"] == "subscribe":
            live[event["id"]] = event
    return reports


@pytest.mark.parametrize(
    ("batch_rows", "workers", "plan"),
    [(1, 1, "shared"), (17, 2, "shared"), (17, 7, "kdt"), (400, 2, "scan"), (400, 1, "shared")],
)
def test_the_sample_kind_equals_a_scan_of_the_log(
    count: None, tmp_path: Path, batch_rows: int, workers: int, plan: str
) -> None:
    events = 60 if batch_rows == 1 else 400
    log = make_log(5, events)
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in log))
    results = tmp_path / "results.jsonl"
    replay(path, results, batch_rows=batch_rows, workers=workers, plan=plan)
    found = [json.loads(line) for line in results.read_text().splitlines()]
    assert found == expect(log)
    assert len(found) > 5


def test_the_sample_is_short() -> None:
    assert len(sample().splitlines()) < LONGEST
