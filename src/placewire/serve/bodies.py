"""Bodies of requests: read within limits of size and time, decoded strictly."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request

from placewire.model.errors import InvalidEvent
from placewire.model.events import name_infinite, name_surrogate, refuse_repeated_keys
from placewire.serve.errors import Refused

MOST_BYTES = 1 << 17  # of one event: a text and data at their largest, escaped
MOST_BULK_BYTES = 1 << 24
JSON, NDJSON = "application/json", "application/x-ndjson"


def media_type(request: Request) -> str:
    """What the body says it is; raises Refused if it is neither JSON nor lines of it."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "content-encoding: must be none")
    given = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if given not in (JSON, NDJSON):
        raise Refused(415, f"content-type: must be {JSON} or {NDJSON}, got {given[:80]!r}")
    return given


async def read_body(request: Request, most: int) -> bytes:
    """The whole body; raises Refused."""
    patience_s = request.app.state.gateway.options.patience.body_s
    said = request.headers.get("content-length", "0")
    if said.isdecimal() and int(said) > most:
        raise Refused(413, f"body: must be at most {most} bytes, got {said}")
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience_s):
            async for piece in request.stream():
                size += len(piece)
                if size > most:
                    raise Refused(413, f"body: must be at most {most} bytes, got more")
                pieces.append(piece)
    except TimeoutError:
        raise Refused(408, f"body: must come within {patience_s:g} s") from None
    except ClientDisconnect:
        raise Refused(400, "body: the connection was closed before its end") from None
    return b"".join(pieces)


async def read_object(request: Request, most: int = MOST_BYTES) -> dict[str, Any]:
    """A body that is one JSON object; raises Refused."""
    if media_type(request) != JSON:
        raise Refused(415, f"content-type: must be {JSON}")
    return decode_object(await read_body(request, most))


def decode_object(body: bytes) -> dict[str, Any]:
    """One JSON object with no key twice; raises Refused."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        why = name_infinite(body, error) or name_surrogate(body)
        why = why or f"must be one JSON object: {error}"
        raise Refused(400, f"body: {why}") from None
    if not isinstance(decoded, dict):
        raise Refused(422, f"body: must be one JSON object, got {type(decoded).__name__}")
    try:
        refuse_repeated_keys(body)
    except InvalidEvent as error:
        raise Refused(422, f"body: {error}") from None
    return decoded


def read_number(request: Request, name: str, otherwise: int, least: int, most: int) -> int:
    """A whole number of the address; raises Refused."""
    given = request.query_params.get(name)
    if given is None:
        return otherwise
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19):
        raise Refused(422, f"{name}: must be a whole number, got {given[:40]!r}")
    if not least <= int(given) <= most:
        raise Refused(422, f"{name}: must be {least}..{most}, got {given}")
    return int(given)


def read_flag(request: Request, name: str) -> bool:
    """A switch of the address; raises Refused."""
    given = request.query_params.get(name, "0")
    if given not in ("0", "1"):
        raise Refused(422, f"{name}: must be 0 or 1, got {given[:40]!r}")
    return given == "1"
