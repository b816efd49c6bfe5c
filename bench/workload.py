"""The benchmark's workload: a stream of objects and a standing set of boolean subscriptions.

Subscriptions come from the even rows of a set and the stream from its odd rows, so that no row is
on both sides. A subscription is a square of 1 to 50 km a side around an even row's location, with
1 to 3 distinct terms of that same row's text, joined by AND or by OR (half each).

Every engine must see the same terms. SQL engines have `lower` but neither NFKC nor casefold, so
the few texts on which the two readings differ are stored in folded form (`settle_text`); all others
stay as they were.
"""

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CACHE = Path(__file__).parent / "out" / "cache"
VERSION = 3  # part of the cache key: raise it when the drawing changes
KM_PER_DEG = 111.195
JITTER_KM = 1.0
SIDE_KM = (1.0, 50.0)
# Times of these sets are by the month or absent: their rows are spaced evenly in row order.
SETS = {"posts_us": True, "traffic_nsw": True, "crimes_uk": False, "venues_us": False}
EPOCH_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
STEP_US = 10_000
MAX_GAP_US = 30 * 86_400_000_000  # far below the setting `max_ahead`, however few are drawn

_WORD = re.compile(r"\w+")


class Workload(NamedTuple):
    """Objects (id, ts, lon, lat, text) by time; subscriptions (id, box, keywords, operator)."""

    objects: pa.Table
    subscriptions: pa.Table


class TextRows(NamedTuple):
    """Located texts to draw from; `ts` is None where the set has no usable times."""

    lon: np.ndarray
    lat: np.ndarray
    ts: np.ndarray | None
    text: pa.Array


