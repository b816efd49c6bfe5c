"""Samples: the few results that a person can read, found without looking at all the others."""

from __future__ import annotations

import mmap
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewire.cli.standing import Change, Standing, updates_of
from placewire.cli.words import answered, changed, counted, measured
from placewire.cli.written import results_named
from placewire.model.events import ObjectEvent
from placewire.state.arrays import open_arrays
from placewire.state.layout import StateDir
from placewire.state.manifest import Manifest
from placewire.state.segment import Segment, open_segment
from placewire.text.analyzer import Analyzer

SAMPLES_A_BATCH = 3
CHUNK_BYTES = 1 << 24


class Sample(NamedTuple):
    """One result in words: a match, an object that a result has now, a report, an answer.

    `text` is the object's, or what a report or an answer says; these have no place. Of an object
    that entered a result `lead` says how far it is or how well it suits, and what it changed.
    """

    time: str
    name: str  # of the subscription or query
    text: str
    place: tuple[float, float] | None = None
    lead: str = ""
    dropped: str | None = None  # the text of what is no longer in the result


class LogLines:
    """Any line of a log by its seq: the engine keeps no texts, the log has them."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            self.whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        raw = np.frombuffer(self.whole, np.uint8)
        ends = [np.full(1, -1, np.int64)]
        for start in range(0, raw.size, CHUNK_BYTES):
            ends.append(np.flatnonzero(raw[start : start + CHUNK_BYTES] == 10) + start)
        self.ends = np.concatenate(ends)

    def object_at(self, seq: int) -> ObjectEvent:
        """The object of the line numbered `seq`."""
        line = self.whole[self.ends[seq] + 1 : self.ends[seq + 1]]
        return msgspec.json.decode(line, type=ObjectEvent)

    def time_at(self, seq: int) -> str:
        """The time of day of the line numbered `seq`."""
        line = self.whole[self.ends[seq] + 1 : self.ends[seq + 1]]
        time: str = msgspec.json.decode(line)["ts"][11:19]
        return time

    def seq_of(self, name: str, until: int) -> int:
        """The seq of the object of this id, which no other has; it comes at `until` or before."""
        end = int(self.ends[until + 1])
        at = self.whole.rfind(b'"id":' + msgspec.json.encode(name) + b",", 0, end)
        return int(np.searchsorted(self.ends, at)) - 1


class News(NamedTuple):
    """A result by seqs: of a match the object, of an update the event and what changed."""

    seq: int
    change: Change | None = None


class Listener:
    """Hears the results of a few subscriptions: counts all of them, keeps the last in words.

    They are given as the `subscribe` events that made them, and stand through the whole log. Of
    reports and of the answers to some queries it keeps all.
    """

    def __init__(
        self,
        state: StateDir,
        lines: LogLines,
        subscribes: list[dict[str, Any]],
        queries: list[dict[str, Any]],
    ) -> None:
        self.state = state
        self.lines = lines
        self.ids = [event["id"] for event in subscribes]
        self.kinds = {event["id"]: event["kind"] for event in subscribes}
        self.wishes = {event["id"]: event for event in subscribes}
        self.queries = {event["id"]: event for event in queries}
        self.standing = {
            name: Standing(scored=kind == "relevant")
            for name, kind in self.kinds.items()
            if kind in ("nearest", "relevant")
        }
        self.reports: dict[str, list[Sample]] = {
            name: [] for name, kind in self.kinds.items() if kind == "trending"
        }
        self.answers: list[Sample] = []
        self.counts = np.zeros(len(self.ids), np.int64)
        self.last: dict[str, Sample] = {}
        self._told = np.zeros(len(self.ids), np.int64)
        self._rows: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def hear(self, manifest: Manifest) -> list[Sample]:
        """Look through a committed batch; gives a few samples in log order."""
        seqs, numbers = self._matches(manifest)
        self.counts += np.bincount(numbers, minlength=self.counts.size)
        newest = {number: News(seq) for seq, number in sorted(zip(seqs, numbers, strict=True))}
        newest |= self._follow(manifest)
        for number, news in newest.items():
            self.last[self.ids[number]] = self.sample(self.ids[number], news)
        newest |= self._read_reports(manifest)
        # One result a subscription, and first those that have told least: a storm is not all.
        # Of equals matches come last, which are many.
        quiet = sorted(newest, key=lambda n: (self._told[n], self._matches_only(n)))
        quiet = quiet[:SAMPLES_A_BATCH]
        self._told[quiet] += 1
        told = [(newest[number].seq, self.last[self.ids[number]]) for number in quiet]
        return [sample for _, sample in sorted(told + self._read_answers(manifest))]

    def _matches_only(self, number: int) -> bool:
        return bool(self.kinds[self.ids[number]] == "boolean")

    def sample(self, subscription: str, news: News) -> Sample:
        """A result in words."""
        if news.change is None:
            found = self.lines.object_at(news.seq)
            return Sample(found.ts[11:19], subscription, found.text, (found.lon, found.lat))
        _, added, dropped = news.change
        first = (added or dropped)[0]
        found = self.lines.object_at(first.seq)
        lead = changed(
            [member.measure for member in added],
            [member.measure for member in dropped],
            self.standing[subscription].scored,
        )
        out = self.lines.object_at(dropped[0].seq).text if added and dropped else None
        time = self.lines.time_at(news.seq)
        return Sample(time, subscription, found.text, (found.lon, found.lat), lead, out)

    def members(self, subscription: str) -> list[Sample]:
        """The result of a `nearest` or `relevant` subscription as it stands, in words."""
        standing = self.standing[subscription]
        samples = []
        for member in standing.members:
            sample = self.sample(subscription, News(member.seq))
            samples.append(sample._replace(lead=measured(member.measure, standing.scored)))
        return samples

    def of_kind(self, kind: str) -> list[str]:
        """The ids of the subscriptions of one kind."""
        return [name for name in self.ids if self.kinds[name] == kind]

    def _follow(self, manifest: Manifest) -> dict[int, News]:
        """Apply the batch's updates of these subscriptions; gives the newest of each."""
        newest = {}
        names = list(self.standing)
        for name, updates in zip(names, updates_of(self.state, manifest, names), strict=True):
            number = self.ids.index(name)
            self.counts[number] += len(updates)
            for update in updates:
                change = self.standing[name].apply(update, self.lines.seq_of)
                newest[number] = News(update.seq, change)
        return newest

    def _read_reports(self, manifest: Manifest) -> dict[int, News]:
        """Keep the batch's reports of these subscriptions; gives the newest of each."""
        newest = {}
        for report in results_named(self.state, manifest.reports, set(self.reports)):
            name = report["subscription"]
            sample = Sample(report["at"][11:19], name, counted(report["terms"]))
            self.reports[name].append(sample)
            self.last[name] = sample
            number = self.ids.index(name)
            self.counts[number] += 1
            newest[number] = News(report["seq"])
        return newest

    def _read_answers(self, manifest: Manifest) -> list[tuple[int, Sample]]:
        """Keep the batch's answers to these queries, and give them with their seqs."""
        found = []
        for answer in results_named(self.state, manifest.answers, set(self.queries)):
            seq, name = answer["seq"], answer["query"]
            words = answered(self.queries[name], answer, partial(self._text_of, seq))
            found.append((seq, Sample(self.lines.time_at(seq), name, words)))
        self.answers += [sample for _, sample in found]
        return found

    def _text_of(self, until: int, name: str) -> str:
        return self.lines.object_at(self.lines.seq_of(name, until)).text

    def _matches(self, manifest: Manifest) -> tuple[list[int], list[int]]:
        """The batch's matches of these subscriptions: seqs, and numbers of subscriptions."""
        seqs: list[int] = []
        numbers: list[int] = []
        self._forget(manifest)
        for piece in manifest.pieces:
            rows, of = self._rows_of(piece.segment, manifest.key)
            if not rows.size:
                continue
            stored = open_arrays(self.state.file(piece.file)).arrays
            matched = stored[f"{piece.prefix}.row"]
            picked = np.flatnonzero(np.isin(matched, rows))
            block = manifest.blocks[piece.block]
            events = open_arrays(self.state.file(block.file)).arrays["object.event"]
            objects = stored[f"{piece.prefix}.object"][picked]
            seqs += (block.first_seq + events[objects].astype(np.int64)).tolist()
            numbers += of[np.searchsorted(rows, matched[picked])].tolist()
        return seqs, numbers

    def _forget(self, manifest: Manifest) -> None:
        """Segments that are merged away take their rows with them."""
        named = {piece.segment for piece in manifest.pieces}
        named |= {entry.name for entry in manifest.segments}
        self._rows = {name: rows for name, rows in self._rows.items() if name in named}

    def _rows_of(
        self, name: str, key: tuple[int, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of one segment that these ids name, ascending, and whose they are."""
        if name not in self._rows:
            segment = open_segment(self.state.file(name))
            hashes = Analyzer(*key).hash_terms(self.ids)
            found = [
                (row, number)
                for number, subscription in enumerate(self.ids)
                for row in rows_named(segment, subscription, hashes[number])
            ]
            pairs = np.array(sorted(found), np.int64).reshape(-1, 2)
            self._rows[name] = pairs[:, 0], pairs[:, 1]
        return self._rows[name]


def rows_named(segment: Segment, subscription: str, id_hash: np.uint64) -> list[int]:
    """The rows of a segment that have this id, through its directory."""
    hashes, rows = segment.directory_hash, segment.rows
    first, last = (
        np.searchsorted(hashes, id_hash, "left"),
        np.searchsorted(hashes, id_hash, "right"),
    )
    return [
        row
        for row in segment.directory_row[first:last].tolist()
        if rows.id_bytes[rows.id_offsets[row] : rows.id_offsets[row + 1]].tobytes()
        == subscription.encode()
    ]
