"""Read JSON files: one value per line, or values over many lines.

Values are read as strictly as events: a repeated key would silently drop a clause.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from placewire.importers.report import shorten
from placewire.model.errors import Unusable

MOST_BYTES = 1 << 26  # of one line, or of one value over many lines
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

ReadProgress = Callable[[int], None]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE = re.compile(r"[ \t\r\n]*")


class Unreadable(NamedTuple):
    """A part of a file that cannot be read: its line number, from 1, and the reason."""

    line: int
    why: str


class Malformed(ValueError):
    """A text is not valid JSON."""


def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"the key {shorten(repr(repeated))} is repeated")
    return value


def reject_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not JSON")


_decoder = json.JSONDecoder(object_pairs_hook=build_object, parse_constant=reject_constant)


def decode(raw: bytes) -> Any:
    """Decode bytes that hold one JSON value; raises Malformed."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: byte 0x{raw[error.start]:02x} at {error.start + 1}") from None
    value, end = decode_from(text, 0)
    if text[end:].strip():
        raise Malformed(f"not JSON: more than one value, at character {end + 1}")
    return value


def decode_from(text: str, start: int) -> tuple[Any, int]:
    """Decode the value that begins at `start` and return it with its end; raises Malformed."""
    start = _SPACE.match(text, start).end()  # type: ignore[union-attr]
    try:
        value, end = _decoder.raw_decode(text, start)
    except Malformed:
        raise
    except json.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error.msg}, at character {error.pos + 1}") from None
    except RecursionError:
        raise Malformed("JSON is nested too deeply") from None
    except ValueError:
        raise Malformed("a number has too many digits") from None
    if _SURROGATE.search(text, start, end):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Malformed("a string has a lone surrogate") from None
    return value, end


def read_lines(file: BinaryIO, progress: ReadProgress) -> Iterator[tuple[int, bytes | Unreadable]]:
    """Yield the non-empty lines of a file with their numbers, from 1."""
    number = 0
    while line := file.readline(MOST_BYTES):
        number += 1
        progress(file.tell())
        if len(line) == MOST_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(MOST_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, Unreadable(number, f"a line is longer than {MOST_BYTES:,} bytes")
        elif number == 1 and line.startswith(BYTE_ORDER_MARK):
            yield number, line[len(BYTE_ORDER_MARK) :].strip()
        elif line := line.strip():
            yield number, line


def read_values(path: Path, progress: ReadProgress) -> Iterator[tuple[int, Any | Unreadable]]:
    """Yield the JSON values of a file, and unreadable parts, with their line numbers."""
    with open_file(path) as file:
        if not has_value_per_line(file):
            yield from read_whole(path, file, progress)
            return
        for number, line in read_lines(file, progress):
            if isinstance(line, Unreadable):
                yield number, line
            elif line:
                try:
                    yield number, decode(line)
                except Malformed as error:
                    yield number, Unreadable(number, str(error))


def has_value_per_line(file: BinaryIO) -> bool:
    """Whether one of the first two lines is a complete JSON value; rewinds the file."""
    found = False
    lines = read_lines(file, lambda _: None)
    for _, (_, line) in zip(range(2), lines, strict=False):
        if isinstance(line, bytes):
            with contextlib.suppress(Malformed):
                found = found or isinstance(decode(line), dict | list)
    file.seek(0)
    return found


def read_whole(
    path: Path, file: BinaryIO, progress: ReadProgress
) -> Iterator[tuple[int, Any | Unreadable]]:
    """Yield values that span several lines; stops after an unreadable one."""
    raw = file.read(MOST_BYTES + 1)
    progress(len(raw))
    if len(raw) > MOST_BYTES:
        raise Unusable(
            f"{path}: neither of its first two lines is JSON, and as one value it is longer than"
            f" {MOST_BYTES:,} bytes: write one query a line"
        )
    try:
        text = raw.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        yield line, Unreadable(line, f"not UTF-8: byte 0x{raw[error.start]:02x}")
        return
    at, line = 0, 1
    while (start := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", at, start)
        try:
            value, at = decode_from(text, start)
        except Malformed as error:
            yield line, Unreadable(line, f"{error}; nothing after it is read")
            return
        yield line, value
        line += text.count("\n", start, at)


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; raises Unusable."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from None
