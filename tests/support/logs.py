"""Random event logs for the law tests: small worlds where everything meets everything."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

# Kinds of subscriptions that are built; those of the others are refused.
BUILT_KINDS = frozenset({"boolean", "nearest", "relevant", "trending"})

WORDS = ["coffee", "free", "sale", "tea", "naïve", "ＣＯＦＦＥＥ", "straße", "東京", "the"]
# Few coordinates, so that points fall on edges and corners, and the ends of the world.
LONS = [-180.0, -179.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 179.5, 180.0, 73.987654321]
LATS = [-90.0, -89.9, -0.5, 0.0, 0.25, 0.5, 45.0, 89.9, 90.0]
IDS = ["s0", "s1", "s2", "s3", "é", 'q"uote', "back\\slash", "tab\t", "S" * 256]

lons = st.sampled_from(LONS) | st.floats(-180, 180)
lats = st.sampled_from(LATS) | st.floats(-90, 90)
words = st.sampled_from(WORDS)


@st.composite
def boxes(draw: st.DrawFn) -> Any:
    south, north = sorted((draw(lats), draw(lats)))
    return {"box": [draw(lons), south, draw(lons), north]}


@st.composite
def circles(draw: st.DrawFn) -> Any:
    radius = draw(st.sampled_from([1.0, 1000.0, 55_660.0, 1e6, 1.1e7, 2.1e7]))
    return {"circle": {"lon": draw(lons), "lat": draw(lats), "radius_m": radius}}


@st.composite
def polygons(draw: st.DrawFn) -> Any:
    rings = []
    for _ in range(draw(st.integers(1, 2))):
        ring = draw(st.lists(st.tuples(lons, lats), min_size=3, max_size=6))
        rings.append([list(p) for p in [*ring, ring[0]]])
    return {"polygon": rings}


regions = boxes() | circles() | polygons()


@st.composite
def strings(draw: st.DrawFn) -> str:
    parts = [draw(words)]
    for _ in range(draw(st.integers(0, 3))):
        parts.append(
            draw(st.sampled_from([" ", " AND ", " OR ", " NOT ", " AND NOT ", " OR NOT "]))
        )
        parts.append(draw(words))
    return "".join(parts)


trees = st.recursive(
    strings(),
    lambda inner: st.builds(
        lambda kind, parts: {kind: parts},
        st.sampled_from(["all", "any", "none"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


@st.composite
def stamps(draw: st.DrawFn) -> str:
    second = draw(st.integers(0, 59))
    minute = draw(st.integers(0, 3))
    year = draw(st.sampled_from([2026] * 30 + [2024, 2027, 2028]))
    return (
        f"{year}-03-01T12:{minute:02d}:{second:02d}{draw(st.sampled_from(['Z', '+01:00', '.5Z']))}"
    )


@st.composite
def nearest(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a `nearest` subscription; now and then one is wrong."""
    phrases = st.lists(words, min_size=1, max_size=2).map(" ".join)
    fields: dict[str, Any] = {
        "lon": draw(lons),
        "lat": draw(lats),
        "keywords": draw(st.lists(phrases, min_size=1, max_size=3)),
        "k": draw(st.sampled_from([1, 1, 2, 3, 1000])),
    }
    if draw(st.booleans()):
        fields["mode"] = draw(st.sampled_from(["any", "all"]))
    if draw(st.integers(0, 2)) == 0:
        fields["within_m"] = draw(st.sampled_from([0.001, 55_660.0, 1e6, 1.2e7, 2.1e7]))
    if draw(st.integers(0, 15)) == 0:
        wrong = [("k", 0), ("k", 1.0), ("mode", "some"), ("within_m", 0), ("keywords", ["!"])]
        name, value = draw(st.sampled_from(wrong))
        fields[name] = value
    return fields


@st.composite
def trending(draw: st.DrawFn) -> dict[str, Any]:
    """The own fields of a `trending` subscription but its region, now and then wrong."""
    fields: dict[str, Any] = {
        "k": draw(st.sampled_from([1, 2, 3, 1000])),
        "window": draw(st.sampled_from(["PT1S", "PT3S", "PT1M", "PT1H", "P1D"])),
        "every": draw(st.sampled_from(["PT1S", "PT1.5S", "PT9S", "PT1M", "PT10M"])),
    }
    if draw(st.integers(0, 11)) == 0:
        wrong = [("k", 0), ("window", "P32D"), ("every", "PT0.9S"), ("every", 1), ("window", "1")]
        name, value = draw(st.sampled_from(wrong))
        fields[name] = value
    return fields


