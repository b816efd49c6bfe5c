"""A dozen subscriptions that a person would write, each with something to hear in the hour."""

from __future__ import annotations

from typing import Any

_DOZEN: tuple[tuple[str, dict[str, Any], Any], ...] = (
    (
        "coffee-in-manhattan",
        {"box": [-74.02, 40.70, -73.93, 40.88]},
        "coffee OR espresso OR latte",
    ),
    (
        "flood-warnings-london",
        {"box": [-0.51, 51.28, 0.33, 51.69]},
        "flood OR flooding OR flooded OR (water AND rising)",
    ),
    (
        "lost-dogs-berlin",
        {"circle": {"lon": 13.405, "lat": 52.52, "radius_m": 15000}},
        "(lost OR missing OR entlaufen OR vermisst) AND (dog OR hund)",
    ),
    ("taksim-kahve", {"circle": {"lon": 28.985, "lat": 41.037, "radius_m": 3000}}, "kahve"),
    ("metro-istanbul", {"box": [28.6, 40.85, 29.4, 41.25]}, "metro AND (arıza OR durdu)"),
    (
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
    (
        "gol-no-maracana",
        {"circle": {"lon": -43.2302, "lat": -22.9121, "radius_m": 2000}},
        "gol OR gooool OR goool OR pênalti",
    ),
    (
        "apagao-sao-paulo",
        {"box": [-46.83, -23.80, -46.36, -23.35]},
        {"any": ["apagão", {"all": ["luz", {"any": ["falta", "sem"]}]}]},
    ),
    (
        "yamanote-line",
        {"box": [139.55, 35.55, 139.90, 35.80]},
        "山手線 AND (遅れ OR 運転見合わせ)",
    ),
    (
        "tacos-en-el-centro",
        {"circle": {"lon": -99.1332, "lat": 19.4326, "radius_m": 5000}},
        "tacos AND NOT cerrado",
    ),
    ("smoke-over-lagos", {"box": [3.2, 6.38, 3.6, 6.7]}, "smoke OR fire"),
    (
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
    """The dozen as `subscribe` events at `start`, in the order of the log."""
    return [
        {
            "type": "subscribe",
            "id": name,
            "ts": start,
            "kind": "boolean",
            "region": region,
            "where": where,
        }
        for name, region, where in _DOZEN
    ]