def analyze(text: str) -> list[str]:
    """The default analyzer, as the specification writes it."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def settle_text(text: str) -> str:
    """The text itself, or its folded form where `lower` and the analyzer would read other terms."""
    if text.isascii():
        return text
    # U+0130 has two lower-case forms in use: one code point in DuckDB, two in ICU and Python.
    if "\u0130" not in text and _WORD.findall(text.lower()) == analyze(text):
        return text
    for _ in range(4):
        folded = unicodedata.normalize("NFKC", text).casefold()
        if folded == text:
            break
        text = folded
    stable = _WORD.findall(text.lower()) == analyze(text)
    return text if stable else text.encode("ascii", "ignore").decode()


def real(
    path_to_parquet_dir: str | Path,
    set_name: str,
    objects: int,
    subscriptions: int,
    seed: int,
    skip: int = 0,
) -> Workload:
    """A workload drawn from one real set.

    Each side goes through its rows in a random order, and again in another order when more are
    wanted than there are rows. A row's second and later subscriptions are moved by up to 1 km each
    way; repeated objects are exact repeats under a new id. Sets without usable times get one object
    every 10 ms in row order; pauses of more than 30 days in the others are cut to 30 days.
    The `skip` most frequent terms are never keywords.
    """
    path = Path(path_to_parquet_dir) / f"{set_name}.parquet"
    timed = SETS[set_name]
    origin = f"{path.resolve()}:{path.stat().st_size}"

    def read() -> TextRows:
        table = pq.read_table(path).combine_chunks()
        ts = table["ts"].cast(pa.int64()).to_numpy() if timed else None
        text = table["text"].combine_chunks()
        return TextRows(table["lon"].to_numpy(), table["lat"].to_numpy(), ts, text)

    return _cached(set_name, origin, read, (objects, subscriptions, skip), seed)


def generated(objects: int, subscriptions: int, seed: int, skip: int = 0) -> Workload:
    """A made-up workload for machines without the data: 200 city clusters, a Zipf vocabulary."""

    def make() -> TextRows:
        rng = np.random.default_rng([seed, 0])
        n = 2 * max(objects, min(subscriptions, 200_000), 1)
        centre_lon, centre_lat = rng.uniform(-120, -70, 200), rng.uniform(26, 48, 200)
        share = 1.0 / np.arange(1, 201)
        city = rng.choice(200, n, p=share / share.sum())
        lon = np.round(centre_lon[city] + rng.normal(0, 0.15, n), 6)
        lat = np.round(centre_lat[city] + rng.normal(0, 0.15, n), 6)
        return TextRows(lon, lat, None, _make_texts(rng, n))

    return _cached("generated", "", make, (objects, subscriptions, skip), seed)


def _make_texts(rng: np.random.Generator, n: int) -> pa.Array:
    """Texts of 4 to 16 words with a Zipf vocabulary, capitals, punctuation and some accents."""
    syllables = ["ka", "lo", "mi", "re", "tu", "sá", "né", "vor", "pel", "dun", "gri", "shen"]
    size, words = 20_000, []
    for rank in range(size):
        word, rest = "", rank
        while not word or rest:
            rest, digit = divmod(rest, len(syllables))
            word += syllables[digit]
        words.append(word + str(rank % 10) if rank > 500 else word)
    forms = [form(w) for form in (str, str.capitalize, "{},".format, "#{}!".format) for w in words]
    weight = 1.0 / np.arange(1, size + 1)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(4, 17, n))])
    codes = rng.choice(size, offsets[-1], p=weight / weight.sum())
    codes = codes + size * rng.choice(4, offsets[-1], p=[0.7, 0.1, 0.1, 0.1])
    lists = pa.LargeListArray.from_arrays(offsets, pa.array(forms).take(pa.array(codes)))
    return pc.binary_join(lists.cast(pa.list_(pa.string())), " ")


def _cached(
    name: str, origin: str, read: Callable[[], TextRows], counts: tuple[int, int, int], seed: int
) -> Workload:
    """The workload of these arguments from the cache on disk, drawn and kept if not yet there."""
    sizes = "-".join(map(str, counts))
    key = f"{name}-{sizes}-{seed}-{zlib.crc32(f'{VERSION}{origin}'.encode()):08x}"
    files = [CACHE / f"{key}.{part}.parquet" for part in Workload._fields]
    if not all(file.exists() for file in files):
        CACHE.mkdir(parents=True, exist_ok=True)
        for file, table in zip(files, _draw(read(), counts, seed), strict=True):
            pq.write_table(table, file.with_suffix(".part"))
            file.with_suffix(".part").replace(file)
    return Workload(*(pq.read_table(file).combine_chunks() for file in files))


def _draw(rows: TextRows, counts: tuple[int, int, int], seed: int) -> Workload:
    rng = np.random.default_rng([seed, 1])
    parity = np.arange(len(rows.lon)) % 2
    return Workload(
        _draw_objects(rng, rows, np.flatnonzero(parity == 1), counts[0]),
        _draw_subscriptions(rng, rows, np.flatnonzero(parity == 0), counts[1], counts[2]),
    )


def _draw_rows(rng: np.random.Generator, candidates: np.ndarray, n: int) -> np.ndarray:
    """n rows: as many whole random orders of the candidates as needed, the last one cut."""
    rounds = -(-n // max(len(candidates), 1))
    orders = [rng.permutation(candidates) for _ in range(rounds)]
    return np.concatenate([candidates[:0], *orders])[:n]


def _draw_objects(rng: np.random.Generator, rows: TextRows, odd: np.ndarray, n: int) -> pa.Table:
    row = np.sort(_draw_rows(rng, odd, n))
    if rows.ts is None:
        ts = EPOCH_US + STEP_US * np.arange(n)
    else:
        row = row[np.argsort(rows.ts[row], kind="stable")]
        gaps = np.diff(rows.ts[row], prepend=rows.ts[row][:1])
        ts = rows.ts[row][:1] + np.cumsum(np.minimum(gaps, MAX_GAP_US))
    distinct, place = np.unique(row, return_inverse=True)
    texts = pa.array([settle_text(t) for t in rows.text.take(pa.array(distinct)).to_pylist()])
    return pa.table(
        {
            "id": _ids("o", n),
            "ts": pa.array(ts, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "lon": rows.lon[row],
            "lat": rows.lat[row],
            "text": texts.cast(pa.string()).take(pa.array(place)),
        }
    )


def _draw_subscriptions(
    rng: np.random.Generator, rows: TextRows, even: np.ndarray, n: int, skip: int
) -> pa.Table:
    texts = rows.text.take(pa.array(even)).to_pylist()
    offsets, codes, words = _row_terms(settle_text(text) for text in texts)
    if skip:
        common = np.argsort(np.bincount(codes, minlength=len(words)))[::-1][:skip]
        kept = ~np.isin(codes, common)
        offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
        codes = codes[kept]
    usable = np.flatnonzero(np.diff(offsets) > 0)
    place = _draw_rows(rng, usable, n)
    row = even[place]

    moved = (np.arange(n) >= len(usable)) * JITTER_KM / KM_PER_DEG
    lon_scale = 1.0 / np.maximum(np.cos(np.radians(rows.lat[row])), 0.01)
    lat = rows.lat[row] + moved * rng.uniform(-1, 1, n)
    lon = rows.lon[row] + moved * rng.uniform(-1, 1, n) * lon_scale
    half = rng.uniform(*SIDE_KM, n) / 2 / KM_PER_DEG
    # A square that would cross the antimeridian is cut there: SQL peers have plain comparisons.
    west, east = (np.round(np.clip(lon + s * half * lon_scale, -180, 180), 6) for s in (-1, 1))
    south, north = (np.round(np.clip(lat + s * half, -90, 90), 6) for s in (-1, 1))

    picked = _pick_terms(rng, offsets[place], np.diff(offsets)[place])
    counts = (picked >= 0).sum(axis=1)
    keywords = pa.array(words, pa.string()).take(pa.array(codes[picked[picked >= 0]]))
    list_offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.table(
        {
            "id": _ids("s", n),
            "west": west,
            "south": south,
            "east": east,
            "north": north,
            "keywords": pa.ListArray.from_arrays(list_offsets, keywords),
            "operator": pa.array(["AND", "OR"]).take(pa.array(rng.integers(0, 2, n))),
        }
    )


def _row_terms(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Distinct terms of each text as (offsets, codes, words); a word must read back as itself."""
    codes_of: dict[str, int] = {}
    words: list[str] = []
    codes: list[int] = []
    counts = [0]
    for text in texts:
        for term in dict.fromkeys(analyze(text)):
            code = codes_of.get(term)
            if code is None:
                code = len(words) if analyze(term) == [term] else -1
                codes_of[term] = code
                if code >= 0:
                    words.append(term)
            if code >= 0:
                codes.append(code)
        counts.append(len(codes))
    return np.array(counts), np.array(codes, np.int64), words


