"""Keys of plain changes: which there are, each as a bit, and which make a whole event."""

from __future__ import annotations

from placewire.kernels.bytewords import Bytes, byte_at
from placewire.kernels.jit import inlined
from placewire.kernels.strings import spells
from placewire.model.subscriptions import BOOLEAN, NEAREST

TYPE, ID, TS, KIND, EXPIRES, REGION, WHERE = 1, 2, 4, 8, 16, 32, 64
LON, LAT, KEYWORDS, K, MODE, WITHIN, ALPHA, REACH = (1 << n for n in range(7, 15))
UNSUBSCRIBE_KEYS = TYPE | ID | TS
SUBSCRIBE_KEYS = TYPE | ID | TS | KIND
COMMON_KEYS = SUBSCRIBE_KEYS | EXPIRES
BOOLEAN_KEYS = REGION | WHERE
NEEDED_OF_NEAREST = LON | LAT | KEYWORDS | K
NEAREST_KEYS = NEEDED_OF_NEAREST | MODE | WITHIN
NEEDED_OF_RELEVANT = LON | LAT | KEYWORDS | K | ALPHA
RELEVANT_KEYS = NEEDED_OF_RELEVANT | REACH
FIGURES = LON | LAT | WITHIN | ALPHA | REACH

TYPE_KEY, ID_KEY, TS_KEY, KIND_KEY = b'type"', b'id"', b'ts"', b'kind"'
EXPIRES_KEY, REGION_KEY, WHERE_KEY = b'expires"', b'region"', b'where"'
LON_KEY, LAT_KEY, KEYWORDS_KEY, K_KEY = b'lon"', b'lat"', b'keywords"', b'k"'
MODE_KEY, WITHIN_KEY, ALPHA_KEY, REACH_KEY = b'mode"', b'within_m"', b'alpha"', b'reach_m"'


@inlined
def key_at(raw: Bytes, at: int) -> tuple[int, int]:
    """The bit of the key whose inside begins at `at`, and the place after its quote; 0 unknown."""
    first = byte_at(raw, at)
    if first == ord("t"):
        if spells(raw, at, TYPE_KEY):
            return TYPE, at + len(TYPE_KEY)
        if spells(raw, at, TS_KEY):
            return TS, at + len(TS_KEY)
    elif first == ord("i"):
        if spells(raw, at, ID_KEY):
            return ID, at + len(ID_KEY)
    elif first == ord("k"):
        if spells(raw, at, KIND_KEY):
            return KIND, at + len(KIND_KEY)
        if spells(raw, at, KEYWORDS_KEY):
            return KEYWORDS, at + len(KEYWORDS_KEY)
        if spells(raw, at, K_KEY):
            return K, at + len(K_KEY)
    elif first == ord("r"):
        if spells(raw, at, REGION_KEY):
            return REGION, at + len(REGION_KEY)
        if spells(raw, at, REACH_KEY):
            return REACH, at + len(REACH_KEY)
    elif first == ord("w"):
        if spells(raw, at, WHERE_KEY):
            return WHERE, at + len(WHERE_KEY)
        if spells(raw, at, WITHIN_KEY):
            return WITHIN, at + len(WITHIN_KEY)
    elif first == ord("l"):
        if spells(raw, at, LON_KEY):
            return LON, at + len(LON_KEY)
        if spells(raw, at, LAT_KEY):
            return LAT, at + len(LAT_KEY)
    elif first == ord("m"):
        if spells(raw, at, MODE_KEY):
            return MODE, at + len(MODE_KEY)
    elif first == ord("a"):
        if spells(raw, at, ALPHA_KEY):
            return ALPHA, at + len(ALPHA_KEY)
    elif first == ord("e") and spells(raw, at, EXPIRES_KEY):
        return EXPIRES, at + len(EXPIRES_KEY)
    return 0, at


@inlined
def keys_complete(seen: int, comes: bool, kind: int) -> bool:
    """Whether the keys are those of an unsubscribe, or of a subscribe of this kind."""
    if not comes:
        return seen == UNSUBSCRIBE_KEYS
    if seen & SUBSCRIBE_KEYS != SUBSCRIBE_KEYS:
        return False
    if kind == BOOLEAN:
        return seen & BOOLEAN_KEYS != 0 and seen & ~(COMMON_KEYS | BOOLEAN_KEYS) == 0
    if kind == NEAREST:
        needed, own = NEEDED_OF_NEAREST, NEAREST_KEYS
    else:
        needed, own = NEEDED_OF_RELEVANT, RELEVANT_KEYS
    return seen & needed == needed and seen & ~(COMMON_KEYS | own) == 0
