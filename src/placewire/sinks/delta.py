"""A Delta table as a sink: a commit a batch, with the batch's number in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from placewire.ingest.delta_log import log_file, read_actions
from placewire.model.errors import Unusable
from placewire.sinks.delivery import Delivered
from placewire.sinks.table import DEAD_SCHEMA, SCHEMA
from placewire.storage.delta_tables import TableLocation
from placewire.storage.filesystem import sync

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaSink:
    """Appends to a Delta table, which knows by its number a batch that comes again.

    The number is an application's transaction in the commit that has the rows: both are there or
    neither. Others may write to the table too.
    """

    def __init__(
        self, name: str, path: str, dead: bool = False, options: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.dead = dead
        self.place = TableLocation(f"sink {name}:", path, options)
        self.checked = False

    @property
    def schema(self) -> pa.Schema:
        return DEAD_SCHEMA if self.dead else SCHEMA

    def check(self, _: tuple[int, int]) -> None:
        """See that the table, if there is one, takes such rows; raises Unusable."""
        if not self.checked:
            table = self.place.find()
            if table is not None:
                self._find_fields(table)
                self.checked = True

    def claim(self, _: tuple[int, int]) -> None:
        """Make the table, if there is none."""
        if not self.checked:
            self._open()

    def write(self, delivered: Delivered) -> None:
        """Append a batch, unless the table has it; one without rows leaves no commit."""
        from deltalake import CommitProperties, Transaction, write_deltalake

        if not delivered.table.num_rows:
            return
        table = self._open()  # anew: one that is kept gets slower, docs/decisions/0013-kafka.md
        app = f"placewire-{'-'.join(map(str, delivered.manifest.key))}-{self.name}"
        known = table.transaction_version(app)
        if known is not None and known >= delivered.batch:
            return
        rows = align_columns(delivered.table, self._find_fields(table))
        number = CommitProperties(app_transactions=[Transaction(app, delivered.batch)])
        before = table.version()
        with self.place.telling("cannot be written", lasting=False):
            write_deltalake(table, rows, mode="append", commit_properties=number)
            self._sync(before + 1, table.version())

    def _open(self) -> DeltaTable:
        from deltalake import DeltaTable

        table = self.place.find()
        if table is None:
            with self.place.telling("cannot be made"):
                table = DeltaTable.create(
                    self.place.path, self.schema, mode="ignore", storage_options=self.place.options
                )
                self._sync(0, 0)
        self.checked = True
        return table

    def _find_fields(self, table: DeltaTable) -> pa.Schema:
        """The table's columns, if they can take the sink's; raises Unusable."""
        from deltalake import Schema

        fields = {field.name: field for field in table.schema().fields}
        for wanted in Schema.from_arrow(self.schema).fields:
            found = fields.pop(wanted.name, None)
            if found is None or found.type != wanted.type:
                got = "none" if found is None else found.type.to_json()
                raise Unusable(
                    f"{self.place.label}: column {wanted.name} must be {wanted.type.to_json()},"
                    f" got {got}; choose another table"
                )
        for other in fields.values():
            if not other.nullable:
                raise Unusable(
                    f"{self.place.label}: column {other.name} must be nullable, since the sink has"
                    " nothing for it; choose another table"
                )
        return pa.schema(table.schema())

    def _sync(self, first: int, last: int) -> None:
        """Let commits survive a power cut: on this machine delta-rs leaves that to others."""
        folder = self.place.folder
        if folder is None:
            return
        for version in range(first, last + 1):
            log = folder / log_file(version)
            for action, facts in read_actions(log.read_bytes()):
                if action == "add":
                    sync_file(folder / unquote(facts["path"]), folder)
            sync_file(log, folder)


def sync_file(file: Path, folder: Path) -> None:
    """A file, unless somebody has removed it, and the folders that name it."""
    if file.exists():
        sync(str(file))
    for parent in file.parents:
        if parent.exists():
            sync(str(parent))
        if parent in (folder, folder.parent):
            return


def align_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in a table's columns and their order; null in those that the rows lack."""
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema)
