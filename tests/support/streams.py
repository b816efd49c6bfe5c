"""Sources of a streaming run: a log as files, objects and subscriptions as tables."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from placewire.demo import CityLife, write_log


def split_log(folder: Path, parts: int, **life: Any) -> list[bytes]:
    """A log in files of about equal numbers of lines, one for each batch of a source."""
    log = folder / "whole.jsonl"
    write_log(CityLife(**life), str(log))
    lines = log.read_bytes().splitlines(keepends=True)
    source = folder / "source"
    source.mkdir()
    size = -(-len(lines) // parts)
    cut = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    for number, part in enumerate(cut):
        path = source / f"{number:03d}.jsonl"
        path.write_bytes(part)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # read in this order
    return cut


SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "coffee", "kind": "boolean", "where": "coffee AND (free OR sale)"},
    {"id": "tree", "kind": "boolean", "where": '{"any": ["tea", {"none": ["coffee"]}]}'},
    {"id": "box", "kind": "boolean", "region": '{"box": [-74.1, 40.6, -73.8, 40.9]}'},
    {"id": "near", "kind": "nearest", "keywords": ["coffee", "tea"], "k": 2, "lon": -74.0,
     "lat": 40.7},
    {"id": "bad", "kind": "boolean", "region": "no JSON"},
    {"id": "gone", "kind": "boolean", "where": "tea"},
    {"id": "gone", "type": "unsubscribe"},
]  # fmt: skip
OBJECTS = [
    ("o0", -73.98, 40.75, "Free coffee, 5th Ave!"),
    ("o1", -73.9, 40.7, "tea for two"),
    ("o2", 12.0, 50.0, "Coffee sale"),
    ("o3", None, 50.0, "coffee free"),
    ("o4", 0.0, 0.0, None),
    ("o5", -73.95, 40.71, "TEA and coffee"),
]
START = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


def second(number: int) -> datetime.datetime:
    return START + datetime.timedelta(seconds=number)


def write_tables(folder: Path) -> bytes:
    """The subscriptions and the objects as Parquet; gives the log that they are."""
    names = ("type", "id", "kind", "where", "region", "keywords", "k", "lon", "lat")
    changes = [{name: row.get(name) for name in names} for row in SUBSCRIPTIONS]
    for number, row in enumerate(changes):
        row["ts"] = second(number)
        row["type"] = row["type"] or "subscribe"
    things = [
        {"id": id_, "ts": second(100 + number), "lon": lon, "lat": lat, "text": text, "likes": 7}
        for number, (id_, lon, lat, text) in enumerate(OBJECTS)
    ]
    for name, rows in (("subscriptions", changes), ("objects", things)):
        (folder / name).mkdir()
        pq.write_table(pa.Table.from_pylist(rows), folder / name / "part.parquet")
    lines = []
    for row in changes:
        event = {k: v for k, v in row.items() if v is not None} | {"ts": stamp(row["ts"])}
        for nested in ("region", "where"):
            if str(event.get(nested, "")).startswith("{"):
                event[nested] = json.loads(event[nested])
        lines.append(event)
    for row in things:
        event = {k: v for k, v in row.items() if k != "likes"} | {"ts": stamp(row["ts"])}
        lines.append({"type": "object", **event, "data": {"likes": 7}})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def stamp(at: datetime.datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
