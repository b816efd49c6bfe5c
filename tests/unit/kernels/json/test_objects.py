"""Plain objects out of raw lines: never a wrong value, never an invalid line, hardly ever slow."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from placewire.kernels.json.numbers import number_at_byte
from placewire.kernels.json.objects import PlainObjects, count_lines, find_lines, scan_objects
from placewire.model.times import parse_timestamp
from profiles import examples

LINE = (
    b'{"type":"object","id":"o1","ts":"2026-03-01T12:00:00Z","lon":-73.98,"lat":40.75,'
    b'"text":"Free coffee, 5th Ave!"}'
)


def block_of(data: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(data, dtype=np.uint8)


def scan(data: bytes) -> tuple[PlainObjects, list[int]]:
    raw = block_of(data)
    objects, slow = scan_objects(raw, find_lines(raw))
    lines = [*objects.line.tolist(), *slow.tolist()]
    assert sorted(lines) == list(range(count_lines(raw)))
    assert slow.tolist() == sorted(slow.tolist())
    assert objects.line.tolist() == sorted(objects.line.tolist())
    return objects, slow.tolist()


def is_plain(line: bytes) -> bool:
    """Whether the line is plain, the same with and without lines around it, and well decoded."""
    objects, slow = scan(line or b"\n")  # an empty block has no line
    among, _ = scan(LINE + b"\n" + line + b"\n" + LINE)
    assert among.line.tolist() == ([0, 2] if slow else [0, 1, 2])
    if slow:
        return False
    check_row(line, objects, 0, line)
    check_row(LINE + b"\n" + line + b"\n", among, 1, line)
    return True


def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


def check_row(block: bytes, objects: PlainObjects, row: int, line: bytes) -> None:
    """A plain row keeps every rule and has the values that Python's own readers find."""
    assert b"\n" not in line
    event = json.loads(line.decode("utf-8"), object_pairs_hook=no_repeats)
    assert event.keys() == {"type", "id", "ts", "lon", "lat", "text"}
    assert event["type"] == "object"
    assert 1 <= len(event["id"]) <= 256
    assert len(event["text"].encode("utf-8")) <= 65_536
    assert block[objects.id_start[row] : objects.id_end[row]].decode("utf-8") == event["id"]
    assert block[objects.text_start[row] : objects.text_end[row]].decode("utf-8") == event["text"]
    assert int(objects.ts_us[row]) == parse_timestamp(event["ts"])
    for field, value, limit in (("lon", objects.lon[row], 180), ("lat", objects.lat[row], 90)):
        assert type(event[field]) in (int, float)
        assert abs(event[field]) <= limit
        assert value == float(event[field])
        assert math.copysign(1, value) == math.copysign(1, float(event[field]))


# --- lines ---


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"x", b"\n"))), st.integers(0, 9))
def test_lines_end_at_line_feeds_only(parts: list[bytes], skipped: int) -> None:
    data = b"\n".join(parts)
    raw = block_of(data)[skipped:]  # any alignment
    data = data[skipped:]
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    offsets = find_lines(raw)
    assert count_lines(raw) == len(expected) == len(offsets) - 1
    assert offsets[0] == 0
    assert offsets[-1] == len(data)
    found = [data[a:b].removesuffix(b"\n") for a, b in pairwise(offsets)]
    assert found == expected


# --- plain lines ---

printable = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters='"\\', min_codepoint=0x20)
)
places = st.integers(-200, 200) | st.floats(-200, 200)
stamps = st.tuples(
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.sampled_from(["Z", "z", "+00:00", "-05:30", "+14:00"]),
).map("".join)
events = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "id": printable,
        "ts": stamps,
        "lon": places,
        "lat": places,
        "text": printable,
    }
)
orders = st.permutations(["type", "id", "ts", "lon", "lat", "text"])
separators = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r : ")])


def is_valid(event: dict[str, Any]) -> bool:
    try:
        parse_timestamp(event["ts"])
    except ValueError:
        return False
    return 1 <= len(event["id"]) <= 256 and abs(event["lon"]) <= 180 and abs(event["lat"]) <= 90


def has_exponent(event: dict[str, Any]) -> bool:
    return "e" in json.dumps([event["lon"], event["lat"]])


