"""`placewire publish`, `subscribe`, `unsubscribe`, `subscriptions` and `tail`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from placewire.cli.options import CommandTarget, open_reader, open_writer
from placewire.cli.output import (
    ProgressLine,
    format_measure,
    format_point,
    format_subscription,
    format_terms,
    quote_text,
)
from placewire.model.errors import Unusable
from placewire.model.kinds import kind_named
from placewire.serve.client.client import Sent, read_chunks, send_chunks

MAX_KEY_CHARS = 100  # of an idempotency key
MAX_JSON_ERRORS = 1_000
MAX_PRINTED_ERRORS = 20


class TypedObject(NamedTuple):
    """The object of `--text` and its fields."""

    text: str | None
    lon: float | None
    lat: float | None
    id: str | None
    ts: str | None
    data: str | None


def run_publish(
    file: str | None, one: TypedObject, target: CommandTarget, name: str, as_json: bool
) -> int:
    """Publish objects under an idempotency key and return the exit code; raises Unusable."""
    if len(name) > MAX_KEY_CHARS or not name.isprintable():
        raise Unusable(f"idempotency-key: must be at most {MAX_KEY_CHARS} printable characters")
    if (file is None) == (one.text is None):
        raise Unusable("publish: give either a FILE (- for standard input) or --text")
    if file is None:
        return publish_one(one, target, name, as_json)
    stray = [f"--{field}" for field, value in one._asdict().items() if value is not None]
    if stray:
        raise Unusable(f"publish: {stray[0]} needs --text instead of a FILE")
    return send_file("objects", file, target, name, as_json)


def publish_one(one: TypedObject, target: CommandTarget, name: str, as_json: bool) -> int:
    if one.lon is None or one.lat is None:
        raise Unusable("publish: --text needs --lon and --lat")
    event: dict[str, Any] = {k: value for k, value in one._asdict().items() if value is not None}
    # An idempotency key also fixes the id: a retry publishes the same object.
    made = hashlib.sha256(name.encode()).hexdigest()[:16] if name else ""
    event.setdefault("id", made or secrets.token_hex(8))
    if one.data is not None:
        event["data"] = read_json(one.data, "data")
    with open_writer(target) as writer:
        chunks = [[msgspec.json.encode(event)]]
        (sent,) = send_chunks(partial(writer.send, "objects"), chunks, name)
    if sent.rejected:
        raise Unusable(sent.errors[0].error)
    if as_json:
        print(json.dumps({"id": event["id"], "seq": sent.first_seq}))
    else:
        print(f"published {event['id']}, seq {sent.first_seq}")
    return 0


def send_file(what: str, file: str, target: CommandTarget, name: str, as_json: bool) -> int:
    """Send the lines of a file or of standard input; return the exit code."""
    started = time.monotonic()
    sent = Sent()
    printed = 0
    with (
        open_lines(file) as (source, size),
        open_writer(target) as writer,
        ProgressLine(what, size) as progress,
    ):
        read = 0

        def note(count: int) -> None:
            nonlocal read
            read += count

        chunks = read_chunks(source, file, note, steady=bool(name))
        name = f"{name}-{what}" if name and what != "objects" else name
        for more in send_chunks(partial(writer.send, what), chunks, name):
            printed = print_errors(progress.print_line, more, printed) if not as_json else printed
            sent = sent.with_more(more)
            sent = sent._replace(errors=sent.errors[:MAX_JSON_ERRORS])
            progress.update(read, f"{sent.accepted:,} accepted, {sent.rejected:,} rejected")
    took_s = max(time.monotonic() - started, 1e-9)
    if as_json:
        print(json.dumps({**sent.as_facts(), "seconds": round(took_s, 3)}))
    else:
        if sent.rejected > printed:
            print(f"and {sent.rejected - printed:,} more lines rejected", file=sys.stderr)
        print(format_sent(what, sent, took_s))
    return 1 if sent.rejected else 0


def print_errors(print_line: Callable[[str], None], sent: Sent, printed: int) -> int:
    """Print the first rejected lines; return how many are printed by now."""
    for error in sent.errors[: max(MAX_PRINTED_ERRORS - printed, 0)]:
        print_line(f"line {error.line}: {error.error}")
        printed += 1
    return printed


def format_sent(what: str, sent: Sent, took_s: float) -> str:
    """Format what was sent on one line."""
    seqs = f", seq {sent.first_seq} to {sent.last_seq}" if sent.accepted else ""
    return (
        f"{what} {sent.accepted}{seqs}, rejected {sent.rejected},"
        f" {(sent.accepted + sent.rejected) / took_s:.0f} lines/s"
    )


@contextlib.contextmanager
def open_lines(file: str) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file or standard input; yield it with its size in bytes, 0 if unknown."""
    if file == "-":
        if sys.stdin is None:
            raise Unusable("standard input is closed")
        yield sys.stdin.buffer, 0
        return
    try:
        source = open(Path(file), "rb")  # noqa: SIM115
        found = os.fstat(source.fileno())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Unusable(f"{file}: cannot be read: {why.lower()}") from None
    with source:
        yield source, found.st_size if stat.S_ISREG(found.st_mode) else 0


