"""`placewire import`: queries of other systems as an event log, and an account of them."""

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
from typing import Any, BinaryIO, NamedTuple

import msgspec

from placewire.cli.progress import ProgressLine
from placewire.importers import (
    DIFFERENCES,
    ImportOptions,
    import_fences,
    import_queries,
)
from placewire.importers import ImportOutcome as Outcome
from placewire.importers import ImportReport as Ledger
from placewire.model.errors import InvalidEvent, Unusable
from placewire.model.times import format_timestamp, parse_timestamp

SOURCES = ("elasticsearch", "opensearch", "tile38")
SOME_NOT_TRANSLATED = 1
SHOW_EVERY = 1 << 20  # bytes read


class ImportCommand(NamedTuple):
    """What was asked on the command line."""

    file: str
    source: str
    out: str
    report: Path | None
    text_fields: list[str]
    place_fields: list[str]
    query_field: str
    key: str | None
    ts: str | None
    with_data: bool
    phrases_as_words: bool
    json: bool


def run_import(command: ImportCommand) -> int:
    """Translate a file and tell what came of it; gives the exit code, raises Unusable."""
    options = check(command)
    started = time.monotonic()
    ledger = Ledger()
    with input_path(command.file) as path:
        for written in (command.out, command.report):
            if written is not None and written != "-" and is_same(Path(written), path):
                raise Unusable(f"{written}: is the file that is imported")
        if command.report is not None and str(command.report) == command.out:
            raise Unusable(f"{command.out}: --out and --report are two files")
        with ProgressLine("import", passes(command) * size_of(path)) as progress:
            shown = 0

            def moved(read: int) -> None:
                nonlocal shown
                if abs(read - shown) >= SHOW_EVERY:
                    shown = read
                    progress.update(read, f"{ledger.queries:,} queries")

            run = import_fences if command.source == "tile38" else import_queries
            outcomes = run(path, options, moved)
            first = next(outcomes, None)  # refuses a file while an old output is still whole
            if first is None:
                raise Unusable(f"{command.file}: has no {name_of(command.source)}")
            with output(command.out) as events, report_file(command.report) as report:
                for outcome in chain([first], outcomes):
                    write(outcome, ledger, events, report)
    took = time.monotonic() - started
    if command.json:
        facts = {**ledger.as_facts(), "throughout": list(differences(command.source))}
        print(json.dumps(facts), file=sys.stderr if command.out == "-" else sys.stdout)
    else:
        for line in summary(ledger, command.source, took):
            print(line, file=sys.stderr)
    return SOME_NOT_TRANSLATED if ledger.refused else 0


def check(command: ImportCommand) -> ImportOptions:
    """What was asked, in order; raises Unusable."""
    if command.source not in SOURCES:
        raise Unusable(f"--from: must be one of {', '.join(SOURCES)}, got {command.source!r}")
    of_fences = command.source == "tile38"
    if of_fences and (command.text_fields or command.place_fields or command.phrases_as_words):
        raise Unusable("--from tile38: fences have no fields and no phrases")
    if not of_fences and command.key is not None:
        raise Unusable("--key: only fences of tile38 have a collection")
    ts = command.ts or format_timestamp(int(time.time()) * 1_000_000)
    try:
        parse_timestamp(ts)
    except InvalidEvent as error:
        raise Unusable(f"--ts: {error}") from None
    return ImportOptions(
        ts,
        command.text_fields,
        command.place_fields,
        command.query_field,
        command.key,
        command.with_data,
        command.phrases_as_words,
    )


def passes(command: ImportCommand) -> int:
    """How often the file is read: twice if fields or the collection have to be found out."""
    if command.source == "tile38":
        return 2 if command.key is None else 1
    return 1 if command.text_fields and command.place_fields else 2


def write(outcome: Outcome, ledger: Ledger, events: BinaryIO, report: BinaryIO | None) -> None:
    """Put down what became of one query."""
    ledger.add(outcome)
    for event in outcome.events:
        events.write(msgspec.json.encode(event) + b"\n")
    if report is not None and (entry := outcome.as_entry()) is not None:
        report.write(msgspec.json.encode(entry) + b"\n")


def summary(ledger: Ledger, source: str, took_s: float) -> Iterator[str]:
    """What came of it, for a person."""
    facts = ledger.as_facts()
    noted = f", {ledger.noted:,} of them with notes" if ledger.noted else ""
    yield (
        f"{name_of(source)} {ledger.queries:,}, translated {ledger.translated:,}{noted},"
        f" not translated {ledger.refused:,}; subscriptions {ledger.subscriptions:,},"
        f" {took_s:.1f} s"
    )
    for title, name in (("not translated:", "refusals"), ("notes:", "notes")):
        if facts[name]:
            yield title
        for reason in facts[name]:
            yield f"{reason['queries']:>9,}  {shortened(reason['what'])}"
            yield f"{'':11}{'; '.join(map(sample_line, reason['samples']))}"
    if ledger.translated:
        yield "in all of them:"
        for difference in differences(source):
            yield f"{'':11}{difference}"


def sample_line(sample: dict[str, Any]) -> str:
    """Which query a reason is about: its id or line, where in it, and what was got."""
    text = shortened(sample["id"]) if "id" in sample else f"line {sample['line']:,}"
    text += f" at {shortened(sample['where'])}" if "where" in sample else ""
    return text + (f", got {shortened(sample['got'])}" if "got" in sample else "")


def shortened(text: str) -> str:
    """A text on one line that a terminal takes."""
    text = "".join(each if each.isprintable() else "?" for each in text)
    return text if len(text) <= 120 else text[:117] + "..."


def name_of(source: str) -> str:
    return "fences" if source == "tile38" else "queries"


def differences(source: str) -> tuple[str, ...]:
    return DIFFERENCES[name_of(source)]


@contextlib.contextmanager
def input_path(file: str) -> Iterator[Path]:
    """The file; standard input is put down first, because it is read twice."""
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
def output(out: str) -> Iterator[BinaryIO]:
    if out == "-":
        if sys.stdout is None:
            raise Unusable("standard output is closed")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open_output(Path(out)) as file:
        yield file


@contextlib.contextmanager
def report_file(path: Path | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    with open_output(path) as file:
        yield file


def open_output(path: Path) -> BinaryIO:
    try:
        return open(path, "wb")
    except OSError as error:
        raise Unusable(f"{path}: cannot be written: {error.strerror}") from None


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from None


def is_same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False