def written(event: dict[str, Any], order: list[str], separator: tuple[str, str]) -> bytes:
    ordered = {key: event[key] for key in order}
    return json.dumps(ordered, ensure_ascii=False, separators=separator).encode("utf-8")


@given(events, orders, separators)
def test_written_objects_are_plain_exactly_when_valid(
    event: dict[str, Any], order: list[str], separator: tuple[str, str]
) -> None:
    assume(not has_exponent(event))
    assert is_plain(written(event, order, separator)) == is_valid(event)


byte_changes = st.lists(
    st.tuples(
        st.integers(0, 200),
        st.sampled_from(["set", "insert", "delete"]),
        st.integers(0, 255) | st.sampled_from(list(b'{}",:.-+0189eETZtz\\ \t\r\n')),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=examples(500))
@given(events, orders, separators, byte_changes, st.integers(0, 300))
def test_whatever_is_plain_is_valid_and_rightly_decoded(
    event: dict[str, Any],
    order: list[str],
    separator: tuple[str, str],
    changes: list[tuple[int, str, int]],
    length: int,
) -> None:
    line = bytearray(written(event, order, separator))
    is_plain(bytes(line[:length]).replace(b"\n", b" "))
    for place, how, byte in changes:
        at = place % (len(line) + 1)
        end = at if how == "insert" else at + 1
        line[at:end] = b"" if how == "delete" else bytes([byte])
    is_plain(bytes(line).replace(b"\n", b" "))


def test_every_prefix_and_every_single_byte_change() -> None:
    for length in range(len(LINE)):
        assert not is_plain(LINE[:length])
    candidates = [
        LINE[:at] + bytes([byte]) + LINE[at + 1 :]
        for at in range(len(LINE))
        for byte in range(256)
        if byte != 0x0A
    ]
    data = b"\n".join(candidates)
    objects, slow = scan(data)
    assert len(slow) > len(candidates) // 2
    for row, number in enumerate(objects.line):
        check_row(data, objects, row, candidates[number])


@pytest.mark.parametrize("blank", [b"", b" ", b"\t", b"\r", b" \t\r "])
def test_white_space_is_allowed_around_every_token(blank: bytes) -> None:
    line = LINE.replace(b"{", b"{ ").replace(b"}", b" } ")
    for token in (b'":', b'",', b"98,", b"75,"):
        line = line.replace(token, token[:-1] + blank + token[-1:] + blank)
    assert is_plain(blank + line + blank)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"}", b"} x"),
        (b"}", b"},"),
        (b"}", b",}"),
        (b"}", b"}{}"),
        (b"{", b"{,"),
        (b"{", b"\xef\xbb\xbf{"),
        (b'"id":"o1",', b""),
        (b'"id":"o1",', b'"id":"o1","id":"o1",'),
        (b'"id":"o1",', b'"id":"o1","data":1,'),
        (b'"id":"o1"', b'"id":""'),
        (b'"id":"o1"', b'"id":1'),
        (b'"id":"o1"', b'"id":null'),
        (b'"id":"o1"', b"'id':'o1'"),
        (b'"id"', b'"ID"'),
        (b'"id"', b'"id "'),
        (b'"ts"', b'"tsx"'),
        (b'"object"', b'"objects"'),
        (b'"object"', b'"subscribe"'),
        (b"-73.98", b"180.1"),
        (b"-73.98", b"-180.00000000000003"),
        (b"40.75", b"90.00000000000002"),
        (b"40.75", b'"40.75"'),
        (b"40.75", b"true"),
        (b"40.75", b"NaN"),
        (b"40.75", b"Infinity"),
        (b"40.75", b"[40.75]"),
        (b"40.75", b"+40.75"),
        (b"40.75", b"040.75"),
        (b"40.75", b"-"),
        (b"40.75", b"-.5"),
        (b"40.75", b".5"),
        (b"40.75", b"1."),
        (b"40.75", b"0.5.5"),
        (b"40.75", b"0x10"),
        (b"40.75", b"4 0"),
        (b"Free", b"Fr\\ee"),
        (b"Free", b"Fr\tee"),
        (b"Free", b"Fr\x00ee"),
        (b"Free", b"\xc0\xaf"),
        (b"Free", b"\xc1\xbf"),
        (b"Free", b"\xe0\x9f\xbf"),
        (b"Free", b"\xed\xa0\x80"),
        (b"Free", b"\xed\xbf\xbf"),
        (b"Free", b"\xf0\x8f\xbf\xbf"),
        (b"Free", b"\xf4\x90\x80\x80"),
        (b"Free", b"\xf5\x80\x80\x80"),
        (b"Free", b"\x80"),
        (b"Free", b"\xff"),
        (b"Ave!", b"\xe6\x9d"),
        (b"Ave!", b"\xf0\x9f\x98"),
        (b"12:00:00Z", b"12:00:60Z"),
        (b"T12", b" 12"),
    ],
)
def test_other_lines_are_slow(old: bytes, new: bytes) -> None:
    assert old in LINE
    assert not is_plain(LINE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Free", "\x7fé߿ࠀ퟿\ue000￿𐀀\U0010ffff".encode()),
        (b"Free coffee, 5th Ave!", b""),
        (b"-73.98", b"-0"),
        (b"-73.98", b"-0.0"),
        (b"-73.98", b"0"),
        (b"-73.98", b"-180"),
        (b"-73.98", b"180.0"),
        (b"-73.98", b"180.00000000000001"),
        (b"-73.98", b"0.00012345678901234567"),
        (b"-73.98", b"-73.98350000000000000"),
        (b"12:00:00Z", b"12:00:00.123456789+01:00"),
    ],
)
def test_unusual_plain_lines(old: bytes, new: bytes) -> None:
    assert is_plain(LINE.replace(old, new, 1))


