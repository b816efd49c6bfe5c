"""Folders as sinks: a file a batch, under its number, so that a repeated one is the same."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from placewire.engine.delivery import Delivered
from placewire.model.errors import Unusable

FORMS = ("parquet", "csv", "jsonl")
NUMBERED = re.compile(r"(\d{9,})\.(parquet|csv|jsonl)")


class FolderSink:
    """Writes each batch as a file of its own."""

    def __init__(self, name: str, path: Path, form: str = "parquet", dead: bool = False) -> None:
        if form not in FORMS:
            raise Unusable(f"sink {name}: form must be one of {', '.join(FORMS)}, got {form!r}")
        self.name = name
        self.path = path
        self.form = form
        self.dead = dead
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unusable(f"sink {name}: {path}: cannot be written: {error.strerror}") from None

    def write(self, delivered: Delivered) -> None:
        """The file of a batch, whole or not at all."""
        final = self.path / f"{delivered.batch:09d}.{self.form}"
        partial = self.path / f".{final.name}.{secrets.token_hex(4)}"
        if self.form == "parquet":
            pq.write_table(delivered.table, partial)
        elif self.form == "csv":
            pa_csv.write_csv(flatten(delivered.table), partial)
        else:
            with open(partial, "wb") as file:
                file.writelines(delivered.lines())
        os.replace(partial, final)


class LineSink:
    """Writes lines to an open file, as they come: more than once if a run dies meanwhile."""

    def __init__(self, name: str, file: BinaryIO, dead: bool = False) -> None:
        self.name = name
        self.file = file
        self.dead = dead

    def write(self, delivered: Delivered) -> None:
        self.file.writelines(delivered.lines())
        self.file.flush()


def flatten(table: pa.Table) -> pa.Table:
    """Nested columns as JSON, which is all that CSV can have."""
    for at, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [
                None if value is None else msgspec.json.encode(value).decode()
                for value in table[field.name].to_pylist()
            ]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return table


def files_of(path: Path) -> dict[int, Path]:
    """The files of a folder by the numbers of their batches."""
    found = ((NUMBERED.fullmatch(file.name), file) for file in path.iterdir())
    return {int(name[1]): file for name, file in found if name}
