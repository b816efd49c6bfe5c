"""Read RFC 3339 times from raw bytes as microseconds since 1970-01-01T00:00:00Z.

`placewire.model.times` defines the rules and the messages of errors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placewire.kernels.jit import kernel, subkernel
from placewire.model.times import FIRST_US, LAST_US

# Days before each month of a common year; entry 0 is unused.
DAYS_BEFORE_MONTH = np.array(
    [0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365], dtype=np.int64
)
DAYS_BEFORE_1970 = 719_162  # since 0001-01-01


@subkernel
def _two_digits(raw: npt.NDArray[np.uint8], at: int) -> int:
    """Return the number that two ASCII digits form, or -1 if they are not digits."""
    tens = np.int64(raw[at]) - 48
    ones = np.int64(raw[at + 1]) - 48
    if tens < 0 or tens > 9 or ones < 0 or ones > 9:
        return -1
    return int(tens * 10 + ones)


@kernel
def timestamp_of_bytes(raw: npt.NDArray[np.uint8], start: int, end: int) -> tuple[bool, int]:
    """Whether raw[start:end] is a valid time, and its microseconds since the epoch (else 0)."""
    if end - start < 20:
        return False, 0
    century = _two_digits(raw, start)
    year = _two_digits(raw, start + 2)
    month = _two_digits(raw, start + 5)
    day = _two_digits(raw, start + 8)
    hour = _two_digits(raw, start + 11)
    minute = _two_digits(raw, start + 14)
    second = _two_digits(raw, start + 17)
    if century < 0 or year < 0 or month < 1 or month > 12 or day < 1:
        return False, 0
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return False, 0
    if raw[start + 4] != ord("-") or raw[start + 7] != ord("-"):
        return False, 0
    if raw[start + 10] | 0x20 != ord("t"):
        return False, 0
    if raw[start + 13] != ord(":") or raw[start + 16] != ord(":"):
        return False, 0

    year += 100 * century
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days_in_month = DAYS_BEFORE_MONTH[month + 1] - DAYS_BEFORE_MONTH[month]
    if day > days_in_month and not (leap and month == 2 and day == 29):
        return False, 0
    days = DAYS_BEFORE_MONTH[month] + day - 1
    if leap and month > 2:
        days += 1
    # Year 0000 is accepted: its last hours can be year 0001 in UTC. Leap days before this year are
    # counted from year -400, so that no dividend is negative.
    before = year + 399
    days += 365 * (year - 1) + before // 4 - before // 100 + before // 400 - 97
    seconds = (days - DAYS_BEFORE_1970) * 86_400 + hour * 3600 + minute * 60 + second

    at = start + 19
    fraction_us = 0
    if raw[at] == ord("."):
        at += 1
        first = at
        unit = 100_000
        while at < end and raw[at] >= ord("0") and raw[at] <= ord("9"):
            fraction_us += int(np.int64(raw[at]) - 48) * unit
            unit //= 10  # 0 after six digits: further digits are truncated
            at += 1
        if not first < at < end:
            return False, 0

    if raw[at] | 0x20 == ord("z"):
        if at + 1 != end:
            return False, 0
    else:
        if at + 6 != end or raw[at + 3] != ord(":"):
            return False, 0
        hours = _two_digits(raw, at + 1)
        minutes = _two_digits(raw, at + 4)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return False, 0
        offset = hours * 3600 + minutes * 60
        if raw[at] == ord("+"):
            seconds -= offset
        elif raw[at] == ord("-"):
            seconds += offset
        else:
            return False, 0
    ts_us = seconds * 1_000_000 + fraction_us
    if ts_us < FIRST_US or ts_us > LAST_US:
        return False, 0
    return True, ts_us


@kernel
def slices_to_timestamps(raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Return which slices of `raw` are timestamps, bool[n], and their microseconds i64[n]."""
    valid = np.empty(starts.size, np.bool_)
    times = np.empty(starts.size, np.int64)
    for i in range(starts.size):
        valid[i], times[i] = timestamp_of_bytes(raw, starts[i], ends[i])
    return valid, times
