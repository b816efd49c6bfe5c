"""Send lines in chunks with idempotency keys: each line is accepted once despite retries."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from placewire.model.errors import Unusable
from placewire.serve.client.calls import Declined

CHUNK_LINES = 5_000
CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 24
WHOLE = (413, 422)  # statuses of a chunk with invalid lines

Send = Callable[[bytes, str], dict[str, Any]]  # lines and an idempotency key; raises Declined


class RejectedLine(NamedTuple):
    """A line that was not accepted; numbers start at 1."""

    line: int
    error: str


class Sent(NamedTuple):
    """What was accepted. `errors` has the first hundred of each chunk."""

    first_seq: int | None = None
    last_seq: int | None = None
    accepted: int = 0
    rejected: int = 0
    errors: tuple[RejectedLine, ...] = ()

    def with_more(self, more: Sent) -> Sent:
        return Sent(
            self.first_seq if self.first_seq is not None else more.first_seq,
            more.last_seq if more.last_seq is not None else self.last_seq,
            self.accepted + more.accepted,
            self.rejected + more.rejected,
            (*self.errors, *more.errors),
        )

    def as_facts(self) -> dict[str, Any]:
        return {**self._asdict(), "errors": [error._asdict() for error in self.errors]}


def send_chunks(send: Send, chunks: Iterable[Sequence[bytes]], name: str = "") -> Iterator[Sent]:
    """Send chunk by chunk; yields what was accepted of each.

    Under one `name` each line is accepted once, in this run and in later ones: the number of the
    first line of a chunk identifies it. Raises Declined if the lines have changed.
    """
    name = name or secrets.token_hex(12)
    line = 0
    for chunk in chunks:
        yield send_chunk(send, chunk, name, line)
        line += len(chunk)


def send_chunk(send: Send, lines: Sequence[bytes], name: str, before: int) -> Sent:
    """Send lines that follow `before` others; halve a chunk that is rejected for some of them."""
    if not any(line.strip() for line in lines):
        return Sent()
    try:
        reply = send(b"\n".join(lines) + b"\n", f"{name}-{before}")
    except Declined as error:
        if error.status not in WHOLE:
            raise
        if "rejected" in error.body:
            reply = error.body
        elif "sent_lines" in error.body:
            return send_rest(send, lines, name, before, error.body["sent_lines"])
        elif len(lines) == 1:
            return Sent(rejected=1, errors=(RejectedLine(before + 1, str(error)),))
        else:
            half = len(lines) // 2
            first = send_chunk(send, lines[:half], name, before)
            return first.with_more(send_chunk(send, lines[half:], name, before + half))
    first_seq, accepted = reply.get("first_seq"), int(reply["accepted"])
    last_seq = None if first_seq is None else first_seq + accepted - 1
    errors = tuple(RejectedLine(before + one["line"], one["error"]) for one in reply["errors"])
    return Sent(first_seq, last_seq, accepted, reply["rejected"], errors)


def send_rest(send: Send, lines: Sequence[bytes], name: str, before: int, sent: int) -> Sent:
    """Send the lines after the first `sent` ones, which must be the same as before."""
    if not 0 < sent < len(lines):
        raise Declined(
            f"idempotency-key: {sent:,} lines from line {before + 1:,} on were sent under {name!r}"
            " before, and are others now: what has changed needs another name",
            422,
        )
    first = send_chunk(send, lines[:sent], name, before)
    return first.with_more(send_chunk(send, lines[sent:], name, before + sent))


def chunks_of(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Group lines into chunks within the server's limits."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        if chunk and (len(chunk) >= CHUNK_LINES or size + len(line) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(line)
        size += len(line) + 1
    if chunk:
        yield chunk


def read_chunks(
    source: BinaryIO, name: str, read: Callable[[int], None], steady: bool = False
) -> Iterator[list[bytes]]:
    """Read a file or pipe in chunks of lines, as they arrive; raises Unusable.

    `steady` chunks do not depend on how the source arrives: each one is full. `read` receives the
    number of bytes of each read.
    """
    pieces = read_lines(source, name, read)
    if steady:
        yield from chunks_of(line for lines in pieces for line in lines)
        return
    for lines in pieces:
        yield from chunks_of(lines)


def read_lines(source: BinaryIO, name: str, read: Callable[[int], None]) -> Iterator[list[bytes]]:
    """The lines that each read completes."""
    rest = b""
    line = 1
    while piece := source.read1(CHUNK_BYTES):  # type: ignore[attr-defined]
        read(len(piece))
        *lines, rest = (rest + piece).split(b"\n")
        yield lines
        line += len(lines)
        if len(rest) > MAX_LINE_BYTES:
            raise Unusable(f"{name}: line {line:,} has no end: must be JSON Lines")
    if rest:
        yield [rest]
