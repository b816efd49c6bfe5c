"""Parse and format times and durations: the rules of `ts`, `expires`, `last`, `every`.

A time is a count of microseconds since 1970-01-01T00:00:00Z, negative before it. Digits past the
microsecond are cut off, never rounded, so that a time and its prefix agree.
`placewire.kernels.json.timestamps` reads the same times from raw bytes; it accepts the same texts.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from placewire.model.errors import InvalidEvent

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
FAR_PAST_US = -(1 << 62)  # before every time and every seq
LONGEST_DURATION_US = 36_500 * DAY_US
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
FIRST_US = (date(1, 1, 1).toordinal() - _EPOCH_ORDINAL) * DAY_US  # the years 0001 to 9999
LAST_US = (date(9999, 12, 31).toordinal() + 1 - _EPOCH_ORDINAL) * DAY_US - 1
_DAYS_IN_400_YEARS = 146_097

# [0-9] and not \d: the digits of other scripts are invalid.
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_DURATION = re.compile(
    r"P(?=[0-9T])(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]+))?S)?)?"
)


def parse_timestamp(text: str) -> int:
    """Return the microseconds since the epoch of an RFC 3339 time; raises InvalidEvent."""
    parts = _TIMESTAMP.fullmatch(text)
    if parts is None:
        raise InvalidEvent(
            "a time must be RFC 3339 with an offset or Z, such as 2026-03-01T12:00:00Z, "
            f"got {_shown(text)}"
        )
    year, month, day, hour, minute, second = map(int, parts.group(1, 2, 3, 4, 5, 6))
    fraction, sign, offset_hour, offset_minute = parts.group(7, 8, 9, 10)
    days = _days_since_epoch(year, month, day)
    if days is None:
        raise InvalidEvent(f"a time must have a date that exists, got {_shown(text)}")
    if hour > 23 or minute > 59 or second > 59:
        raise InvalidEvent(f"a time of day must be 00:00:00 to 23:59:59, got {_shown(text)}")
    time_us = days * DAY_US + hour * HOUR_US + minute * MINUTE_US + second * SECOND_US
    time_us += _fraction_us(fraction)
    if sign is not None:
        hours, minutes = int(offset_hour), int(offset_minute)
        if hours > 23 or minutes > 59:
            raise InvalidEvent(f"a time's offset must be 00:00 to 23:59, got {_shown(text)}")
        offset_us = hours * HOUR_US + minutes * MINUTE_US
        time_us += offset_us if sign == "-" else -offset_us
    if not FIRST_US <= time_us <= LAST_US:
        raise InvalidEvent(f"a time must be in the years 0001 to 9999 in UTC, got {_shown(text)}")
    return time_us


def format_timestamp(ts_us: int) -> str:
    """Format a time in UTC with `Z`, with a fraction only if it is not zero."""
    text = (_EPOCH + timedelta(microseconds=ts_us)).replace(tzinfo=None).isoformat()
    return text + "Z"


def format_duration(duration_us: int) -> str:
    """Format a duration as ISO 8601."""
    seconds, fraction = divmod(duration_us, 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3_600)
    minutes, seconds = divmod(seconds, 60)
    last = f"{seconds}.{fraction:06d}".rstrip("0") if fraction else f"{seconds}"
    time = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if seconds or fraction:
        time += f"{last}S"
    return "P" + (f"{days}D" if days else "") + (f"T{time}" if time else "")


def parse_duration(text: str) -> int:
    """Return the microseconds of an ISO 8601 duration (`PnDTnHnMnS`); raises InvalidEvent."""
    parts = _DURATION.fullmatch(text)
    if parts is None:
        raise InvalidEvent(
            f"a duration must be written PnDTnHnMnS, such as P1D or PT0.5S, got {_shown(text)}"
        )
    days, hours, minutes, seconds, fraction = parts.groups()
    duration_us = (
        _count(days) * DAY_US
        + _count(hours) * HOUR_US
        + _count(minutes) * MINUTE_US
        + _count(seconds) * SECOND_US
        + _fraction_us(fraction)
    )
    if duration_us == 0:
        raise InvalidEvent(f"a duration must be at least a microsecond, got {_shown(text)}")
    if duration_us > LONGEST_DURATION_US:
        raise InvalidEvent(f"a duration must be at most P36500D, got {_shown(text)}")
    return duration_us


def read_duration(value: object, name: str) -> int:
    """Return the microseconds of the duration in the field `name`; raises InvalidEvent."""
    if not isinstance(value, str):
        raise InvalidEvent(f"{name}: must be a duration such as 'PT1H', got {value!r}")
    try:
        return parse_duration(value)
    except InvalidEvent as error:
        raise InvalidEvent(f"{name}: {error}") from None


def _days_since_epoch(year: int, month: int, day: int) -> int | None:
    """Return the day since the epoch, or None for a day that does not exist.

    Year 0000 is read here, because its last hours can be year 0001 in UTC; `date` does not know
    it, but the calendar repeats every 400 years.
    """
    try:
        if year == 0:
            return date(400, month, day).toordinal() - _DAYS_IN_400_YEARS - _EPOCH_ORDINAL
        return date(year, month, day).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def _fraction_us(digits: str | None) -> int:
    """Return the microseconds of a fraction of a second."""
    return int(digits[:6].ljust(6, "0")) if digits else 0


def _count(digits: str | None) -> int:
    """Return the number of at most 18 digits: `int` limits digits, and 18 exceed any duration."""
    if not digits:
        return 0
    return int(digits.lstrip("0")[:18] or "0")


def _shown(text: str) -> str:
    """Quote a text for an error, shortened if it is long."""
    return repr(text if len(text) <= 64 else text[:61] + "...")
