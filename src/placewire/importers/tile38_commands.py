"""Read Tile38 commands about fences from files.

Accepted are lines as typed into its command line, the append-only file (RESP), and the JSON answers
of `HOOKS *` and `CHANS *`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from placewire.importers.json_files import (
    MOST_BYTES,
    Malformed,
    ReadProgress,
    Unreadable,
    decode,
    decode_from,
    open_file,
    read_lines,
    read_values,
)
from placewire.importers.report import shown

MOST_ARGUMENTS = 1 << 16
SEARCHES = ("NEARBY", "WITHIN", "INTERSECTS")
SETS = ("SETHOOK", "SETCHAN")
ENDS = ("DELHOOK", "DELCHAN")
WITHOUT_NAMES = ("PDELHOOK", "PDELCHAN", "FLUSHDB")

_PROMPT = re.compile(r"\S+:\d+> +")
_PLAIN = re.compile(r"\S+")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "a": "\a"}


class Fence(NamedTuple):
    """A fence, or its deletion, which has no words."""

    line: int
    name: str | None
    words: list[str]
    meta: dict[str, str]
    ttl_s: str | None = None


def read_fences(path: Path, progress: ReadProgress) -> Iterator[Fence | Unreadable]:
    """Yield every fence of a file and unreadable parts; skips other commands."""
    with open_file(path) as file:
        start = file.read(1)
        while start.isspace():
            start = file.read(1)
        file.seek(0)
        if start == b"*":
            for number, words in read_resp(file, progress):
                yield from read_command(number, words)
            return
        if start not in (b"{", b"["):
            for number, line in read_lines(file, progress):
                if isinstance(line, Unreadable):
                    yield line
                elif line and not line.startswith(b"#"):
                    yield from read_text(number, line)
            return
    for number, value in read_values(path, progress):
        yield from [value] if isinstance(value, Unreadable) else read_answer(number, value)


def read_text(number: int, line: bytes) -> Iterator[Fence | Unreadable]:
    """Read a line: a typed command or an answer of the server."""
    try:
        if line.startswith(b"{"):
            yield from read_answer(number, decode(line))
            return
        yield from read_command(number, split_words(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        yield Unreadable(number, f"not UTF-8: byte 0x{line[error.start]:02x} at {error.start + 1}")
    except Malformed as error:
        yield Unreadable(number, str(error))


def split_words(line: str) -> list[str]:
    """Split a command into words: quoted, bare JSON, or plain."""
    prompt = _PROMPT.match(line)
    at = prompt.end() if prompt else 0
    words = []
    while at < len(line):
        character = line[at]
        if character.isspace():
            at += 1
        elif character in "\"'":
            word, at = read_quoted(line, at)
            words.append(word)
        else:
            end = json_end(line, at) if character == "{" else None
            end = _PLAIN.match(line, at).end() if end is None else end  # type: ignore[union-attr]
            words.append(line[at:end])
            at = end
    return words


def read_quoted(line: str, start: int) -> tuple[str, int]:
    """Read a quoted word and its end; a backslash escapes the next character."""
    found: list[str] = []
    quote, at = line[start], start + 1
    while at < len(line):
        if line[at] == quote:
            if at + 1 < len(line) and not line[at + 1].isspace():
                raise Malformed(f"a quote ends within a word, at character {at + 1}")
            return "".join(found), at + 1
        if line[at] == "\\" and at + 1 < len(line):
            at += 1
            escaped = line[at]
            found.append(_ESCAPES.get(escaped, escaped) if quote == '"' else escaped)
        else:
            found.append(line[at])
        at += 1
    raise Malformed(f"a quote is not closed, at character {start + 1}")


def json_end(line: str, start: int) -> int | None:
    """The end of the JSON at `start`, if a space or the end of the line follows."""
    try:
        _, end = decode_from(line, start)
    except Malformed:
        return None
    return end if end == len(line) or line[end].isspace() else None


def read_resp(
    file: BinaryIO, progress: ReadProgress
) -> Iterator[tuple[int, list[str] | Unreadable]]:
    """Yield the commands of an append-only file: `*3`, then `$5`, five bytes, and so on."""
    number = 0
    while header := file.readline(64):
        number += 1
        if not header.strip():
            continue
        words = []
        try:
            count = resp_number(header, b"*", MOST_ARGUMENTS)
            for _ in range(count):
                size = resp_number(file.readline(64), b"$", MOST_BYTES)
                body = file.read(size + 2)
                if len(body) != size + 2 or not body.endswith(b"\r\n"):
                    raise Malformed("a word is cut short")
                words.append(body[:-2].decode("utf-8", "surrogateescape"))
        except Malformed as error:
            yield number, Unreadable(number, f"command {number}: {error}; nothing after it is read")
            return
        progress(file.tell())
        yield number, words


def resp_number(line: bytes, sign: bytes, most: int) -> int:
    digits = line[1:].strip()
    if line[:1] != sign or not digits.isdigit() or len(digits) > 10 or int(digits) > most:
        raise Malformed(f"expected {sign.decode()} and a number, got {shown(line)}")
    return int(digits)


def read_answer(number: int, value: Any) -> Iterator[Fence | Unreadable]:
    """Yield the hooks or channels in an answer of the server; other answers have none."""
    if isinstance(value, list):
        for each in value:
            yield from read_hook(number, each)
        return
    if not isinstance(value, dict):
        yield Unreadable(number, f"an answer must be an object, got {shown(value)}")
        return
    found = value.get("hooks", value.get("chans"))
    if found is None and "command" in value and "name" in value:
        found = [value]
    if found is None and "ok" in value:
        return
    if not isinstance(found, list):
        yield Unreadable(number, f"no hooks or chans in it, got {shown(value)}")
        return
    for each in found:
        yield from read_hook(number, each)


def read_hook(number: int, value: Any) -> Iterator[Fence | Unreadable]:
    words = value.get("command") if isinstance(value, dict) else None
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        yield Unreadable(number, f"a hook must have a command, got {shown(value)}")
        return
    if not isinstance(name, str):
        yield Unreadable(number, f"a hook must have a name, got {shown(name)}")
        return
    meta = value.get("meta")
    ttl = value.get("ttl", -1)
    lasting = str(ttl) if isinstance(ttl, int | float) and ttl >= 0 else None
    pairs = meta if isinstance(meta, dict) else {}
    yield Fence(number, name, words, {str(key): str(each) for key, each in pairs.items()}, lasting)


def read_command(number: int, words: list[str] | Unreadable) -> Iterator[Fence | Unreadable]:
    """Yield the fence of a command, if it has one."""
    if isinstance(words, Unreadable):
        yield words
        return
    verb = words[0].upper() if words else ""
    if verb in (*SEARCHES, *SETS, *ENDS) and not all(map(is_text, words)):
        yield Unreadable(number, f"{verb} has a word that is not UTF-8")
    elif verb in SEARCHES:
        yield Fence(number, None, words, {})
    elif verb in ENDS and len(words) == 2:
        yield Fence(number, words[1], [], {})
    elif verb in WITHOUT_NAMES:
        yield Unreadable(number, f"{verb} is not followed: it ends fences without naming them")
    elif verb in SETS or verb in ENDS:
        yield read_set(number, verb, words)


def read_set(number: int, verb: str, words: list[str]) -> Fence | Unreadable:
    """Read `SETHOOK name endpoint [META key value] [EX seconds]` and its search.

    SETCHAN has no endpoint.
    """
    at = 3 if verb == "SETHOOK" else 2
    if len(words) <= at or verb in ENDS:
        return Unreadable(number, f"{verb} has too few or too many words, got {len(words)}")
    name, meta, ttl = words[1], {}, None
    while at < len(words):
        option = words[at].upper()
        if option == "META" and at + 2 < len(words):
            meta[words[at + 1]] = words[at + 2]
            at += 3
        elif option == "EX" and at + 1 < len(words):
            ttl = words[at + 1]
            at += 2
        else:
            break
    return Fence(number, name, words[at:], meta, ttl)


def is_text(word: str) -> bool:
    """Whether a word was UTF-8; bytes that were not are lone surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
