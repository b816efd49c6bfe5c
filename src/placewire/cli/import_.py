"""`placewire import`: translate queries of other systems into subscriptions."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from placewire.cli.output import ProgressLine
from placewire.importers import (
    DIFFERENCES,
    ImportOptions,
    ImportOutcome,
    ImportReport,
    import_fences,
    import_queries,
)
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.times import format_timestamp, parse_timestamp

SOURCES = {"elasticsearch": "queries", "opensearch": "queries", "tile38": "fences"}
SOME_NOT_TRANSLATED = 1
UPDATE_EVERY = 1 << 20  # bytes read


def run_import(
    file: str,
    source: str,
    out: str,
    report_path: Path | None,
    options: ImportOptions,
    as_json: bool,
) -> int:
    """Translate a file, print a summary and return the exit code; raises Unusable."""
    options = check_options(source, options)
    started = time.monotonic()
    counts = ImportReport()
    with input_path(file) as path:
        for written in (out, report_path):
            if written is not None and written != "-" and is_same(Path(written), path):
                raise Unusable(f"{written}: is also the input file")
        if report_path is not None and str(report_path) == out:
            raise Unusable(f"{out}: --out and --report must be two files")
        with ProgressLine("import", count_passes(source, options) * size_of(path)) as progress:
            shown = 0

            def show_progress(read: int) -> None:
                nonlocal shown
                if abs(read - shown) >= UPDATE_EVERY:
                    shown = read
                    progress.update(read, f"{counts.queries:,} queries")

            run = import_fences if source == "tile38" else import_queries
            outcomes = run(path, options, show_progress)
            first = next(outcomes, None)  # reject a bad file before an old output is truncated
            if first is None:
                raise Unusable(f"{file}: has no {SOURCES[source]}")
            with contextlib.ExitStack() as files:
                events = files.enter_context(open_events(out))
                report = files.enter_context(open_output(report_path)) if report_path else None
                for outcome in chain([first], outcomes):
                    write_outcome(outcome, counts, events, report)
    took = time.monotonic() - started
    if as_json:
        facts = {**counts.as_facts(), "throughout": DIFFERENCES[SOURCES[source]]}
        print(json.dumps(facts), file=sys.stderr if out == "-" else sys.stdout)
    else:
        for line in format_summary(counts, source, took):
            print(line, file=sys.stderr)
    return SOME_NOT_TRANSLATED if counts.refused else 0


def check_options(source: str, options: ImportOptions) -> ImportOptions:
    """Check the options and set the time, by default now; raises Unusable."""
    if source not in SOURCES:
        raise Unusable(f"--from: must be one of {', '.join(SOURCES)}, got {source!r}")
    of_fences = source == "tile38"
    if of_fences and (options.text_fields or options.place_fields or options.phrases_as_words):
        raise Unusable("--from tile38: fences have no fields and no phrases")
    if not of_fences and options.key is not None:
        raise Unusable("--key: only fences of tile38 have a collection")
    ts = options.ts or format_timestamp(int(time.time()) * 1_000_000)
    try:
        parse_timestamp(ts)
    except InvalidEvent as error:
        raise Unusable(f"--ts: {error}") from None
    return options._replace(ts=ts)


def count_passes(source: str, options: ImportOptions) -> int:
    """Return how often the file is read: twice if fields or the collection are to be detected."""
    if source == "tile38":
        return 2 if options.key is None else 1
    return 1 if options.text_fields and options.place_fields else 2


def write_outcome(
    outcome: ImportOutcome, counts: ImportReport, events: BinaryIO, report: BinaryIO | None
) -> None:
    """Write the subscriptions of one query and its entry of the report."""
    counts.add(outcome)
    for event in outcome.events:
        events.write(msgspec.json.encode(event) + b"\n")
    if report is not None and (entry := outcome.as_entry()) is not None:
        report.write(msgspec.json.encode(entry) + b"\n")


def format_summary(counts: ImportReport, source: str, took_s: float) -> Iterator[str]:
    """Yield the lines of the summary."""
    facts = counts.as_facts()
    noted = f", {counts.noted:,} of them with notes" if counts.noted else ""
    yield (
        f"{SOURCES[source]} {counts.queries:,}, translated {counts.translated:,}{noted},"
        f" not translated {counts.refused:,}; subscriptions {counts.subscriptions:,},"
        f" {took_s:.1f} s"
    )
    for title, name in (("not translated:", "refusals"), ("notes:", "notes")):
        if facts[name]:
            yield title
        for reason in facts[name]:
            yield f"{reason['queries']:>9,}  {shorten(reason['what'])}"
            yield f"{'':11}{'; '.join(map(format_sample, reason['samples']))}"
    if counts.translated:
        yield "for all of them:"
        for difference in DIFFERENCES[SOURCES[source]]:
            yield f"{'':11}{difference}"


def format_sample(sample: dict[str, Any]) -> str:
    """Format a sample query: its id or line, the place in it, and the value found."""
    text = shorten(sample["id"]) if "id" in sample else f"line {sample['line']:,}"
    text += f" at {shorten(sample['where'])}" if "where" in sample else ""
    return text + (f", got {shorten(sample['got'])}" if "got" in sample else "")


def shorten(text: str) -> str:
    """Shorten a text to one printable line."""
    text = "".join(each if each.isprintable() else "?" for each in text)
    return text if len(text) <= 120 else text[:117] + "..."


@contextlib.contextmanager
def input_path(file: str) -> Iterator[Path]:
    """Yield the path of the input; standard input is copied to a file, to be read twice."""
    if file != "-":
        yield Path(file)
        return
    if sys.stdin is None:
        raise Unusable("standard input is closed")
    with tempfile.NamedTemporaryFile(prefix="placewire-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name)


@contextlib.contextmanager
def open_events(out: str) -> Iterator[BinaryIO]:
    """Open the file of subscriptions, or standard output."""
    if out == "-":
        if sys.stdout is None:
            raise Unusable("standard output is closed")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open_output(Path(out)) as file:
        yield file


def open_output(path: Path) -> BinaryIO:
    """Open a file for writing; raises Unusable."""
    try:
        return open(path, "wb")
    except OSError as error:
        raise Unusable(f"{path}: cannot be written: {error.strerror}") from None


def size_of(path: Path) -> int:
    """Return the size of a file; raises Unusable."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from None


def is_same(first: Path, second: Path) -> bool:
    """Whether both paths are one existing file."""
    try:
        return first.samefile(second)
    except OSError:
        return False
