"""Array files: named arrays in one immutable file that any process maps into memory.

    magic, version, length of header | header (JSON) | arrays, each at a multiple of 64 bytes

A file is written once under a name that is never used again, so a cache of open files needs no
invalidation and processes on one machine share the pages.
"""

from __future__ import annotations

import math
import mmap
import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from placewire.model.arrays import Array
from placewire.model.errors import Unusable
from placewire.storage.filesystem import write_all
from placewire.storage.mirror import fetch_local, mirror_of, temporary_path

MAGIC = b"PLWARRAY"
VERSION = 1
ALIGN = 64
OPEN_FILES = 512
T = TypeVar("T", bound=tuple[Any, ...])


class ArrayFile(NamedTuple):
    """The mapped arrays of one file and the small facts stored with them."""

    arrays: dict[str, Array]
    facts: dict[str, Any]


def lay_out(
    arrays: Mapping[str, Array], facts: Mapping[str, Any] | None
) -> list[bytes | memoryview]:
    """Lay out the parts of an array file, in order."""
    entries = []
    position = 0
    for name, array in arrays.items():
        entries.append((name, array.dtype.str, array.shape, position))
        position += -(-array.nbytes // ALIGN) * ALIGN
    header = msgspec.json.encode({"arrays": entries, "facts": dict(facts or {})})
    start = -(-(len(MAGIC) + 12 + len(header)) // ALIGN) * ALIGN
    head = MAGIC + VERSION.to_bytes(4, "little") + len(header).to_bytes(8, "little") + header
    parts: list[bytes | memoryview] = [head.ljust(start, b"\0")]
    for array in arrays.values():
        if array.nbytes:
            parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            parts.append(bytes(-array.nbytes % ALIGN))
    return join_small(parts)


def write_arrays(
    path: Path, arrays: Mapping[str, Array], facts: Mapping[str, Any] | None = None
) -> int:
    """Write a new array file durably; returns its size in bytes."""
    parts = lay_out(arrays, facts)
    mirror = mirror_of(path)
    written = path if mirror is None else temporary_path(path)
    with open(written, "xb", buffering=0) as file:
        for part in parts:
            write_all(file.fileno(), part)
        if mirror is None:
            os.fdatasync(file.fileno())
    if mirror is not None:
        mirror.keep(path, written)
    return sum(len(part) for part in parts)


def pack_arrays(arrays: Mapping[str, Array], facts: Mapping[str, Any] | None = None) -> bytes:
    """Pack arrays into bytes, for a block that stages pass in one cell."""
    return b"".join(lay_out(arrays, facts))


def join_small(parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Join neighbouring small parts, so that a file of many small arrays is a few writes."""
    joined: list[bytes | memoryview] = []
    small: list[bytes | memoryview] = []
    for part in parts:
        if len(part) < 65_536:
            small.append(part)
            continue
        joined.append(b"".join(small))
        joined.append(part)
        small = []
    joined.append(b"".join(small))
    return joined


def map_arrays(path: Path) -> ArrayFile:
    """Map the file's arrays, read-only; the mapping lives as long as the arrays do."""
    try:
        with open(fetch_local(path), "rb") as file:
            if os.fstat(file.fileno()).st_size < 20:
                raise Unusable(f"{path}: is not an array file (too short)")
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from None
    if whole[:8] != MAGIC or int.from_bytes(whole[8:12], "little") != VERSION:
        raise Unusable(f"{path}: is not an array file of version {VERSION}, got {whole[:12]!r}")
    try:
        return unpack_arrays(whole)
    except (ValueError, KeyError, TypeError) as error:
        raise Unusable(f"{path}: is damaged: {error}") from None


def unpack_arrays(whole: bytes | mmap.mmap) -> ArrayFile:
    """Return the arrays of an array file in memory, without a copy."""
    length = int.from_bytes(whole[12:20], "little")
    header = msgspec.json.decode(whole[20 : 20 + length])
    start = -(-(20 + length) // ALIGN) * ALIGN
    arrays: dict[str, Array] = {}
    for name, dtype, shape, position in header["arrays"]:
        count = math.prod(shape)
        if count == 0:
            arrays[name] = np.empty(shape, dtype)
            arrays[name].flags.writeable = False
            continue
        array = np.frombuffer(whole, dtype, count, start + position)
        arrays[name] = array.reshape(shape)
    return ArrayFile(arrays, header["facts"])


def label_columns(label: str, columns: Any) -> dict[str, Array]:
    """Return a named tuple of arrays as arrays of a file, named `label.column`."""
    return {f"{label}.{name}": array for name, array in columns._asdict().items()}


def read_columns(structure: type[T], arrays: Mapping[str, Any], label: str) -> T:
    """Return a named tuple of arrays that `label_columns` named."""
    return structure(*(arrays[f"{label}.{name}"] for name in structure._fields))  # type: ignore[attr-defined]


_open: OrderedDict[str, ArrayFile] = OrderedDict()
_open_lock = Lock()


def forget_deleted() -> None:
    """Close mapped files that were deleted, so that their disk space is freed."""
    with _open_lock:
        for key in [key for key in _open if not os.path.exists(key)]:
            del _open[key]


def open_arrays(path: Path) -> ArrayFile:
    """Map a file through this process's cache of recently used files."""
    key = str(path)
    with _open_lock:
        known = _open.get(key)
        if known is not None:
            _open.move_to_end(key)
            return known
    opened = map_arrays(path)
    with _open_lock:
        _open[key] = opened
        while len(_open) > OPEN_FILES:
            _open.popitem(last=False)
    return opened
