"""Write the inputs of the golden logs: handwritten lines, and random ones from fixed seeds.

`python tests/law/golden/generate.py` rewrites `inputs/`. It needs the standard library only, so
that the logs depend on nothing they test.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from invalid_lines import invalid_lines

INPUTS = Path(__file__).with_name("inputs")
START = datetime(2026, 3, 1, 12, tzinfo=UTC)

WORDS = [
    "coffee",
    "free",
    "sale",
    "tea",
    "naïve",
    "ＣＯＦＦＥＥ",
    "straße",
    "東京",
    "the",
    "5th-ave",
]
IDS = ["s0", "s1", "s2", "s3", "s4", "s5", "é", 'q"uote', "back\\slash", "tab\t", "S" * 256]
# Few coordinates, so that points fall on edges, corners and both ends of the world.
LONS = [-180.0, -179.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 179.5, 180.0, 73.987654321]
LATS = [-90.0, -89.9, -0.5, 0.0, 0.25, 0.5, 45.0, 89.9, 90.0]

Event = dict[str, Any]


def dump(event: object, escaped: bool = False) -> bytes:
    return json.dumps(event, ensure_ascii=escaped, separators=(",", ":")).encode()


def stamp(second: float) -> str:
    """A time so many seconds after the start, with a fraction only if there is one."""
    return (START + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def make_object(name: str, second: float, lon: float, lat: float, text: str, **more: Any) -> Event:
    event = {"type": "object", "id": name, "ts": stamp(second), "lon": lon, "lat": lat}
    return {**event, "text": text, **more}


def subscribe(name: str, second: float, kind: str, **more: Any) -> Event:
    return {"type": "subscribe", "id": name, "ts": stamp(second), "kind": kind, **more}


def unsubscribe(name: str, second: float) -> Event:
    return {"type": "unsubscribe", "id": name, "ts": stamp(second)}


def query(name: str, second: float, kind: str, last: str, **more: Any) -> Event:
    event = {"type": "query", "id": name, "ts": stamp(second), "kind": kind, "last": last}
    return {**event, **more}


class Chance:
    """Draw events from a seed."""

    def __init__(self, seed: int, words: list[str] = WORDS) -> None:
        self.random = random.Random(seed)
        self.words = words

    def pick(self, values: Any) -> Any:
        return values[self.random.randrange(len(values))]

    def once_in(self, times: int) -> bool:
        return self.random.randrange(times) == 0

    def lon(self) -> float:
        return self.pick(LONS) if self.once_in(3) else round(self.random.uniform(-1.2, 1.2), 6)

    def lat(self) -> float:
        return self.pick(LATS) if self.once_in(3) else round(self.random.uniform(-1.2, 1.2), 6)

    def text(self) -> str:
        return " ".join(self.pick(self.words) for _ in range(self.random.randrange(6)))

    def region(self) -> Event:
        form = self.random.randrange(4)
        if form == 0:
            south, north = sorted((self.lat(), self.lat()))
            return {"box": [self.lon(), south, self.lon(), north]}
        if form == 1:
            radius = self.pick([1.0, 1000.0, 55_660.0, 1e6, 1.1e7, 2.1e7])
            return {"circle": {"lon": self.lon(), "lat": self.lat(), "radius_m": radius}}
        rings = []
        for _ in range(form - 1):
            ring = [[self.lon(), self.lat()] for _ in range(3 + self.random.randrange(4))]
            rings.append([*ring, ring[0]])
        return {"polygon": rings}

    def where(self, room: int = 3) -> Any:
        if room and self.once_in(2):
            parts = [self.where(room - 1) for _ in range(1 + self.random.randrange(3))]
            return {self.pick(["all", "any", "none"]): parts}
        parts = [self.pick(["", "", "NOT "]) + self.pick(self.words)]
        for _ in range(self.random.randrange(3)):
            parts.append(self.pick([" ", " AND ", " OR ", " AND NOT ", " OR NOT "]))
            parts.append(self.pick(self.words))
        text = "".join(parts)
        return f"({text}) OR {self.pick(self.words)}" if self.once_in(4) else text

    def point(self) -> Event:
        count = 1 + self.random.randrange(3)
        words = [self.pick(self.words) for _ in range(count)]
        k = self.pick([1, 1, 2, 3, 5, 1000])
        return {"lon": self.lon(), "lat": self.lat(), "keywords": words, "k": k}

    def fields(self, kind: str, asked: bool) -> Event:
        """The fields of a kind, for a subscription or for a query."""
        if kind == "boolean":
            has = self.random.randrange(4)
            fields: Event = {} if has == 0 else {"region": self.region()}
            if has != 1:
                fields["where"] = self.where()
            if asked and self.once_in(2):
                fields["limit"] = self.pick([1, 2, 10_000])
            return fields
        if kind == "nearest":
            fields = self.point()
            if self.once_in(2):
                fields["mode"] = self.pick(["any", "all"])
            if self.once_in(3):
                fields["within_m"] = self.pick([0.001, 20_000, 55_660.0, 1e6, 2.1e7])
            return fields
        if kind == "relevant":
            fields = {**self.point(), "alpha": self.pick([0, 0.25, 0.5, 0.9, 1])}
            if self.once_in(2):
                fields["reach_m"] = self.pick([1.0, 1e5, 3e6])
            return fields
        fields = {"k": self.pick([1, 2, 3, 1000])}
        if not asked:
            fields["window"] = self.pick(["PT3S", "PT1M", "PT10M", "P1D"])
            fields["every"] = self.pick(["PT1S", "PT1.5S", "PT9S", "PT1M"])
            if fields["window"] == "P1D":
                fields["every"] = "PT1M"
        if self.once_in(2):
            fields["region"] = self.region()
        return fields


def flow(
    seed: int,
    count: int,
    kinds: list[str],
    words: list[str] = WORDS,
    steps: list[float] | None = None,
    lasts: list[str] | None = None,
) -> Iterator[bytes]:
    """Events whose time flows: most a little later than the one before, some late, some leaping."""
    chance = Chance(seed, words)
    steps = steps or [0, 0, 0.5, 1, 1, 2, 5, 30]
    lasts = lasts or ["PT1S", "PT30S", "PT10M", "P1D"]
    now = 0.0
    for number in range(count):
        now += chance.pick(steps)
        second = now - chance.pick([0] * 8 + [1, 4, 60, 4000])
        name = chance.pick(IDS)
        draw = chance.random.randrange(20)
        event: Event
        if draw < 11:
            # Some ids of objects repeat.
            name = chance.pick(["again", "é", 'q"', "o\n"]) if chance.once_in(8) else f"o{number}"
            event = make_object(name, second, chance.lon(), chance.lat(), chance.text())
            if chance.once_in(6):
                event["data"] = chance.pick([None, 1.5, "x", {"a": [1, "é"]}, [], False])
        elif draw < 16:
            kind = chance.pick(kinds)
            event = subscribe(name, second, kind, **chance.fields(kind, False))
            if chance.once_in(4):
                event["expires"] = stamp(now + chance.pick([-1, 0, 1, 30, 601]))
            if chance.once_in(6):
                event["data"] = {"note": "subscription"}
        elif draw < 18:
            kind = chance.pick(kinds)
            event = query(f"q{number % 9}", second, kind, chance.pick(lasts))
            event |= chance.fields(kind, True)
        else:
            event = unsubscribe(name, second)
        yield dump(event, chance.once_in(2))
        if chance.once_in(60):
            yield chance.pick([b"", b"{", b"[]", b'{"type":"object"}', b"\xff", b"null"])


ALL_KINDS = ["boolean", "nearest", "relevant", "trending"]


def lives() -> Iterator[bytes]:
    """How subscriptions begin, change, expire and end, several times within a batch."""
    chance = Chance(11)
    here = {"lon": 0, "lat": 0, "keywords": ["coffee"], "k": 2}
    forms: list[Event] = [
        {"kind": "boolean", "where": "coffee"},
        {"kind": "nearest", **here},
        {"kind": "relevant", **here, "alpha": 0.5},
        {"kind": "trending", "k": 3, "window": "PT1M", "every": "PT1S"},
    ]
    second = 0.0
    number = 0

    def objects(count: int) -> Iterator[bytes]:
        nonlocal second, number
        for _ in range(count):
            second += 0.5
            number += 1
            lon = round(chance.random.uniform(-1, 1), 3)
            yield dump(make_object(f"o{number % 40}", second, lon, 0.0, "coffee " + chance.text()))

    yield dump(unsubscribe("nothing", 0))
    for first in forms:
        for then in forms:
            # The second replaces the first in the same instant, then after an object.
            yield dump(subscribe("life", second, **first))
            yield dump(subscribe("life", second, **then))
            yield from objects(2)
            yield dump(subscribe("life", second, **first))
            yield from objects(1)
            yield dump(unsubscribe("life", second))
            yield dump(unsubscribe("life", second))
            yield from objects(1)
    for form in forms:
        # Expires in the past, now, at the next object, later; an object shows which are live.
        for left in (-1, 0, 0.5, 1.0, 3.0):
            name = f"{form['kind']}{left}"
            yield dump(subscribe(name, second, **form, expires=stamp(second + left)))
        yield dump(subscribe("stays", second, **form))
        yield dump(subscribe("stays", second, **form, expires=stamp(second)))
        yield from objects(9)
    yield dump(subscribe("late", second - 30, **forms[3]))
    yield from objects(4)
    # A late event neither moves the clock nor revives what has expired.
    yield dump(subscribe("short", second, **forms[0], expires=stamp(second + 5)))
    yield dump(make_object("past", second - 3600, 0, 0, "coffee"))
    yield dump(make_object("leap", second + 5, 0, 0, "coffee"))
    yield dump(make_object("past", second, 0, 0, "coffee"))


def space() -> Iterator[bytes]:
    """Every form of region, and points on its edges, at its corners and about the antimeridian."""
    square = [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]
    hole = [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]]
    bow = [[-1, -1], [1, 1], [1, -1], [-1, 1], [-1, -1]]
    regions: list[Event] = [
        {"box": [-1, -1, 1, 1]}, {"box": [0, 0, 0, 0]}, {"box": [-180, -90, 180, 90]},
        {"box": [179.5, -1, -179.5, 1]}, {"box": [180, -90, -180, 90]}, {"box": [1, -1, -1, 1]},
        {"box": [-180, 89.9, 180, 90]},
        {"circle": {"lon": 0, "lat": 0, "radius_m": 55_597.54}},
        {"circle": {"lon": 180, "lat": 0, "radius_m": 60_000}},
        {"circle": {"lon": 0, "lat": 90, "radius_m": 12_000}},
        {"circle": {"lon": 0, "lat": 0, "radius_m": 20_015_115}},
        {"circle": {"lon": 0.25, "lat": 0.25, "radius_m": 0.001}},
        {"polygon": [square]}, {"polygon": [square, hole]}, {"polygon": [bow]},
        {"polygon": [[[179, -1], [180, -1], [180, 1], [179, 1], [179, -1]]]},
        {"polygon": [[[0, 0], [0, 0], [0, 0], [0, 0]]]},
        {"polygon": [[[0.1, 0.1], [0.7, 0.2], [0.3, 0.9], [0.1, 0.1]], hole]},
    ]  # fmt: skip
    for number, region in enumerate(regions):
        yield dump(subscribe(f"r{number:02d}", 0, "boolean", region=region))
        if number % 3 == 0:
            where = "NOT tea"
            yield dump(subscribe(f"w{number:02d}", 0, "boolean", region=region, where=where))
    chance = Chance(12)
    number = 0
    lons = [-180, -179.5, -1, -0.5, 0, 0.25, 0.5, 1, 179.5, 180]
    for lat in (-90, -1, -0.5, 0, 0.25, 0.5, 1, 89.9, 90):
        for lon in lons:
            text = chance.pick(["coffee", "tea", ""])
            yield dump(make_object(f"p{number}", number / 10, lon, lat, text))
            number += 1
    for _ in range(60):
        lon, lat = chance.random.uniform(-1.1, 1.1), chance.random.uniform(-1.1, 1.1)
        yield dump(make_object(f"p{number}", number / 10, lon, lat, "coffee"))
        number += 1
    for at, region in enumerate(regions):
        yield dump(query(f"q{at}", number, "boolean", "PT1H", region=region, limit=3))
        yield dump(query(f"t{at}", number, "trending", "PT1H", region=region, k=2))
    for lon, lat in ((0, 0), (180, 0), (-180, 0.5), (0, 90), (37.5, -90)):
        point = {"lon": lon, "lat": lat, "keywords": ["coffee", "tea"], "k": 12}
        yield dump(query(f"n{lon}", number, "nearest", "PT1H", **point))
        yield dump(query(f"n{lon}", number, "nearest", "PT1H", **point, within_m=55_597.54))
        yield dump(query(f"v{lon}", number, "relevant", "PT1H", **point, alpha=1))


WHERES: list[Any] = [
    "coffee", "coffee AND tea", "coffee tea", "coffee OR tea", "NOT coffee", "NOT NOT coffee",
    "coffee AND NOT tea", "coffee NOT tea", "coffee OR NOT tea", "NOT (coffee OR tea)",
    "coffee OR tea AND sale", "(coffee OR tea) AND sale", "((coffee))", "5th-ave", "NOT 5th-ave",
    '"coffee"', '"AND"', "and", 'coffee"tea"sale', "coffee(tea)", "\u3000coffee\u3000AND tea",
    "ＣＯＦＦＥＥ", "STRASSE", "naive", "naïve", "nai\u0308ve", "東京", "İ", "i̇", "ﬁ", "x²",
    "_", "☕a", "(" * 64 + "coffee" + ")" * 64, "NOT " * 7 + "coffee", " ".join(["coffee"] * 256),
    " OR ".join(["tea", *["nowhere"] * 200]), "e\u0301", "ς", "Σ", "ǅ", "ﷺ", "١٢", "12",
    {"all": ["coffee"]}, {"any": ["coffee", "tea"]}, {"none": ["coffee"]},
    {"none": ["coffee", "tea AND sale"]}, {"all": ["coffee", {"none": ["tea"]}]},
    {"any": [{"all": ["coffee", "sale"]}, {"none": ["the", {"any": ["tea", "5th-ave"]}]}]},
    {"all": [{"any": [{"all": [{"any": [{"all": [{"any": [{"all": ["coffee"]}]}]}]}]}]}]},
    {"none": [{"none": [{"none": ["NOT coffee"]}]}]}, {"all": ["coffee"] * 256},
]  # fmt: skip
TEXTS = [
    "coffee", "Coffee, TEA!", "tea", "", " ", "sale tea", "coffee sale", "5th Ave.",
    "ave 5th", "5thave", "ＣＯＦＦＥＥ", "ｃｏｆｆｅｅ tea", "Straße", "STRASSE", "naïve",
    "nai\u0308ve", "NAIVE", "東京", "東京タワー", "東 京", "İstanbul İ", "i\u0307", "ﬁ",
    "fi", "x²", "x2", "_", "☕a", "☕", "👨\u200d👩\u200d👧 coffee", "e\u0301", "é", "Σ",
    "ς σ", "ǆ", "Ǆ", "ﷺ", "صلى الله عليه وسلم", "12", "١٢", "½", "1⁄2",
    "\u0000coffee\u0000", "cof\u00adfee", "cof\u200bfee", "coffee\u2028tea",
    "\ufeffcoffee", "𝒸ℴ𝒻𝒻ℯℯ", "Ⅷ", "㍿", "ﾊﾞｽ", "はﾞす", "\U000e0041",
    "\U0010ffff coffee", "and", "The the THE", "\ue000", "\u1109\u1165울", "서울", "ΐ",
    "ŉ", "ẞ", "a\u0345", "ᾳ", "ﬀ", "K", "Å",
]  # fmt: skip


def words() -> Iterator[bytes]:
    """Every form of expression against texts in many scripts and of odd Unicode."""
    for number, where in enumerate(WHERES):
        yield dump(subscribe(f"w{number:02d}", 0, "boolean", where=where), number % 2 == 0)
    here = {"box": [-1, -1, 1, 1]}
    yield dump(subscribe("any text", 0, "boolean", region=here))
    yield dump(subscribe("trend", 0, "trending", k=1000, window="PT1H", every="PT10S"))
    keywords = ["ＣＯＦＦＥＥ tea", "STRASSE", "5th-ave", "東京", "İ", "ﬁ", "½"]
    point = {"lon": 0, "lat": 0, "keywords": keywords}
    for mode in ("any", "all"):
        yield dump(subscribe(f"near {mode}", 0, "nearest", **point, k=3, mode=mode))
    yield dump(subscribe("relevant", 0, "relevant", **point, k=4, alpha=0))
    chance = Chance(13)
    for number, text in enumerate(TEXTS + TEXTS[::4]):
        lon = round(chance.random.uniform(-2, 2), 4)
        escaped = number >= len(TEXTS)
        yield dump(make_object(f"{text[:3]}{number}", number, lon, 0.5, text), escaped)
    yield dump(make_object("long", 200, 0, 0, "coffee " * 1000 + "the end"))
    yield dump(make_object("one", 201, 0, 0, "x" * 3000))
    for number, where in enumerate(WHERES):
        yield dump(query(f"q{number:02d}", 201, "boolean", "PT1H", where=where, limit=2))
    yield dump(query("terms", 201, "trending", "PT1H", k=1000))
    yield dump(query("near", 201, "nearest", "PT1H", **point, k=5, mode="any"))
    yield dump(query("best", 201, "relevant", "PT1H", **point, k=5, alpha=0.1))


def reports() -> Iterator[bytes]:
    """Reports over leaps in time, with windows shorter and longer than the step."""
    paces = [
        ("PT1S", "PT1S"), ("PT2.5S", "PT1S"), ("PT1M", "PT7S"), ("PT1S", "PT1M"), ("P31D", "P1D"),
        ("PT10M", "PT20S"), ("PT0.000001S", "PT1S"), ("PT20M", "PT30.000001S"), ("P1D", "P400D"),
    ]  # fmt: skip
    for number, (window, every) in enumerate(paces):
        yield dump(subscribe(f"t{number}", 0, "trending", k=2, window=window, every=every))
    yield dump(subscribe("ends", 0, "trending", k=9, window="PT1M", every="PT1S", expires=stamp(7)))
    circle = {"circle": {"lon": 0, "lat": 0, "radius_m": 60_000}}
    yield dump(
        subscribe("near", 0.25, "trending", k=9, window="PT30S", every="PT5S", region=circle)
    )
    chance = Chance(14, ["coffee", "tea", "sale", "free", "東京", "b", "a", "ab", "𐀀", "\uffee"])
    second = 0.0
    leaps = [0.25, 0.5, 1, 1, 2, 7, 61, 3600, 86_400, 86_400 * 40]
    for number in range(90):
        second += leaps[chance.random.randrange(5 if number % 11 else len(leaps))]
        late = chance.pick([0, 0, 0, 0.5, 3, 90])
        text = chance.text() if chance.random.randrange(6) else "!"
        lon = round(chance.random.uniform(-1, 1), 3)
        yield dump(make_object(f"o{number}", second - late, lon, 0, text))
        if number % 25 == 10:
            yield dump(subscribe("t1", second, "trending", k=3, window="PT5S", every="PT2S"))
            yield dump(unsubscribe("t0", second))
        if number % 25 == 20:
            yield dump(subscribe("t0", second, "trending", k=1, window="PT5S", every="PT2S"))
            yield dump(query(f"q{number}", second, "trending", "PT1M", k=4))


def ahead() -> Iterator[bytes]:
    """Events about `max_ahead` past the clock, which invalid events do not move."""
    chance = Chance(15)
    yield dump({**make_object("bad", 0, 0, 0, ""), "lon": 181, "ts": "9000-01-01T00:00:00Z"})
    yield dump(subscribe("all", 0, "boolean", region={"box": [-180, -90, 180, 90]}))
    yield dump(subscribe("trend", 0, "trending", k=3, window="PT2H", every="PT10M"))
    second = 0.0
    for number in range(150):
        step = chance.pick([0, 1, 60, 599, 3599, 3600, 3600.000001, 3601, 86_400, 1e8])
        event = make_object(f"o{number}", second + step, 0, 0, chance.text())
        if number % 10 == 3:
            event = subscribe(f"s{number % 3}", second + step, "boolean", where="coffee OR tea")
        elif number % 10 == 5:
            event = unsubscribe(f"s{number % 3}", second + step)
        elif number % 10 == 7:
            event = query("q", second + step, "boolean", chance.pick(["PT1H", "PT30M", "P2D"]))
            event["where"] = "coffee"
        yield dump(event)
        if step <= 3600 and event.get("last") != "P2D":
            second += step


SPOKEN = [
    "the", "Not", "coffee", "coffees", "COFFEE'S", "running", "runs", "Runner", "relational",
    "don't", "skies", "sky", "café", "cafés", "straße", "kitaplar", "kitap", "İstanbul",
    "ıstanbul", "東京", "東京都", "東京タワーへ", "京", "都庁tokyo東京", "ﾄｳｷｮｳ", "ﾊﾞｽ", "ばす",
    "です", "こちらです", "カフェー", "時々", "〇〇", "서울", "서울역", "㍿", "𠮷野家", "x東",
    "東x", "２０２６年", "улицы", "улица", "_",
]  # fmt: skip


def planned() -> tuple[list[bytes], list[bytes], list[bytes]]:
    """A head, a filling and a tail: the head's subscriptions, then objects to repeat, then more.

    A plan is made of 100,000 events. The filling repeated reaches that number and changes few
    results: it lies far away, and everything near has been found before.
    """
    chance = Chance(16, ["coffee", "tea", "sale", "free", "music", "park", "bus", "rain"])

    def near() -> tuple[float, float]:
        return round(chance.random.uniform(-1, 1), 5), round(chance.random.uniform(-1, 1), 5)

    def new_subscription(name: str, second: float) -> Event:
        lon, lat = near()
        kind = chance.pick(ALL_KINDS[:3])
        if kind == "boolean":
            box = {"box": [lon, lat, round(lon + 0.7, 5), round(lat + 0.7, 5)]}
            return subscribe(name, second, kind, region=box, where=chance.where(1))
        keywords = [chance.pick(chance.words) for _ in range(2)]
        point = {"lon": lon, "lat": lat, "keywords": keywords, "k": chance.pick([1, 2, 4])}
        if kind == "nearest":
            return subscribe(name, second, kind, **point, mode="any")
        return subscribe(name, second, kind, **point, alpha=chance.pick([0.5, 0.8]), reach_m=3e5)

    def new_object(name: str, second: float) -> Event:
        texts = chance.random.sample(chance.words, 2)
        return make_object(name, second, *near(), " ".join(texts))

    head = [dump(new_subscription(f"s{number}", 0)) for number in range(90)]
    head += [dump(new_object(f"h{number}", 1)) for number in range(40)]
    filling = []
    for number in range(100):
        lon = round(chance.random.uniform(-170, -60), 4)
        lat = round(chance.random.uniform(-60, 60), 4)
        text = f"{chance.pick(chance.words)} filling{number % 50} more{number % 7} and more"
        filling.append(dump(make_object(f"f{number}", 60, lon, lat, text)))
    tail = []
    for number in range(130):
        second = 60 + number if number < 100 else 3650 + number
        draw = number % 8
        if draw == 0:
            tail.append(dump(new_subscription(f"s{chance.random.randrange(120)}", second)))
        elif draw == 5:
            tail.append(dump(unsubscribe(f"s{chance.random.randrange(120)}", second)))
        else:
            tail.append(dump(new_object(f"t{number}", second)))
    return head, filling, tail


def dead_letters() -> Iterator[bytes]:
    """Every reason for which an event is invalid, between events that are valid."""
    yield dump(subscribe("all", 0, "boolean", region={"box": [-180, -90, 180, 90]}))
    for number, line in enumerate(invalid_lines()):
        yield line
        if number % 10 == 9:
            yield dump(make_object(f"o{number}", number, 0, 0, "coffee"))


def frames() -> Iterator[bytes]:
    """Lines framed, spaced and escaped in ways that JSON allows, and in some that it does not."""
    good = dump(make_object("o", 0, 0.5, 0.5, "coffee"))
    yield dump(subscribe("all", 0, "boolean", region={"box": [-180, -90, 180, 90]}))
    yield from (
        good, good + b"\r", b" \t" + good + b" \t\r", json.dumps(json.loads(good)).encode(),
        json.dumps(json.loads(good), indent=1).replace("\n", "\r\t ").encode(), b"\r", b" ", b"",
        b"\xef\xbb\xbf" + good, good + b",", good + good, good + b"\x00", b"\x0b" + good,
        good + b"\xc2\xa0", b"[" + good + b"]", good[:-1], good[1:], good[:-1] + b",}",
        b"//" + good, good.replace(b'"', b"'"), good.decode().encode("utf-16-le"),
        dump(dict(reversed(json.loads(good).items()))), good.replace(b'"id"', b'"\\u0069d"'),
        good.replace(b"0.5", b"5e-1"), good.replace(b"0.5", b"5E-1"), good.replace(b"0.5", b"-0.0"),
        good.replace(b"0.5", b"1e-400"), good.replace(b"0.5", b"0.30000000000000004"),
        good.replace(b"coffee", rb"c\u006fffee \ud83d\ude00 \/ \b\f\n\r\t\"\\"),
        good.replace(b'"o"', rb'"\u0000"'), good.replace(b'"o"', '"\u2028\u007f😀"'.encode()),
        good.replace(b'"o"', b'"' + "😀".encode() * 256 + b'"'),
        good.replace(b"12:00:00Z", b"13:00:00.123456789+01:00"),
        good.replace(b"T12:00:00Z", b"t12:00:00z"), good.replace(b"12:00:00Z", b"12:00:00.000001Z"),
        good[:-1] + b',"data":[{"a":1},{"a":2},1e300,"\\n",[[[]]]]}',
        good[:-1] + b',"data":"' + b"d" * 16_382 + b'"}',
        good[:-1] + b',"data":' + b"[" * 500 + b"]" * 500 + b"}",
        good[:-1] + b',"data":' + str(10**300).encode() + b"}",
        good[:-1] + b',"data":{"lon":1,"lat":2,"id":"x","type":"object"}}',
    )  # fmt: skip


LOGS: dict[str, Callable[[], Iterator[bytes]]] = {
    "mixed": lambda: flow(1, 400, ALL_KINDS),
    "window-count": lambda: flow(2, 300, ["relevant", "relevant", "nearest", "boolean"]),
    "window-time": lambda: flow(3, 220, ["relevant", "relevant", "trending"], steps=[0, 1, 3, 15]),
    "retention": lambda: flow(
        4, 200, ALL_KINDS, steps=[0, 1, 2, 8], lasts=["PT1S", "PT5S", "PT20S", "PT20.000001S"]
    ),
    "lives": lives,
    "space": space,
    "words": words,
    "reports": reports,
    "ahead": ahead,
    "dead-letters": dead_letters,
    "frames": frames,
    "cjk-bigram": lambda: flow(5, 200, ALL_KINDS, SPOKEN),
    "snowball-english": lambda: flow(6, 200, ALL_KINDS, SPOKEN),
    "snowball-turkish": lambda: flow(7, 120, ALL_KINDS, SPOKEN),
    "stop-words": lambda: flow(8, 150, ALL_KINDS, SPOKEN),
}

LEXICON = {
    "documents": 1000,
    "df": {"coffee": 400, "tea": 30, "the": 999, "free": 0, "東京": 7, "strasse": 2, "5th": 1},
}
SETTINGS = {
    "window-count": 'window = {count = 25}\nreach_m = 250000.5\nlexicon = "lexicon.json"\n',
    "window-time": 'window = {time = "PT90S"}\nretention = "PT1H"\n',
    "retention": 'retention = "PT20S"\nwindow = {count = 3}\n',
    "ahead": 'max_ahead = "PT1H"\nretention = "PT1H"\n',
    "cjk-bigram": 'analyzer = "cjk-bigram"\nstop_words = ["です", "THE", "こちら"]\n',
    "snowball-english": 'analyzer = "snowball:english"\nstop_words = "english"\n',
    "snowball-turkish": 'analyzer = "snowball:turkish"\n',
    "stop-words": 'stop_words = {file = "stop-words.txt"}\nlexicon = "lexicon.json"\n',
    "planned": 'window = {time = "PT1H"}\n',
}


def main() -> None:
    INPUTS.mkdir(exist_ok=True)
    for name, lines in LOGS.items():
        # The last line of `frames` has no line feed.
        end = b"" if name == "frames" else b"\n"
        (INPUTS / f"{name}.jsonl").write_bytes(b"\n".join(lines()) + end)
    for part, lines in zip(("head", "filling", "tail"), planned(), strict=True):
        (INPUTS / f"planned.{part}").write_bytes(b"\n".join(lines) + b"\n")
    for name, text in SETTINGS.items():
        (INPUTS / f"{name}.toml").write_text(text, "utf-8")
    (INPUTS / "lexicon.json").write_bytes(dump(LEXICON) + b"\n")
    (INPUTS / "stop-words.txt").write_text("the # articles\n\nNot\nです\nrunning\n", "utf-8")


if __name__ == "__main__":
    main()
