"""Config files of `placewire run` and the results in its sinks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EVENTS = """
[[source]]
takes = "events"
format = "jsonl"
path = "source"
options = { maxFilesPerTrigger = "1" }
"""
SINKS = """
[[sink]]
name = "lines"
format = "jsonl"
path = "lines"

[[sink]]
name = "table"
format = "parquet"
path = "table"

[[sink]]
name = "sheet"
format = "csv"
path = "sheet"

[[sink]]
name = "dead"
takes = "dead"
format = "jsonl"
path = "dead"
"""


def write_config(folder: Path, text: str) -> Path:
    path = folder / "wire.toml"
    path.write_text('state = "state"\nworkers = 2\nwith_data = true\n' + text)
    return path


def lines_of(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
