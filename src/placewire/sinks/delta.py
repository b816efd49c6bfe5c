"""Deliver results to a Delta table, one commit per batch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from placewire.model.errors import Unusable
from placewire.sinks.delivery import Delivered
from placewire.sinks.outbox import DEAD_SCHEMA, SCHEMA
from placewire.storage.delta_tables import TableLocation, log_file, read_actions
from placewire.storage.filesystem import sync

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaSink:
    """Appends each batch to a Delta table exactly once.

    The commit that has the rows also has the batch's number as an application transaction, by
    which a redelivered batch is skipped. Other writers may use the table.
    """

    def __init__(
        self, name: str, path: str, dead: bool = False, options: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.dead = dead
        self.location = TableLocation(f"sink {name}:", path, options)
        self.checked = False

    @property
    def schema(self) -> pa.Schema:
        return DEAD_SCHEMA if self.dead else SCHEMA

    def check(self, _: tuple[int, int]) -> None:
        """Raise Unusable if the table exists and does not take such rows."""
        if not self.checked:
            table = self.location.find()
            if table is not None:
                self._find_fields(table)
                self.checked = True

    def claim(self, _: tuple[int, int]) -> None:
        """Create the table, if it does not exist."""
        if not self.checked:
            self._open()

    def write(self, delivered: Delivered) -> None:
        """Append a batch, unless the table has it or the batch has no rows."""
        from deltalake import CommitProperties, Transaction, write_deltalake

        if not delivered.table.num_rows:
            return
        table = self._open()  # reopened: a kept one gets slower, docs/decisions/0013-kafka.md
        app = f"placewire-{'-'.join(map(str, delivered.manifest.key))}-{self.name}"
        known = table.transaction_version(app)
        if known is not None and known >= delivered.batch:
            return
        rows = align_columns(delivered.table, self._find_fields(table))
        number = CommitProperties(app_transactions=[Transaction(app, delivered.batch)])
        before = table.version()
        with self.location.reporting_errors("cannot be written", lasting=False):
            write_deltalake(table, rows, mode="append", commit_properties=number)
            self._sync(before + 1, table.version())

    def _open(self) -> DeltaTable:
        from deltalake import DeltaTable

        table = self.location.find()
        if table is None:
            with self.location.reporting_errors("cannot be made"):
                table = DeltaTable.create(
                    self.location.path,
                    self.schema,
                    mode="ignore",
                    storage_options=self.location.options,
                )
                self._sync(0, 0)
        self.checked = True
        return table

    def _find_fields(self, table: DeltaTable) -> pa.Schema:
        """Return the table's columns; raises Unusable if they do not take the sink's."""
        from deltalake import Schema

        fields = {field.name: field for field in table.schema().fields}
        for wanted in Schema.from_arrow(self.schema).fields:
            found = fields.pop(wanted.name, None)
            if found is None or found.type != wanted.type:
                got = "none" if found is None else found.type.to_json()
                raise Unusable(
                    f"{self.location.label}: column {wanted.name} must be {wanted.type.to_json()},"
                    f" got {got}; choose another table"
                )
        for other in fields.values():
            if not other.nullable:
                raise Unusable(
                    f"{self.location.label}: column {other.name} must be nullable, since the sink"
                    " has nothing for it; choose another table"
                )
        return pa.schema(table.schema())

    def _sync(self, first: int, last: int) -> None:
        """Flush commits to disk, which delta-rs does not do in local folders."""
        folder = self.location.folder
        if folder is None:
            return
        for version in range(first, last + 1):
            log = folder / log_file(version)
            for action, facts in read_actions(log.read_bytes()):
                if action == "add":
                    sync_file(folder / unquote(facts["path"]), folder)
            sync_file(log, folder)


def sync_file(file: Path, folder: Path) -> None:
    """Flush a file, if it still exists, and its folders up to the table's."""
    if file.exists():
        sync(file)
    for parent in file.parents:
        if parent.exists():
            sync(parent)
        if parent in (folder, folder.parent):
            return


def align_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with a table's columns in order; missing ones are null."""
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema)