@st.composite
def weights(draw: st.DrawFn) -> dict[str, Any]:
    """How a `relevant` weighs place and words."""
    fields: dict[str, Any] = {"alpha": draw(st.sampled_from([0, 0.25, 0.5, 1]))}
    if draw(st.booleans()):
        fields["reach_m"] = draw(st.sampled_from([1.0, 1e5, 3e6]))
    return fields


@st.composite
def queries(draw: st.DrawFn) -> dict[str, Any]:
    """The own fields of a snapshot query, now and then with something wrong."""
    kind = draw(st.sampled_from(["boolean", "nearest", "relevant", "trending"]))
    spans = ["PT1S", "PT2S", "PT10M", "P1D", "P1D"]
    fields: dict[str, Any] = {"kind": kind, "last": draw(st.sampled_from(spans))}
    if kind == "boolean":
        has = draw(st.sampled_from(["both", "region", "where", "neither"]))
        if has in ("both", "region"):
            fields["region"] = draw(regions)
        if has in ("both", "where"):
            fields["where"] = draw(trees)
        if draw(st.booleans()):
            fields["limit"] = draw(st.sampled_from([1, 2, 10_000]))
    elif kind == "trending":
        fields["k"] = draw(st.sampled_from([1, 2, 1000]))
        if draw(st.booleans()):
            fields["region"] = draw(regions)
    else:
        fields |= draw(nearest())
    if kind == "relevant":
        fields.pop("mode", None)
        fields.pop("within_m", None)
        fields |= draw(weights())
    if draw(st.integers(0, 15)) == 0:
        wrong = [("k", 1001), ("last", "P2D"), ("limit", 0), ("alpha", 1.5), ("data", 1)]
        name, value = draw(st.sampled_from(wrong))
        fields[name] = value
    return fields


@st.composite
def events(draw: st.DrawFn) -> bytes:
    kinds = ["object"] * 6 + ["subscribe"] * 4 + ["query"] * 2 + ["unsubscribe", "bad"]
    kind = draw(st.sampled_from(kinds))
    event: dict[str, Any] = {"type": kind, "id": draw(st.sampled_from(IDS)), "ts": draw(stamps())}
    if kind == "object":
        event |= {"lon": draw(lons), "lat": draw(lats)}
        event["text"] = " ".join(draw(st.lists(words, max_size=5)))
        if draw(st.integers(0, 5)) == 0:
            event["data"] = draw(st.sampled_from([None, 1.5, "x", {"a": [1, "é"]}]))
    elif kind == "subscribe":
        kinds = ["boolean"] * 11 + ["nearest"] * 9 + ["trending"] * 7 + ["relevant"] * 9 + ["what"]
        event["kind"] = draw(st.sampled_from(kinds))
        has = draw(st.sampled_from(["both", "both", "region", "where", "neither"]))
        if event["kind"] == "nearest":
            event |= draw(nearest())
            has = draw(st.sampled_from(["neither"] * 15 + ["region"]))
        elif event["kind"] == "relevant":
            event |= draw(nearest()) | draw(weights())
            if draw(st.integers(0, 15)):
                event.pop("mode", None)
                event.pop("within_m", None)
            has = "neither"
        elif event["kind"] == "trending":
            event |= draw(trending())
            has = draw(st.sampled_from(["neither"] * 7 + ["region"] * 8 + ["where"]))
        if has in ("both", "region"):
            event["region"] = draw(regions)
        if has in ("both", "where"):
            event["where"] = draw(trees)
        if draw(st.integers(0, 3)) == 0:
            event["expires"] = draw(stamps())
    elif kind == "query":
        event |= draw(queries())
    elif kind == "bad":
        return draw(st.sampled_from([b"", b"{", b"[]", b'{"type":"object"}', b"\xff", b"null"]))
    return json.dumps(event, ensure_ascii=draw(st.booleans())).encode()


logs = st.lists(events(), min_size=1, max_size=60).map(lambda lines: b"\n".join(lines) + b"\n")


@st.composite
def flowing(draw: st.DrawFn) -> bytes:
    """Logs whose time flows: most events are a little later than the one before, some late."""
    lines = []
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for drawn in draw(st.lists(events(), min_size=5, max_size=60)):
        line = drawn
        now += timedelta(seconds=draw(st.sampled_from([0, 0, 0.5, 1, 1, 2, 5, 30, 600])))
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if isinstance(event, dict) and "ts" in event:
            late = draw(st.sampled_from([0] * 8 + [1, 4, 60, 4000]))
            event["ts"] = (now - timedelta(seconds=late)).isoformat()
            if "expires" in event:
                left = draw(st.sampled_from([-1, 0, 1, 30, 601]))
                event["expires"] = (now + timedelta(seconds=left)).isoformat()
            line = json.dumps(event).encode()
        lines.append(line)
    return b"\n".join(lines) + b"\n"
