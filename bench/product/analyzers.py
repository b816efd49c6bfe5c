"""Compare analyzers on one core: texts to terms, terms to words, and a whole replay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

import placewire
from bench.figures import Figures, Table
from bench.harness import Setup
from bench.workload import write_log
from placewire.demo import CityLife, blocks
from placewire.model.settings import parse_settings
from placewire.text.analyzer import Analyzer, TermSets, open_analyzer
from placewire.text.codepoints import is_cjk
from placewire.text.words import words_of_terms

ANALYZERS: dict[str, dict[str, Any]] = {
    "default": {},
    "default, stop words": {"stop_words": "english"},
    "cjk-bigram": {"analyzer": "cjk-bigram"},
    "snowball:english": {"analyzer": "snowball:english"},
    "snowball:english, stop words": {"analyzer": "snowball:english", "stop_words": "english"},
}
BLOCK = 25_000
REPLAYS = 2
KEY = 1, 2


class TextBlock(NamedTuple):
    """Texts as slices of a buffer."""

    raw: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def compare_analyzers(
    setup: Setup,
    objects: int = 200_000,
    subscriptions: int = 100_000,
    city_objects: int = 400_000,
    rounds: int = 7,
) -> Figures:
    """Texts of the data, and texts in Chinese, Japanese and Korean without blanks."""
    texts = setup.workload(objects, subscriptions).objects["text"].to_pylist()
    eastern = list(eastern_texts(city_objects))
    yield from measure_analysis("analyzers", texts, rounds)
    yield from measure_analysis("analyzers-eastern", eastern, rounds)
    yield from measure_replay(setup, objects, subscriptions)


def eastern_texts(objects: int) -> Iterator[str]:
    """What the generator says in scripts without blanks, the blanks that it puts there left out."""
    life = CityLife(objects=objects, subscriptions=1)
    for block in blocks(life):
        for line in block.splitlines():
            event = msgspec.json.decode(line)
            text = event.get("text", "")
            if event["type"] == "object" and sum(map(is_cjk, text)) > len(text) / 2:
                yield text.replace(" ", "")


def measure_analysis(name: str, texts: list[str], rounds: int) -> Figures:
    """Objects a second of processor time, by blocks as a batch has them."""
    parts = [block_of(texts[at : at + BLOCK]) for at in range(0, len(texts), BLOCK)]
    rows = []
    for title, table in ANALYZERS.items():
        open_analyzer(parse_settings(table), (0, 0)).analyse(*block_of(texts[:10]))  # compiles
        analyzer = open_analyzer(parse_settings(table), KEY)
        rows.append((title, *measure(analyzer, parts, len(texts), rounds)))
    headings = (
        "analyzer", "terms an object", "distinct terms", "first time, objects/s",
        "analysing, objects/s", "finding words, objects/s", "both, objects/s",
    )  # fmt: skip
    yield Table(name, headings, rows)


def measure(
    analyzer: Analyzer, parts: list[TextBlock], texts: int, rounds: int
) -> tuple[float, ...]:
    """Terms an object, distinct terms, and speeds: the first time, later, of words, of both."""
    sets: list[TermSets] = []

    def analyse() -> None:
        sets[:] = [analyzer.analyse(*part) for part in parts]

    def spell() -> None:
        for terms, part in zip(sets, parts, strict=True):
            words_of_terms(analyzer, terms, *part)

    first = seconds_of(analyse)
    later = min(seconds_of(analyse) for _ in range(rounds))
    words = min(seconds_of(spell) for _ in range(rounds))
    hashes = np.concatenate([terms.hashes for terms in sets])
    speeds = [texts / seconds for seconds in (first, later, words, later + words)]
    return hashes.size / texts, np.unique(hashes).size, *speeds


def measure_replay(setup: Setup, objects: int, subscriptions: int) -> Figures:
    """A log through the in-process runner: JSON, matching, retaining, results."""
    log = setup.folder / "analyzers.jsonl"
    write_log(setup.workload(objects, subscriptions), log)
    results = setup.folder / "analyzers-results.jsonl"
    rows = []
    for title, table in ANALYZERS.items():
        seconds = []
        for _ in range(REPLAYS + 1):  # the first compiles
            started = time.process_time()
            totals = placewire.replay(log, results, settings=table)
            seconds.append(time.process_time() - started)
        rows.append((title, totals.results, totals.dead_letters, min(seconds[1:])))
    yield Table("analyzers-replay", ("analyzer", "matches", "dead letters", "seconds"), rows)


def block_of(texts: list[str]) -> TextBlock:
    """Texts in one buffer."""
    column = pa.array(texts, pa.large_string())
    offsets = np.frombuffer(column.buffers()[1], np.int64)
    return TextBlock(np.frombuffer(column.buffers()[2], np.uint8), offsets[:-1], offsets[1:])


def seconds_of(work: Callable[[], object]) -> float:
    """Processor time: the machine is shared."""
    started = time.process_time()
    work()
    return time.process_time() - started