def read_json(text: str, what: str) -> Any:
    """Parse the JSON value of an option; raises Unusable."""
    try:
        return json.loads(text, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"{what}: must be JSON: {error}") from None


def reject_constant(name: str) -> float:
    """Reject NaN and the infinities, which JSON does not have."""
    raise ValueError(f"a number must be finite, got {name}")


REGIONS = ("box", "circle", "polygon")


def run_subscribe(
    id: str | None,
    given: dict[str, Any],
    body: str | None,
    file: str | None,
    target: CommandTarget,
    name: str,
    as_json: bool,
) -> int:
    """Create or replace subscriptions and return the exit code; raises Unusable.

    `given` has the options that describe a subscription, by field of the event or form of region.
    """
    given = {field: value for field, value in given.items() if value is not None}
    if sum((bool(given), body is not None, file is not None)) > 1 or (
        file is not None and id is not None
    ):
        raise Unusable("subscribe: give either fields, --json-body or --file")
    if file is not None:
        return send_file("subscriptions", file, target, name, as_json)
    subscription = read_fields(given) if body is None else read_body(body)
    if not subscription:
        if id is not None and id.lstrip().startswith("{"):
            raise Unusable("subscribe: pass JSON as --json-body, not as the id")
        raise Unusable("subscribe: needs fields such as --where and --box, --json-body or --file")
    with open_writer(target) as writer:
        id = id if id is not None else subscription.pop("id", None)
        made = writer.subscribe(id, **subscription)
    if as_json:
        print(json.dumps(made))
    else:
        print(f"{'replaced' if made['replaced'] else 'subscribed'} {made['id']}, seq {made['seq']}")
    return 0


def read_body(text: str) -> dict[str, Any]:
    """Parse a subscription given as JSON; raises Unusable."""
    body = read_json(text, "json-body")
    if not isinstance(body, dict):
        raise Unusable(f"json-body: must be one JSON object, got {type(body).__name__}")
    return body


def read_fields(given: dict[str, Any]) -> dict[str, Any]:
    """Return the subscription that the options describe; raises Unusable."""
    if not given:
        return {}
    regions = [name for name in REGIONS if name in given]
    if len(regions) > 1:
        raise Unusable(f"region: must be one, got --{regions[0]} and --{regions[1]}")
    fields = {name: value for name, value in given.items() if name not in REGIONS}
    if "keywords" in fields:
        fields["keywords"] = [
            word for given in fields["keywords"] for word in given.split(",") if word.strip()
        ]
    if "data" in fields:
        fields["data"] = read_json(fields["data"], "data")
    if "box" in given:
        fields["region"] = {"box": read_numbers(given["box"], "box", "WEST,SOUTH,EAST,NORTH")}
    if "circle" in given:
        lon, lat, radius_m = read_numbers(given["circle"], "circle", "LON,LAT,RADIUS_M")
        fields["region"] = {"circle": {"lon": lon, "lat": lat, "radius_m": radius_m}}
    if "polygon" in given:
        fields["region"] = {"polygon": read_polygon(given["polygon"])}
    return {"kind": "boolean"} | fields


