"""The intake: what a source without a total order gave, in the order that it got.

A source gives rows in parts that have no order among them. They are written as blocks, and the
order of the blocks is recorded before any of them runs: from then on that is the log. A source that
gives a batch once more after a crash is not asked again.

intake/N.json        which blocks the source's batch N came to, in order
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
from placewire.storage.mirror import beside, list_names, mirror_of, read_file, remove_file

FOLDER = "intake"
KEEP = 2  # recorded batches, beside the one at work


class IntakeBlock(msgspec.Struct, frozen=True):
    """A block's file, its form, and how many events it has in how many bytes."""

    file: str
    form: str
    rows: int
    bytes: int


class IntakeBatch(msgspec.Struct, frozen=True):
    """What one batch of a source came to; `first` counts the blocks of all batches before."""

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
        written = path if mirror is None else beside(path)
        write(written)
        size = written.stat().st_size
        if mirror is not None:
            mirror.keep(path, written)
        return IntakeBlock(path.name, form, rows, size)

    def read(self, batch: int) -> IntakeBatch | None:
        """What is recorded of a source's batch, if anything."""
        name = f"{batch}.json"
        try:
            return msgspec.json.decode(read_file(self.folder / name), type=IntakeBatch)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, OSError) as error:
            raise Unusable(f"state {self.state}: {FOLDER}/{name} is damaged: {error}") from None

    def record(self, batch: int, recorded: IntakeBatch) -> None:
        """Fix the order of a source's batch."""
        self.state.check_writer()
        write_file(self.folder / f"{batch}.json", msgspec.json.encode(recorded))

    def last(self) -> int | None:
        """The last recorded batch."""
        return max(self._batches(), default=None)

    def tidy(self) -> None:
        """Delete what committed batches were made of, and what attempts that failed have left."""
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
