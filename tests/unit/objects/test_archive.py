"""The archive: every object that is not retained any more, once, as Parquet by day."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from placewire.api import replay
from placewire.model.errors import Unusable

START = datetime(2026, 3, 1, 22, tzinfo=UTC)


def objects(count: int) -> list[dict[str, Any]]:
    """Objects of some hours around midnight, one a minute."""
    return [
        {
            "type": "object",
            "id": f"o{n}",
            "ts": (START + timedelta(minutes=n)).isoformat(),
            "lon": n % 7,
            "lat": n % 5,
            "text": f"Café {n % 3}",
            **({"data": {"n": n}} if n % 4 == 0 else {}),
        }
        for n in range(count)
    ]


def run(folder: Path, events: list[dict[str, Any]], rows: int) -> None:
    log = folder / "log.jsonl"
    log.write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    replay(
        log,
        folder / "results.jsonl",
        settings={"retention": "PT1H", "window": {"time": "PT1M"}},
        state=folder / "state",
        batch_rows=rows,
        slice="PT10M",
        archive=folder / "archive",
    )


@pytest.mark.parametrize("inline", [20_000, 0])
@pytest.mark.parametrize("rows", [7, 64])
def test_objects_go_to_the_archive_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, inline: int
) -> None:
    """Also when files leave while they are being merged."""
    monkeypatch.setattr("placewire.objects.store.INLINE_OBJECTS", inline)
    events = objects(300)
    run(tmp_path, events[:170], rows)  # a run that is resumed
    run(tmp_path, events, rows)
    table = ds.dataset(tmp_path / "archive", partitioning="hive").to_table()
    rows_found = sorted(table.to_pylist(), key=lambda row: row["seq"])
    archived = [row["seq"] for row in rows_found]
    assert archived == sorted(set(archived))
    # All but those of the last hour, of the slice in which it begins, and what is being merged.
    assert set(range(220 if inline else 100)) <= set(archived) <= set(range(240))
    for row in rows_found:
        event = events[row["seq"]]
        assert row["id"] == event["id"]
        assert row["ts"] == datetime.fromisoformat(event["ts"])
        assert (row["lon"], row["lat"], row["text"]) == (event["lon"], event["lat"], event["text"])
        assert sorted(row["terms"]) == sorted(["café", event["text"][-1]])
        assert row["data"] == (
            json.dumps(event["data"], separators=(",", ":")) if "data" in event else None
        )
        assert str(row["day"]) == event["ts"][:10]


def test_an_archive_belongs_to_one_state(tmp_path: Path) -> None:
    run(tmp_path, objects(3), 7)
    (tmp_path / "state").rename(tmp_path / "unused")
    run(tmp_path, objects(200), 7)  # nothing was archived: it is free to take
    (tmp_path / "state").rename(tmp_path / "another")
    with pytest.raises(Unusable, match="another state"):
        run(tmp_path, objects(200), 7)
    (tmp_path / "archive" / ".placewire").unlink()
    (tmp_path / "archive" / "photos").mkdir()
    with pytest.raises(Unusable, match="not empty"):
        run(tmp_path, objects(3), 7)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"")
    with pytest.raises(Unusable, match="archive"):
        run(tmp_path, objects(3), 7)


def test_a_batch_that_was_not_committed_archives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What leaves is archived once, although the batch in which it left runs twice, cut anew."""
    events = objects(400)

    def fail(*_: Any) -> None:
        raise OSError("power cut")

    for until, rows in ((150, 7), (200, 5), (300, 11)):
        with monkeypatch.context() as patch:
            run(tmp_path, events[:until], rows)
            patch.setattr("placewire.batch.coordinator.write_manifest", fail)
            with pytest.raises(OSError, match="power cut"):
                run(tmp_path, [*events[: until + 60]], 50)
    run(tmp_path, objects(400), 3)
    table = ds.dataset(tmp_path / "archive", partitioning="hive").to_table()
    archived = sorted(table["seq"].to_pylist())
    assert archived == sorted(set(archived))
    assert set(range(250)) <= set(archived)
