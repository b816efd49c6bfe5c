"""Eighteen subscriptions and four queries that a person would write, each with something to hear.

The queries come when their stories are told, at a fraction of the hour.
"""

from __future__ import annotations

from typing import Any, NamedTuple


def _boolean(name: str, region: dict[str, Any], where: Any) -> dict[str, Any]:
    return {"id": name, "kind": "boolean", "region": region, "where": where}


def _nearest(
    name: str, point: tuple[float, float], k: int, keywords: list[str], **more: Any
) -> dict[str, Any]:
    lon, lat = point
    wish = {"lon": lon, "lat": lat, "keywords": keywords, "k": k}
    return {"id": name, "kind": "nearest", **wish, **more}


def _trending(name: str, region: dict[str, Any], k: int, minutes: int) -> dict[str, Any]:
    pace = {"window": f"PT{minutes}M", "every": f"PT{minutes}M"}
    return {"id": name, "kind": "trending", "region": region, "k": k, **pace}


def _relevant(
    name: str, point: tuple[float, float], k: int, keywords: list[str], alpha: float, reach_m: float
) -> dict[str, Any]:
    lon, lat = point
    wish = {"lon": lon, "lat": lat, "keywords": keywords, "k": k}
    return {"id": name, "kind": "relevant", **wish, "alpha": alpha, "reach_m": reach_m}


_READABLE = (
    _boolean(
        "coffee-in-manhattan",
        {"box": [-74.02, 40.70, -73.93, 40.88]},
        "coffee OR espresso OR latte",
    ),
    _nearest("the-3-nearest-free-coffees", (-73.9903, 40.7359), 3, ["free", "coffee"], mode="all"),
    _relevant(
        "jazz-by-the-river",
        (-73.9680, 40.7145),
        5,
        ["jazz", "trumpet", "river"],
        0.4,
        5000,
    ),
    _boolean(
        "flood-warnings-london",
        {"box": [-0.51, 51.28, 0.33, 51.69]},
        "flood OR flooding OR flooded OR (water AND rising)",
    ),
    _boolean(
        "lost-dogs-berlin",
        {"circle": {"lon": 13.405, "lat": 52.52, "radius_m": 15000}},
        "(lost OR missing OR entlaufen OR vermisst) AND (dog OR hund)",
    ),
    _nearest("wo-ist-mila", (13.3501, 52.5145), 1, ["Mila"]),
    _boolean("taksim-kahve", {"circle": {"lon": 28.985, "lat": 41.037, "radius_m": 3000}}, "kahve"),
    _boolean("metro-istanbul", {"box": [28.6, 40.85, 29.4, 41.25]}, "metro AND (arıza OR durdu)"),
    _boolean(
        "after-the-show-at-the-garden",
        {
            "polygon": [
                [
                    [-74.002, 40.745],
                    [-73.985, 40.745],
                    [-73.981, 40.755],
                    [-73.990, 40.760],
                    [-74.002, 40.757],
                    [-74.002, 40.745],
                ]
            ]
        },
        "concert OR encore",
    ),
    _boolean(
        "gol-no-maracana",
        {"circle": {"lon": -43.2302, "lat": -22.9121, "radius_m": 2000}},
        "gol OR gooool OR goool OR pênalti",
    ),
    _trending(
        "talk-of-maracana",
        {"circle": {"lon": -43.2302, "lat": -22.9121, "radius_m": 1500}},
        8,
        10,
    ),
    _boolean(
        "apagao-sao-paulo",
        {"box": [-46.83, -23.80, -46.36, -23.35]},
        {"any": ["apagão", {"all": ["luz", {"any": ["falta", "sem"]}]}]},
    ),
    _boolean(
        "yamanote-line",
        {"box": [139.55, 35.55, 139.90, 35.80]},
        "山手線 AND (遅れ OR 運転見合わせ)",
    ),
    _nearest(
        "shibuya-de-amai-mono",
        (139.7006, 35.6595),
        5,
        ["ケーキ", "プリン", "パフェ"],
        within_m=5000,
    ),
    _boolean(
        "tacos-en-el-centro",
        {"circle": {"lon": -99.1332, "lat": 19.4326, "radius_m": 5000}},
        "tacos AND NOT cerrado",
    ),
    _boolean("smoke-over-lagos", {"box": [3.2, 6.38, 3.6, 6.7]}, "smoke OR fire"),
    _trending("talk-of-balogun-market", {"box": [3.374, 6.442, 3.403, 6.470]}, 8, 10),
    _boolean(
        "emploi-paris",
        {
            "polygon": [
                [
                    [2.22, 48.83],
                    [2.35, 48.80],
                    [2.47, 48.83],
                    [2.42, 48.91],
                    [2.28, 48.91],
                    [2.22, 48.83],
                ]
            ]
        },
        "emploi AND (recrute OR cherche)",
    ),
)


def readable_subscriptions(start: str = "2026-03-01T12:00:00Z") -> list[dict[str, Any]]:
    """These as `subscribe` events at `start`, in the order of the log."""
    return [{"type": "subscribe", "id": wish["id"], "ts": start, **wish} for wish in _READABLE]


class ReadableQuery(NamedTuple):
    """A query, without its time, and the fraction of the hour at which it is asked."""

    at: float
    event: dict[str, Any]


_QUERIES = (
    ReadableQuery(
        0.5,
        {
            "id": "how-many-floods",
            "kind": "boolean",
            "region": {"box": [-0.51, 51.28, 0.33, 51.69]},
            "where": "flood OR flooding OR flooded",
            "last": "PT15M",
            "limit": 3,
        },
    ),
    ReadableQuery(
        0.65,
        {
            "id": "who-has-seen-mila",
            "kind": "nearest",
            "lon": 13.3501,
            "lat": 52.5145,
            "keywords": ["gesehen", "seen"],
            "k": 3,
            "last": "PT20M",
        },
    ),
    ReadableQuery(
        0.72,
        {
            "id": "talk-at-the-garden",
            "kind": "trending",
            "region": {"circle": {"lon": -73.9934, "lat": 40.7505, "radius_m": 800}},
            "k": 8,
            "last": "PT10M",
        },
    ),
    ReadableQuery(
        0.8,
        {
            "id": "tacos-y-musica",
            "kind": "relevant",
            "lon": -99.1332,
            "lat": 19.4326,
            "keywords": ["tacos", "música"],
            "k": 3,
            "alpha": 0.5,
            "reach_m": 5000,
            "last": "PT30M",
        },
    ),
)


def readable_queries() -> list[ReadableQuery]:
    """The queries in the order of the log, without `type` and `ts`."""
    return list(_QUERIES)
