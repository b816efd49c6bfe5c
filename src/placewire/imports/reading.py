"""JSON as it is found in dumps: one value a line, or one value over many lines.

Values are read strictly, as events are: a repeated key would silently drop a clause.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from placewire.imports.reasons import shorten
from placewire.model.errors import Unusable

MOST_BYTES = 1 << 26  # of one line, or of one value over many lines
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Moved = Callable[[int], None]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE = re.compile(r"[ \t\r\n]*")


class Broken(NamedTuple):
    """Something in a file that cannot be read: the line's number, from 1, and why."""

    line: int
    why: str


class Malformed(ValueError):
    """A text is not JSON that can be used."""


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"the key {shorten(repr(repeated))} is repeated")
    return value


def refuse_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not JSON")


_decoder = json.JSONDecoder(object_pairs_hook=object_of, parse_constant=refuse_constant)


def decode(raw: bytes) -> Any:
    """The one JSON value in some bytes; raises Malformed."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: byte 0x{raw[error.start]:02x} at {error.start + 1}") from None
    value, end = decode_from(text, 0)
    if text[end:].strip():
        raise Malformed(f"not JSON: more than one value, at character {end + 1}")
    return value


def decode_from(text: str, start: int) -> tuple[Any, int]:
    """A value that begins at a place of a text, and where it ends; raises Malformed."""
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


def read_lines(file: BinaryIO, moved: Moved) -> Iterator[tuple[int, bytes | Broken]]:
    """The lines of a file that are not empty, with their numbers from 1."""
    number = 0
    while line := file.readline(MOST_BYTES):
        number += 1
        moved(file.tell())
        if len(line) == MOST_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(MOST_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, Broken(number, f"a line is longer than {MOST_BYTES:,} bytes")
        elif number == 1 and line.startswith(BYTE_ORDER_MARK):
            yield number, line[len(BYTE_ORDER_MARK) :].strip()
        elif line := line.strip():
            yield number, line


def read_values(path: Path, moved: Moved) -> Iterator[tuple[int, Any | Broken]]:
    """The JSON values of a file with the numbers of their lines, and what is none."""
    with open_file(path) as file:
        if not is_one_a_line(file):
            yield from read_whole(path, file, moved)
            return
        for number, line in read_lines(file, moved):
            if isinstance(line, Broken):
                yield number, line
            elif line:
                try:
                    yield number, decode(line)
                except Malformed as error:
                    yield number, Broken(number, str(error))


def is_one_a_line(file: BinaryIO) -> bool:
    """Whether one of the first two lines is a JSON value by itself; the file is wound back."""
    found = False
    lines = read_lines(file, lambda _: None)
    for _, (_, line) in zip(range(2), lines, strict=False):
        if isinstance(line, bytes):
            with contextlib.suppress(Malformed):
                found = found or isinstance(decode(line), dict | list)
    file.seek(0)
    return found


def read_whole(path: Path, file: BinaryIO, moved: Moved) -> Iterator[tuple[int, Any | Broken]]:
    """Values that go over several lines, one after another; nothing is read after a broken one."""
    raw = file.read(MOST_BYTES + 1)
    moved(len(raw))
    if len(raw) > MOST_BYTES:
        raise Unusable(
            f"{path}: neither of its first two lines is JSON, and as one value it is longer than"
            f" {MOST_BYTES:,} bytes: write one query a line"
        )
    try:
        text = raw.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        yield line, Broken(line, f"not UTF-8: byte 0x{raw[error.start]:02x}")
        return
    at, line = 0, 1
    while (start := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", at, start)
        try:
            value, at = decode_from(text, start)
        except Malformed as error:
            yield line, Broken(line, f"{error}; nothing after it is read")
            return
        yield line, value
        line += text.count("\n", start, at)


def open_file(path: Path) -> BinaryIO:
    """The file, open for reading; raises Unusable."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from None
