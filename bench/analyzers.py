"""Analyzers side by side on one core: texts to terms, terms to words, and a whole replay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

import placewire
from bench.settings import Choice
from bench.tables import save_table
from bench.workload import write_log
from placewire.demo import CityLife, blocks
from placewire.model.settings import settings_of
from placewire.text.analyzer import Analyzer, TermSets
from placewire.text.analyzers import open_analyzer
from placewire.text.scripts import is_cjk
from placewire.text.words import words_of_terms

ANALYZERS: dict[str, dict[str, Any]] = {
    "default": {},
    "default, stop words": {"stop_words": "english"},
    "cjk-bigram": {"analyzer": "cjk-bigram"},
    "snowball:english": {"analyzer": "snowball:english"},
    "snowball:english, stop words": {"analyzer": "snowball:english", "stop_words": "english"},
}
OBJECTS = 200_000
SUBSCRIPTIONS = 100_000
CITY_OBJECTS = 400_000
BLOCK = 25_000
ROUNDS = 7
REPLAYS = 2
KEY = 1, 2


class Block(NamedTuple):
    """Texts as slices of a buffer."""

    raw: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def run(choice: Choice) -> None:
    """Texts of the data, and texts in Chinese, Japanese and Korean without blanks."""
    texts = choice.workload(OBJECTS, SUBSCRIPTIONS).objects["text"].to_pylist()
    eastern = list(eastern_texts())
    run_analysing("analyzers", texts)
    run_analysing("analyzers-eastern", eastern)
    run_replay(choice)


def eastern_texts() -> Iterator[str]:
    """What the generator says in scripts without blanks, the blanks that it puts there left out."""
    life = CityLife(objects=CITY_OBJECTS, subscriptions=1)
    for block in blocks(life):
        for line in block.splitlines():
            event = msgspec.json.decode(line)
            text = event.get("text", "")
            if event["type"] == "object" and sum(map(is_cjk, text)) > len(text) / 2:
                yield text.replace(" ", "")


def run_analysing(name: str, texts: list[str]) -> None:
    """Objects a second of processor time, by blocks as a batch has them."""
    parts = [block_of(texts[at : at + BLOCK]) for at in range(0, len(texts), BLOCK)]
    rows = []
    for title, table in ANALYZERS.items():
        open_analyzer(settings_of(table), (0, 0)).analyse(*block_of(texts[:10]))  # compiles
        rows.append((title, *measure(open_analyzer(settings_of(table), KEY), parts, len(texts))))
    headings = (
        "analyzer", "terms an object", "distinct terms", "first time, objects/s",
        "analysing, objects/s", "finding words, objects/s", "both, objects/s",
    )  # fmt: skip
    save_table(name, headings, rows)


def measure(analyzer: Analyzer, parts: list[Block], texts: int) -> tuple[float, ...]:
    """Terms an object, distinct terms, and speeds: the first time, later, of words, of both."""
    sets: list[TermSets] = []

    def analyse() -> None:
        sets[:] = [analyzer.analyse(*part) for part in parts]

    def spell() -> None:
        for terms, part in zip(sets, parts, strict=True):
            words_of_terms(analyzer, terms, *part)

    first = seconds_of(analyse)
    later = min(seconds_of(analyse) for _ in range(ROUNDS))
    words = min(seconds_of(spell) for _ in range(ROUNDS))
    hashes = np.concatenate([terms.hashes for terms in sets])
    speeds = [texts / seconds for seconds in (first, later, words, later + words)]
    return hashes.size / texts, np.unique(hashes).size, *speeds


def run_replay(choice: Choice) -> None:
    """A log through the in-process runner: JSON, matching, retaining, results."""
    log = choice.folder / "analyzers.jsonl"
    write_log(choice.workload(OBJECTS, SUBSCRIPTIONS), log)
    results = choice.folder / "analyzers-results.jsonl"
    rows = []
    for title, table in ANALYZERS.items():
        seconds = []
        for _ in range(REPLAYS + 1):  # the first compiles
            started = time.process_time()
            totals = placewire.replay(log, results, settings=table)
            seconds.append(time.process_time() - started)
        rows.append((title, totals.results, totals.dead_letters, min(seconds[1:])))
    save_table("analyzers-replay", ("analyzer", "matches", "dead letters", "seconds"), rows)


def block_of(texts: list[str]) -> Block:
    """Texts in one buffer."""
    column = pa.array(texts, pa.large_string())
    offsets = np.frombuffer(column.buffers()[1], np.int64)
    return Block(np.frombuffer(column.buffers()[2], np.uint8), offsets[:-1], offsets[1:])


def seconds_of(work: Callable[[], object]) -> float:
    """Processor time: the machine is shared."""
    started = time.process_time()
    work()
    return time.process_time() - started
