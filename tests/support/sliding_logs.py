"""A log of objects and `relevant` subscriptions whose windows slide."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

WORDS = ["tea", "coffee", "jazz", "é", "river", "the", "free", "a"]
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def sliding_log(seed: int) -> bytes:
    """A dense log of few words and places: scores tie, buffers run short and windows slide."""
    rng = random.Random(seed)
    words = WORDS[: rng.choice([1, 2, 4, 8])]
    spread = rng.choice([0.0, 0.01, 1, 90])
    ids = [f"s{i}" for i in range(rng.choice([1, 3, 12]))]
    ks = rng.choice([[1], [1, 2, 3], [2, 5, 9], [1, 20, 1000]])
    late = rng.random() < 0.5
    now, lines = START, []
    for number in range(rng.choice([20, 60, 150])):
        now += timedelta(seconds=rng.choice([0, 0, 0.5, 1, 1, 2, 5, 40 * (rng.random() < 0.1)]))
        behind = rng.choice([0] * 5 + [1, 3, 10, 50]) if late else 0
        event: dict[str, Any] = {"ts": (now - timedelta(seconds=behind)).isoformat()}
        place = {"lon": round(rng.uniform(-spread, spread), 3), "lat": round(rng.random(), 3)}
        kind = rng.choices(["object", "subscribe", "unsubscribe"], [15, 4, 1])[0]
        if kind == "object":
            text = " ".join(rng.choices(words, k=rng.choice([0, 1, 1, 2, 3, 5])))
            event |= {"id": rng.choice(["x", f"o{number}"]), "text": text, **place}
        else:
            event["id"] = rng.choice(ids)
        if kind == "subscribe":
            event |= {"kind": "relevant", "k": rng.choice(ks), **place}
            event["keywords"] = rng.sample(words, rng.randint(1, len(words)))
            event["alpha"] = rng.choice([0, 0.3, 0.5, 0.9, 1])
            if rng.random() < 0.5:
                event["reach_m"] = rng.choice([1.0, 1e3, 1e5, 2e6])
            if rng.random() < 0.3:
                ends = now + timedelta(seconds=rng.choice([-1, 0, 5, 60]))
                event["expires"] = ends.isoformat()
        lines.append(json.dumps({"type": kind, **event}))
    return ("\n".join(lines) + "\n").encode()
