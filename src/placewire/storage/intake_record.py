"""The intake: batches of an unordered source, recorded in a fixed order.

A source delivers rows in partitions without a total order. They are written as blocks, and the
order of the blocks is recorded before any of them runs: from then on that order is the log. When a
source redelivers a batch after a crash, the recorded one is used.

intake/N.json        the blocks of the source's batch N, in order
intake/*.arrow       objects as columns
intake/*.jsonl       events as lines
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from placewire.model.errors import Unusable
from placewire.storage.layout import StateDir, write_file
from placewire.storage.mirror import list_names, mirror_of, read_file, remove_file, temporary_path

FOLDER = "intake"
KEEP = 2  # recorded batches, in addition to the current one


class IntakeBlock(msgspec.Struct, frozen=True):
    """A block's file, its format, and its number of events and bytes."""

    file: str
    form: str
    rows: int
    bytes: int


class IntakeBatch(msgspec.Struct, frozen=True):
    """The blocks of one batch of a source; `first` counts the blocks of all earlier batches."""

    first: int
    blocks: list[IntakeBlock]


class Intake:
    """The intake folder of a state."""

    def __init__(self, state: StateDir) -> None:
        self.state = state
        self.folder = state.root / FOLDER

    def make(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def write_block(self, form: str, rows: int, write: Callable[[Path], None]) -> IntakeBlock:
        """Write a block under a name that no other attempt will ever use."""
        path = self.folder / f"{secrets.token_hex(8)}.{form}"
        mirror = mirror_of(path)
        written = path if mirror is None else temporary_path(path)
        write(written)
        size = written.stat().st_size
        if mirror is not None:
            mirror.keep(path, written)
        return IntakeBlock(path.name, form, rows, size)

    def read(self, batch: int) -> IntakeBatch | None:
        """Read the record of a source's batch; None if there is none."""
        name = f"{batch}.json"
        try:
            return msgspec.json.decode(read_file(self.folder / name), type=IntakeBatch)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, OSError) as error:
            raise Unusable(f"state {self.state}: {FOLDER}/{name} is damaged: {error}") from None

    def record(self, batch: int, recorded: IntakeBatch) -> None:
        """Record the order of a source's batch."""
        self.state.check_writer()
        write_file(self.folder / f"{batch}.json", msgspec.json.encode(recorded))

    def last(self) -> int | None:
        """Return the number of the last recorded batch."""
        return max(self._batches(), default=None)

    def tidy(self) -> None:
        """Delete blocks of committed batches and of failed attempts."""
        kept = sorted(self._batches())[-KEEP:]
        needed = {f"{batch}.json" for batch in kept}
        for batch in kept:
            found = self.read(batch)
            needed |= {block.file for block in found.blocks} if found else set()
        for name in set(list_names(self.folder)) - needed:
            remove_file(self.folder / name)

    def _batches(self) -> list[int]:
        names = [name for name in list_names(self.folder) if name.endswith(".json")]
        return [int(name[:-5]) for name in names if is_number(name[:-5])]


def is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