@pytest.mark.parametrize("character", ["a", "é", "東", "😀"])
def test_limits_of_id_and_text(character: str) -> None:
    for count, plain in ((256, True), (257, False)):
        assert is_plain(LINE.replace(b"o1", (character * count).encode())) == plain
    width = len(character.encode())
    full = character * (65_536 // width) + "." * (65_536 % width)
    assert is_plain(LINE.replace(b"Free coffee, 5th Ave!", full.encode()))
    assert not is_plain(LINE.replace(b"Free coffee, 5th Ave!", full.encode() + b"."))


def test_blocks_of_nothing_and_of_empty_lines() -> None:
    assert scan(b"")[1] == []
    assert scan(b"\n")[1] == [0]
    assert scan(b"\n\n" + LINE)[1] == [0, 1]


def test_part_of_the_lines_and_a_writable_block() -> None:
    raw = np.array(block_of(b"\n".join([LINE] * 5)))
    objects, slow = scan_objects(raw, find_lines(raw)[1:4])
    assert objects.line.tolist() == [0, 1]
    assert len(slow) == 0
    assert objects.id_start[0] == len(LINE) + 1 + LINE.index(b"o1")
    assert raw.flags.writeable


# --- numbers ---


def read_number(text: str) -> float | None:
    end, value = number_at_byte(block_of(text.encode() + b","), 0)
    if end < 0:
        return None
    assert end == len(text)
    return value


def same(value: float | None, text: str) -> bool:
    expected = float(json.loads(text))
    return value == expected and math.copysign(1, value) == math.copysign(1, expected)


@settings(max_examples=examples(1000))
@given(st.integers(0, 10**19 - 1), st.integers(0, 19), st.booleans(), st.integers(0, 27))
def test_decimals_are_rounded_as_float_rounds(
    digits: int, cut: int, negative: bool, after: int
) -> None:
    number = str(digits // 10**cut).rjust(after + 1, "0")
    text = ("-" if negative else "") + number[: len(number) - after]
    text += "." + number[len(number) - after :] if after else ""
    value = read_number(text)
    # Whole numbers past 2^53 are in no range of the format and may be left undecided.
    assert same(value, text) or (value is None and after <= 4)


@settings(max_examples=examples(1000))
@given(st.floats(-180, 180))
def test_written_floats_come_back(number: float) -> None:
    text = repr(number)
    assume("e" not in text)
    assert same(read_number(text), text)


@settings(max_examples=examples(1000))
@given(st.floats(0.001, 180), st.integers(-3, 3))
def test_decimals_near_the_middle_of_two_floats(number: float, steps: int) -> None:
    middle = (Fraction(number) + Fraction(math.nextafter(number, 1000))) / 2
    after = 19 - len(str(int(number)))
    text = format(Decimal(int(middle * 10**after) + steps).scaleb(-after), "f")
    assert same(read_number(text), text)
