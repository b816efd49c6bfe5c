"""Events: typed structs, the strict decoder and its error messages.

msgspec decodes and checks types in one pass. It lets a repeated key through and does not look
inside the numbers of free-form values; `decode_event` closes those gaps.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import re
import sys
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, get_args

import msgspec

from placewire.model.errors import InvalidEvent

MOST_ID_CHARACTERS = 256
MOST_TEXT_BYTES = 65_536
MOST_DATA_BYTES = 16_384
MOST_K = 1_000
MOST_KEYWORDS = 64
MOST_TERMS = 256  # of a `where`

Unset = msgspec.UnsetType
UNSET = msgspec.UNSET


class Event(msgspec.Struct, tag_field="type", forbid_unknown_fields=True, gc=False):
    """The fields that every event has."""

    id: str
    ts: str


class ObjectEvent(Event, tag="object"):
    lon: float
    lat: float
    text: str
    data: Any = UNSET


class RequestEvent(Event):
    """The fields that subscriptions and queries share."""

    kind: str
    region: Any = UNSET
    where: Any = UNSET
    lon: float | Unset = UNSET
    lat: float | Unset = UNSET
    keywords: list[str] | Unset = UNSET
    k: int | Unset = UNSET
    mode: str | Unset = UNSET
    within_m: float | Unset = UNSET
    alpha: float | Unset = UNSET
    reach_m: float | Unset = UNSET


class SubscribeEvent(RequestEvent, tag="subscribe"):
    expires: str | Unset = UNSET
    data: Any = UNSET
    window: str | Unset = UNSET
    every: str | Unset = UNSET


class UnsubscribeEvent(Event, tag="unsubscribe"):
    pass


class QueryEvent(RequestEvent, tag="query", kw_only=True):
    last: str
    limit: int | Unset = UNSET


kind_values = attrgetter(
    "lon", "lat", "keywords", "k", "mode", "within_m", "alpha", "reach_m", "window", "every"
)

AnyEvent = ObjectEvent | SubscribeEvent | UnsubscribeEvent | QueryEvent
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)

# A key may be repeated if the same string precedes a colon twice. All strings are matched in turn,
# so that quotes stay paired. Escapes can write one key in several ways, so a line with a backslash
# is always checked in full.
_strings = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?', re.S)

_spaced_colon = re.compile(rb'"\s+:')

_place = re.compile(r"at `\$\.([a-z_]+)`$")
_unknown = re.compile(r"has an unknown field `(.*)`$", re.S)
_numbers = re.compile(rb'(?:"([^"\\]*)"\s*:\s*)?(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)')
_surrogate = re.compile(rb"\\u[dD][89a-fA-F]")
_long_number = re.compile(rb"[0-9]{309}")


def decode_event(line: bytes) -> AnyEvent:
    """Decode one line strictly; raises InvalidEvent."""
    try:
        event = decode_nested(line)
    except msgspec.ValidationError as error:
        raise InvalidEvent(describe_type_error(str(error), line)) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidEvent(describe_malformed(line, error)) from None
    if b"\\" in line or line.count(b'":') != count_keys(event) or _spaced_colon.search(line):
        keys = [name for name, colon in _strings.findall(line) if colon]
        if b"\\" in line or len(set(keys)) != len(keys):
            check_unique_keys(line)
    if not 1 <= len(event.id) <= MOST_ID_CHARACTERS:
        raise InvalidEvent(f"id must have 1 to 256 characters, got {len(event.id)}")
    return event


def count_keys(event: AnyEvent) -> int:
    """Return the number of keys of a simple event's line if none is repeated; -1 if unclear.

    Without a backslash, a quote and a colon always end a key, so counting them is enough.
    """
    if isinstance(event, UnsubscribeEvent):
        return 3
    if not isinstance(event, SubscribeEvent) or event.data is not UNSET:
        return -1
    keys = 4 + (event.expires is not UNSET)
    # Fields of a kind without `k` are not counted: such a line is checked in full.
    if event.k is not UNSET:
        keys += sum(value is not UNSET for value in kind_values(event))
    if isinstance(event.where, str):
        keys += 1
    elif event.where is not UNSET:
        return -1
    if isinstance(event.region, dict):
        keys += 2 + (3 if "circle" in event.region else 0)
    elif event.region is not UNSET:
        return -1
    return keys


def decode_nested(line: bytes) -> AnyEvent:
    """Decode a line; free-form data may nest as deeply as 16 KiB allow."""
    try:
        return _decoder.decode(line)
    except RecursionError:
        with deep_recursion():
            return _decoder.decode(line)


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise the recursion limit for JSON nested about 8,192 deep, the most that fits in 16 KiB."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(usual + 9_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def describe_type_error(said: str, line: bytes) -> str:
    """Reword a message of msgspec and add the value of the field that it names."""
    said = said.replace("Expected `object`", "an event must be one JSON object")
    said = said.replace("Object missing required field", "the event is missing the field")
    said = said.replace("Object contains unknown field", "the event has an unknown field")
    unknown = _unknown.search(said)
    if unknown is not None:
        return said + suggest_field(unknown.group(1))
    if said.startswith("Invalid value") and said.endswith("`$.type`"):
        said += ", must be object, subscribe, unsubscribe or query"
    place = _place.search(said)
    if place is None:
        return said
    try:
        value = json.dumps(json.loads(line)[place.group(1)], ensure_ascii=False)
    except (ValueError, KeyError, TypeError, RecursionError):
        return said
    return f"{said}, the value is {value if len(value) <= 60 else value[:57] + '...'}"


def suggest_field(name: str) -> str:
    """Suggest a known field for a misspelt one; empty if none is similar."""
    known = sorted({field for kind in get_args(AnyEvent) for field in kind.__struct_fields__})
    alike = difflib.get_close_matches(name, known, 1)
    return f", did you mean `{alike[0]}`?" if alike else ""


def describe_infinite(text: bytes, error: Exception) -> str:
    """Return a message if a number of a JSON text is too large for a float, else nothing."""
    for name, number in _numbers.findall(text) if "out of range" in str(error) else ():
        if math.isinf(float(number)):
            shown = number.decode() if len(number) <= 40 else f"{number[:37].decode()}..."
            field = f"{name.decode('utf-8', 'replace')[:40]}: " if name else ""
            return f"{field}a number must be finite, got {shown}"
    return ""


def describe_surrogate(text: bytes) -> str:
    """Return a message if a JSON text has a surrogate escape, else nothing."""
    return (
        "a string must not have a lone surrogate or be cut short" if _surrogate.search(text) else ""
    )


def describe_malformed(line: bytes, error: Exception) -> str:
    """Return the message for a line that is not JSON."""
    if not line.strip():
        return "an event must be one JSON object, got an empty line"
    if isinstance(error, UnicodeDecodeError):
        return f"a string must be UTF-8, got byte 0x{error.object[error.start]:02x}"
    if isinstance(error, RecursionError):
        return "JSON is nested too deeply"
    if lone := describe_surrogate(line):
        return lone
    if infinite := describe_infinite(line, error):
        return infinite
    start = line[:40].decode("utf-8", "replace")
    return f"{error}, got {start!r}{'...' if len(line) > 40 else ''}"


def check_unique_keys(line: bytes) -> None:
    """Raise InvalidEvent if any JSON object in the line has a key twice."""

    def pairs(found: list[tuple[str, Any]]) -> None:
        names = set()
        for name, _ in found:
            if name in names:
                raise InvalidEvent(f"key {name!r} is repeated")
            names.add(name)

    try:
        with deep_recursion():
            json.loads(line, object_pairs_hook=pairs)
    except InvalidEvent:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidEvent(f"JSON is malformed: {error}") from None


def compact_data(value: Any) -> bytes:
    """Encode `data` as compact JSON; raises InvalidEvent if it is too large or not finite."""
    if value is UNSET:
        return b""
    try:
        with deep_recursion():
            compact = msgspec.json.encode(value)
    except (ValueError, RecursionError):
        raise InvalidEvent("data: cannot be written as JSON") from None
    size = len(compact)
    if size > MOST_DATA_BYTES // 2:
        # Numbers can be written in several ways; the limit is defined by how Python writes them.
        with deep_recursion():
            size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MOST_DATA_BYTES:
        raise InvalidEvent(f"data: must be at most 16384 bytes, got {size}")
    if _long_number.search(compact):
        check_finite(value)
    return compact


def check_finite(value: Any) -> None:
    """Raise InvalidEvent if an integer inside `value` is larger than any 64-bit float."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, int):
            try:
                float(part)
            except OverflowError:
                raise InvalidEvent(
                    f"data: a number must be finite, got one of {part.bit_length()} bits"
                ) from None


def check_point(lon: float, lat: float) -> None:
    """Raise InvalidEvent unless a point is in range; msgspec has rejected infinities."""
    if not -180.0 <= lon <= 180.0:
        raise InvalidEvent(f"lon must be in [-180, 180], got {lon!r}")
    if not -90.0 <= lat <= 90.0:
        raise InvalidEvent(f"lat must be in [-90, 90], got {lat!r}")


def check_text(text: str) -> bytes:
    """Return the text as UTF-8; raises InvalidEvent if it exceeds 64 KiB."""
    encoded = text.encode("utf-8")
    if len(encoded) > MOST_TEXT_BYTES:
        raise InvalidEvent(f"text must be at most 65536 bytes, got {len(encoded)}")
    return encoded