def read_numbers(text: str, what: str, form: str) -> list[float]:
    """Parse numbers separated by commas; raises Unusable."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != form.count(",") + 1 or not all(abs(value) < 1e300 for value in values):
        raise Unusable(f"{what}: must be {form}, got {text!r}")
    return values


def read_polygon(text: str) -> Any:
    """Parse rings as JSON, a GeoJSON polygon, or a file with one of them; raises Unusable."""
    if not text.lstrip().startswith(("[", "{")):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise Unusable(f"polygon {text}: cannot be read: {why.lower()}") from None
    found = read_json(text, "polygon")
    if isinstance(found, dict) and found.get("type") == "Feature":
        found = found.get("geometry")
    if isinstance(found, dict) and found.get("type") == "Polygon":
        found = found.get("coordinates")
    if not isinstance(found, list):
        raise Unusable("polygon: must be rings of positions, or a GeoJSON Polygon")
    # Accept a single ring without the list around it.
    alone = found and isinstance(found[0], list) and found[0] and not isinstance(found[0][0], list)
    return [found] if alone else found


def run_unsubscribe(ids: list[str], target: CommandTarget, as_json: bool) -> int:
    """End subscriptions and return the exit code.

    An unknown id raises Unusable if it is the only one; otherwise it is reported and skipped.
    """
    code = 0
    with open_writer(target) as writer:
        for name in ids:
            try:
                ended = writer.unsubscribe(name)
            except Unusable as error:
                if len(ids) == 1 or getattr(error, "status", 0) != 404:
                    raise
                print(f"placewire: {error}", file=sys.stderr)
                code = 1
                continue
            print(json.dumps(ended) if as_json else f"ended {name}, seq {ended['seq']}")
    return code


def run_subscriptions(ids: list[str], target: CommandTarget, every: bool, as_json: bool) -> None:
    """List subscriptions, or show some of them in full; raises Unusable."""
    with open_reader(target) as reader:
        if ids:
            for name in ids:
                one = reader.subscription(name)
                ranked = kind_named(one["kind"]).form.lists
                standing = reader.standing(name) if ranked else None
                print_one(one, standing, as_json)
            return
        if as_json:
            for one in reader.subscriptions():
                if every or one["status"] == "live":
                    print(json.dumps(one, ensure_ascii=False))
            return
        console = Console(highlight=False, soft_wrap=True)
        shown = hidden = 0
        for one in reader.subscriptions():
            if not every and one["status"] != "live":
                hidden += 1
                continue
            shown += 1
            console.print(format_listed(one), markup=False)
    if not shown:
        print("no subscriptions", file=sys.stderr)
    if hidden:
        print(f"{hidden:,} ended or expired, not shown; --all lists them", file=sys.stderr)


def format_listed(one: dict[str, Any]) -> str:
    """Format a subscription with its status and results on one line."""
    status = "" if one["status"] == "live" else f", {one['status']}"
    results = f"{one['results']:,} result{'' if one['results'] == 1 else 's'}"
    wanted = format_subscription(one["subscription"])
    return f"{one['id']} ({one['kind']}{status}, {results}): {wanted}"


def print_one(one: dict[str, Any], standing: dict[str, Any] | None, as_json: bool) -> None:
    """Print a subscription in full, with its current result if it is ranked."""
    if as_json:
        facts = one if standing is None else {**one, "standing": standing}
        print(json.dumps(facts, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(format_listed(one), markup=False)
    console.print(f"  since {one['since']}, seq {one['seq']}, owner {one['owner']}", markup=False)
    for rank, named in enumerate((standing or {}).get("objects", ()), 1):
        console.print(f"  {rank}. {format_measure(named)}  {named['object']}", markup=False)
    if (standing or {}).get("terms"):
        assert standing is not None
        console.print(f"  {standing['at']}: {format_terms(standing['terms'])}", markup=False)


def run_tail(
    ids: list[str],
    target: CommandTarget,
    after: str,
    seconds: float | None,
    most: int | None,
    as_json: bool,
) -> None:
    """Print results until the limit of time or count, or Ctrl-C; raises Unusable."""
    start = read_after(after)
    console = Console(highlight=False, soft_wrap=True)
    with open_reader(target) as reader:
        if most == 0:
            return
        results = reader.tail(*ids, after=start, objects=not as_json, seconds=seconds)
        for got in islice(results, most):
            if as_json:
                print(json.dumps(got, ensure_ascii=False), flush=True)
            else:
                console.print(format_result(got, alone=len(ids) == 1))
                sys.stdout.flush()


def read_after(text: str) -> int | str:
    """Read a number or `latest`; raises Unusable."""
    if text == "latest":
        return text
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Unusable(f"after: must be a number or 'latest', got {text!r}")
    return int(text)


def format_result(got: dict[str, Any], alone: bool) -> Text:
    """Format a result on one line; `alone` omits the id of its subscription."""
    result, objects = got["result"], got.get("objects", {})
    line = Text()
    if not alone:
        line.append(f"{got['subscription']} ", "cyan")
    line.append(f"{got['number']} ", "dim")
    if result["type"] == "report":
        return line.append(f"at {result['at']}: {format_terms(result['terms'])}")
    if result["type"] == "match":
        return line.append(format_object(result["object"], objects))
    for number, named in enumerate(result["add"]):
        line.append("; " if number else "")
        measure = f"{'score ' if 'score' in named else ''}{format_measure(named)}"
        line.append(f"{measure}: ", "bold").append(format_object(named["object"], objects))
    if result["drop"]:
        gone = ", ".join(named["object"] for named in result["drop"])
        line.append("; " if result["add"] else "").append(f"gone: {gone}", "dim")
    return line


def format_object(name: str, objects: dict[str, Any]) -> str:
    """Format an object with its text and position if they are known, else its id."""
    known = objects.get(name)
    if known is None:
        return name
    return f"{quote_text(known['text'])} at {format_point(known['lon'], known['lat'])} ({name})"
