"""Read decimal numbers from raw bytes, rounded to 64-bit floats exactly as `float` rounds them.

Short decimals take one exact division. Longer ones, such as `repr` writes, use the algorithm of
Eisel and Lemire ("Number Parsing at a Gigabyte per Second", 2021): multiply the digits by a 128-bit
power of five and round the top bits. All other numbers are left to the strict decoder.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placewire.kernels.jit import kernel, subkernel

MOST_DIGITS = 19  # any 19 digits fit 64 bits
MOST_EXACT_PLACES = 22  # 10^22 is the last power of ten that is a float
MOST_PLACES = 27  # digits after the dot: 5^27 is the last that fits 64 bits; repr writes at most 21

POWERS_OF_TEN = np.array([float(10**n) for n in range(MOST_EXACT_PLACES + 1)], dtype=np.float64)


def _reciprocals_of_powers_of_five() -> npt.NDArray[np.uint64]:
    """Return 2^b / 5^n in row n, rounded up, as top and bottom 64 bits; b is chosen to fill 128."""
    table = np.zeros((MOST_PLACES + 1, 2), dtype=np.uint64)
    for places in range(1, MOST_PLACES + 1):
        power = 5**places
        reciprocal = (1 << (power.bit_length() + 127)) // power + 1
        table[places] = reciprocal >> 64, reciprocal & (2**64 - 1)
    return table


RECIPROCALS = _reciprocals_of_powers_of_five()

TEN = np.uint64(10)
ONE = np.uint64(1)
LOW_HALF = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
TOP_BIT = np.uint64(1 << 63)
ALL_BITS = np.uint64(2**64 - 1)
NINE_BITS = np.uint64(0x1FF)
LARGEST_EXACT = np.uint64(1 << 53)
HIDDEN_BIT = np.uint64(1 << 52)
NINE = np.uint64(9)
FIFTY_TWO = np.uint64(52)
SIXTY_THREE = np.uint64(63)
THREE = np.uint64(3)


@subkernel
def _product_of_words(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the top and bottom 64 bits of a * b."""
    a_low, a_high = a & LOW_HALF, a >> HALF
    b_low, b_high = b & LOW_HALF, b >> HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> HALF)
    other = a_low * b_high + (middle & LOW_HALF)
    top = a_high * b_high + (middle >> HALF) + (other >> HALF)
    return top, (other << HALF) | (low & LOW_HALF)


@kernel
def float_of_decimal(digits: np.uint64, places: int) -> tuple[bool, float]:
    """Return whether digits / 10^places could be rounded here, and the nearest float (else 0)."""
    if digits <= LARGEST_EXACT and places <= MOST_EXACT_PLACES:
        return True, float(np.float64(np.int64(digits)) / POWERS_OF_TEN[places])
    if places < 1 or places > MOST_PLACES:
        return False, 0.0
    if digits == np.uint64(0):
        return True, 0.0
    shifted = digits
    zeros = 0
    while shifted < TOP_BIT:
        shifted <<= ONE
        zeros += 1
    top, bottom = _product_of_words(shifted, RECIPROCALS[places, 0])
    if top & NINE_BITS == NINE_BITS:
        # The part of the power not yet multiplied could carry into the bits that decide.
        carry, _ = _product_of_words(shifted, RECIPROCALS[places, 1])
        bottom += carry
        if bottom < carry:
            top += ONE
        if bottom == ALL_BITS:
            return False, 0.0
    upper = top >> SIXTY_THREE
    shift = upper + NINE
    mantissa = top >> shift  # 54 bits: the 53 of a float and one to round by
    if bottom <= ONE and mantissa & THREE == ONE and mantissa << shift == top:
        return False, 0.0  # perhaps half way between two floats
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    # 217706 / 2^16 approximates log2(10) closely enough for every exponent of the table.
    exponent = ((-217_706 * places) >> 16) + 63 + np.int64(upper) - zeros + 1023
    if mantissa >= HIDDEN_BIT + HIDDEN_BIT:
        mantissa = HIDDEN_BIT
        exponent += 1
    bits = np.uint64((mantissa & ~HIDDEN_BIT) | (np.uint64(exponent) << FIFTY_TWO))
    return True, bits.view(np.float64)


@kernel
def number_at_byte(raw: npt.NDArray[np.uint8], start: int) -> tuple[int, float]:
    """Return where the JSON number at `start` ends, and its value; (-1, 0) if undecided.

    A number with an exponent is undecided. `raw` must extend past the number; the caller checks the
    byte that follows.
    """
    at = start
    negative = raw[at] == ord("-")
    if negative:
        at += 1
    first = at
    digits = np.uint64(0)
    while raw[at] >= ord("0") and raw[at] <= ord("9"):
        digits = digits * TEN + np.uint64(raw[at] - 48)
        at += 1
    count = at - first
    if count == 0 or (count > 1 and raw[first] == ord("0")):
        return -1, 0.0
    places = 0
    if raw[at] == ord("."):
        at += 1
        dot = at
        while raw[at] >= ord("0") and raw[at] <= ord("9"):
            digits = digits * TEN + np.uint64(raw[at] - 48)
            at += 1
        places = at - dot
        if places == 0:
            return -1, 0.0
        count += places
        if count > MOST_DIGITS:  # leading zeros do not count
            zero = first
            while zero < at and (raw[zero] == ord("0") or raw[zero] == ord(".")):
                if raw[zero] == ord("0"):
                    count -= 1
                zero += 1
    if count > MOST_DIGITS:
        return -1, 0.0
    decided, value = float_of_decimal(digits, places)
    if not decided:
        return -1, 0.0
    # The integer -0 is 0 in every JSON reader; the fraction -0.0 keeps its sign.
    if negative and (places > 0 or value != 0.0):
        value = -value
    return at, value
