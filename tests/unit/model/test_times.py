"""Times and durations: text to microseconds and back, in Python and in the kernel."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from placewire.kernels.json.timestamps import timestamp_of_bytes
from placewire.model.errors import InvalidEvent
from placewire.model.times import format_timestamp, parse_duration, parse_timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
DAY = 86_400 * SECOND


def kernel_reads(text: str) -> int | None:
    raw = np.frombuffer(b'"' + text.encode("utf-8", "surrogatepass") + b'"', dtype=np.uint8)
    ok, ts_us = timestamp_of_bytes(raw, 1, len(raw) - 1)
    return ts_us if ok else None


def python_reads(text: str) -> int | None:
    try:
        return parse_timestamp(text)
    except InvalidEvent:
        return None


zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(timezones=zones)


@given(moments, st.sampled_from("Tt"), st.text("0123456789", max_size=4))
def test_times_agree_with_datetime(moment: datetime, separator: str, more_digits: str) -> None:
    text = moment.isoformat(sep=separator)
    if "." in text:
        cut = text.index(".") + 7
        text = text[:cut] + more_digits + text[cut:]
    expected = (moment - EPOCH) // timedelta(microseconds=1)
    year_one = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    year_last = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    if year_one <= expected <= year_last:
        assert python_reads(text) == kernel_reads(text) == expected
    else:
        assert python_reads(text) is None
        assert kernel_reads(text) is None


@given(st.datetimes())
def test_formatted_times_parse_back(moment: datetime) -> None:
    ts_us = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    text = format_timestamp(ts_us)
    assert text.endswith("Z")
    assert ("." in text) == (moment.microsecond != 0)
    assert python_reads(text) == kernel_reads(text) == ts_us


@pytest.mark.parametrize(
    ("ts_us", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_500_000, "1970-01-01T00:00:01.500000Z"),
        (10, "1970-01-01T00:00:00.000010Z"),
        (10_000_000, "1970-01-01T00:00:10Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_formats(ts_us: int, text: str) -> None:
    assert format_timestamp(ts_us) == text
    assert python_reads(text) == kernel_reads(text) == ts_us


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2024-02-29t12:00:00z", "2024-02-29T12:00:00Z"),
        ("2026-03-01T12:00:00-00:00", "2026-03-01T12:00:00Z"),
        ("2026-03-01T12:00:00.1234569+01:30", "2026-03-01T10:30:00.123456Z"),
        ("2026-03-01T12:00:00." + "9" * 5000 + "Z", "2026-03-01T12:00:00.999999Z"),
        ("0000-12-31T23:30:00-00:30", "0001-01-01T00:00:00Z"),
        ("0001-01-01T23:59:00+23:59", "0001-01-01T00:00:00Z"),
        ("9999-12-31T00:00:00.5-23:59", "9999-12-31T23:59:00.5Z"),
    ],
)
def test_spellings(text: str, same_as: str) -> None:
    assert python_reads(text) == kernel_reads(text) == parse_timestamp(same_as)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-03-01",
        "2026-03-01 12:00:00Z",
        "2026-03-01T12:00:00",
        "2026-03-01T12:00Z",
        "2026-03-01T12:00:60Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-00-01T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "1900-02-29T12:00:00Z",
        "2026-04-31T12:00:00Z",
        "2026-04-00T12:00:00Z",
        "2026-03-01T12:00:00.Z",
        "2026-03-01T12:00:00,5Z",
        "2026-03-01T12:00:00.5",
        "2026-03-01T12:00:00+1:00",
        "2026-03-01T12:00:00+01",
        "2026-03-01T12:00:00+0100",
        "2026-03-01T12:00:00+24:00",
        "2026-03-01T12:00:00+01:60",
        "2026-03-01T12:00:00Z ",
        " 2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00Z\n",
        "2026-03-01T12:00:00ZZ",
        "+026-03-01T12:00:00Z",
        "2026-03-01T12:00:0٣Z",
        "２026-03-01T12:00:00Z",
        "0000-12-31T23:29:59.9-00:30",
        "0000-06-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
    ],
)
def test_invalid_times(text: str) -> None:
    assert kernel_reads(text) is None
    with pytest.raises(InvalidEvent, match="got "):
        parse_timestamp(text)


@given(
    moments.map(datetime.isoformat),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("0123456789:-+.TtZz ٣é")), max_size=3),
    st.integers(0, 40),
)
@example("2026-03-01T12:00:00Z", [], 20)
def test_python_and_kernel_agree_on_broken_times(
    text: str, changes: list[tuple[int, str]], length: int
) -> None:
    for at, character in changes:
        text = text[:at] + character + text[at + 1 :]
    for broken in (text, text[:length], text[:length] + "Z"):
        assert python_reads(broken) == kernel_reads(broken)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P1D", DAY),
        ("PT1H", 3600 * SECOND),
        ("PT1M", 60 * SECOND),
        ("PT1S", SECOND),
        ("P1DT1H1M1.5S", DAY + 3661 * SECOND + 500_000),
        ("PT0.0000019S", 1),
        ("P0DT1S", SECOND),
        ("PT36H", 36 * 3600 * SECOND),
        ("P36500D", 36_500 * DAY),
        ("PT3153600000.0000009S", 36_500 * DAY),
        ("P" + "0" * 5000 + "7D", 7 * DAY),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "P", "PT", "P1DT", "1D", "P1", "P1H", "P1S", "PT1D", "P1W", "P1M", "P1Y", "p1D", "P1d",
        "Pt1S", "PT1s", "-P1D", "+P1D", "P-1D", "P1.5D", "PT1.5H", "PT1.S", "PT.5S", "PT1,5S",
        "P0D", "PT0S", "PT0.0000009S", "P36501D", "P36500DT0.000001S", "P" + "9" * 5000 + "D",
        "PT1M1H", "P1D ", " P1D", "P1D\n", "P٣D", "PT1H1H",
    ],
)  # fmt: skip
def test_invalid_durations(text: str) -> None:
    with pytest.raises(InvalidEvent, match="got ") as error:
        parse_duration(text)
    assert len(str(error.value)) < 200


@given(st.integers(0, 36_499), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59_999_999))
def test_durations_add_up(days: int, hours: int, minutes: int, us: int) -> None:
    seconds = f"{us // SECOND}.{us % SECOND:06}"
    expected = timedelta(days=days, hours=hours, minutes=minutes, microseconds=us)
    text = f"P{days}DT{hours}H{minutes}M{seconds}S"
    if expected:
        assert parse_duration(text) == expected // timedelta(microseconds=1)
    else:
        with pytest.raises(InvalidEvent):
            parse_duration(text)