def _pick_terms(rng: np.random.Generator, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Up to three distinct positions of each row's terms, -1 where fewer were wanted or there."""
    n = len(starts)
    wanted = np.minimum(rng.integers(1, 4, n), sizes)
    picked = np.full((n, 3), -1)
    taken = np.zeros((n, 0), np.int64)
    for k in range(3):
        # A draw among the positions that are left, shifted past the taken ones in rising order.
        position = (rng.random(n) * np.maximum(sizes - k, 1)).astype(np.int64)
        for before in np.sort(taken, axis=1).T:
            position += position >= before
        taken = np.column_stack([taken, position])
        picked[:, k] = np.where(wanted > k, starts + position, -1)
    return picked


def _ids(prefix: str, n: int) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(np.arange(n)).cast(pa.string()), "")


def write_objects_parquet(workload: Workload, path: str | Path, files: int = 1) -> None:
    """Write the objects as one Parquet file, or as a directory of several of about equal size."""
    path, table = Path(path), workload.objects
    # Row groups and files small enough that two cores can share even a small stream.
    rows = max(1, min(65_536, -(-table.num_rows // 8)))
    if files == 1:
        pq.write_table(table, path, row_group_size=rows)
        return
    path.mkdir(parents=True, exist_ok=True)
    cuts = np.linspace(0, table.num_rows, files + 1).astype(int)
    for k, (start, end) in enumerate(pairwise(cuts.tolist())):
        pq.write_table(table[start:end], path / f"part-{k:03}.parquet", row_group_size=rows)


def write_log(workload: Workload, path: str | Path) -> None:
    """Write the workload as an event log: subscriptions first, then objects in time order."""
    start = _stamps(workload)[0].as_py() if workload.objects.num_rows else "2026-01-01T00:00:00Z"
    encoder = msgspec.json.Encoder()
    with Path(path).open("wb") as log:
        for batch in workload.subscriptions.to_batches(max_chunksize=50_000):
            log.write(encoder.encode_lines(subscribe_events(batch, start)))
        for lines in object_lines(workload):
            log.write(lines)


def write_objects_log(workload: Workload, path: str | Path) -> None:
    """Write only the objects, as an event log."""
    with Path(path).open("wb") as log:
        for lines in object_lines(workload):
            log.write(lines)


def object_lines(workload: Workload, size: int = 50_000) -> Iterable[bytes]:
    """The objects as lines of an event log, `size` at a time."""
    encoder = msgspec.json.Encoder()
    objects = workload.objects.set_column(1, "ts", _stamps(workload))
    for batch in objects.to_batches(max_chunksize=size):
        yield encoder.encode_lines({"type": "object", **row} for row in batch.to_pylist())


def _stamps(workload: Workload) -> pa.ChunkedArray:
    return pc.strftime(workload.objects["ts"], "%Y-%m-%dT%H:%M:%SZ")


def subscribe_events(batch: pa.RecordBatch, ts: str) -> Iterable[dict[str, object]]:
    columns = (batch.column(name).to_pylist() for name in batch.schema.names)
    for i, west, south, east, north, keywords, operator in zip(*columns, strict=True):
        yield {
            "type": "subscribe",
            "id": i,
            "ts": ts,
            "kind": "boolean",
            "region": {"box": [west, south, east, north]},
            "where": f" {operator} ".join(keywords),
        }
