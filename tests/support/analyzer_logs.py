"""A log whose texts and words test every step of an analyzer."""

from __future__ import annotations

import json
from typing import Any

from reference_analyzers import WORDS

# Most words have a term under every analyzer; the others make events invalid.
TELLING = [word for word in WORDS if word not in ("the", "Not", "☕", "'", WORDS[-3])]


def sample_log(objects: int = 300) -> bytes:
    """Objects and subscriptions of all kinds in many scripts, some plain, some not."""
    events: list[dict[str, Any]] = []
    for at in range(objects):
        ts = f"2026-03-01T12:{at // 60:02d}:{at % 60:02d}Z"
        word, other = TELLING[at % len(TELLING)], TELLING[at * 7 % len(TELLING)]
        if at % 3 == 0:
            point = {"lon": at % 7, "lat": at % 5}
            kinds: list[dict[str, Any]] = [
                {"kind": "boolean", "where": {"any": [f'"{word}"', other]}},
                {"kind": "boolean", "where": "coffees OR runs"},
                {"kind": "nearest", **point, "keywords": [word, other], "k": 2},
                {"kind": "nearest", **point, "keywords": ["coffees"], "k": 2},
                {"kind": "relevant", **point, "keywords": [word], "k": 3, "alpha": 0.5},
                {"kind": "relevant", **point, "keywords": ["runs", "coffee"], "k": 1, "alpha": 0},
                {"kind": "trending", "k": 5, "window": "PT1M", "every": "PT20S"},
            ]
            own = kinds[at // 3 % len(kinds)]
            events.append({"type": "subscribe", "id": f"s{at}", "ts": ts, **own})
        if at % 29 == 0:
            asked = {"type": "query", "id": f"q{at}", "ts": ts, "last": "PT1H"}
            events.append({**asked, "kind": "boolean", "where": word})
            events.append({**asked, "kind": "trending", "k": 20})
        text = f"{word} {other} {WORDS[at * 11 % len(WORDS)]} the running coffee"
        point = {"lon": at % 9, "lat": at % 4}
        events.append({"type": "object", "id": f"o{at}", "ts": ts, **point, "text": text})
    return b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in events)
