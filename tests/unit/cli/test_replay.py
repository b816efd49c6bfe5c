"""`placewire replay` as a user meets it: exit codes, one clear line, files exactly as specified."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logs import BUILT_KINDS
from oracle import Outcome, replay
from placewire.cli.main import main
from placewire.storage import arrays

SUMMARY = re.compile(
    r"events (\d+), results (\d+), dead letters (\d+),"
    r" unsubscribes of nothing (\d+), \d+ events/s\n"
)
TS = "2026-03-01T12:00:00Z"


class Command:
    """Runs the command in this process (it is the same `main`), with files under one folder."""

    def __init__(
        self, folder: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ):
        self.folder = folder
        self.capture = capture
        self.patch = patch
        self.results = folder / "results.jsonl"
        self.dead = folder / "dead.jsonl"
        self.out = ""
        self.err = ""

    def run(self, *arguments: object) -> int:
        self.capture.readouterr()
        arrays._open.clear()  # a command of its own has no file open yet
        self.patch.setattr(sys, "argv", ["placewire", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        self.out, self.err = self.capture.readouterr()
        return int(ended.value.code or 0)

    def log(self, content: bytes, name: str = "log.jsonl") -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def settings(self, content: str) -> Path:
        path = self.folder / "settings.toml"
        path.write_text(content)
        return path

    def replay(self, log: Path, *more: object) -> int:
        return self.run(
            "replay", log, "--results", self.results, "--dead-letters", self.dead,
            "--runner", "local", *more,
        )  # fmt: skip

    def refused(self, *arguments: object) -> str:
        """The one clear line of a command that must be refused."""
        assert self.run(*arguments) == 2
        assert "Traceback" not in self.err + self.out
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("placewire: ")
        return self.err

    def read(self, path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def counts(self) -> list[int]:
        found = SUMMARY.fullmatch(self.out)
        assert found is not None, self.out
        return [int(number) for number in found.groups()]


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    return Command(tmp_path, capsys, monkeypatch)


def dump(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def placed(id: str, text: str = "coffee", ts: str = TS, **more: Any) -> bytes:
    return dump({"type": "object", "id": id, "ts": ts, "lon": 0, "lat": 0, "text": text, **more})


def subscribe(id: str, where: Any = "coffee", ts: str = TS, **more: Any) -> bytes:
    return dump(
        {"type": "subscribe", "id": id, "ts": ts, "kind": "boolean", "where": where, **more}
    )


def unsubscribe(id: str, ts: str = TS) -> bytes:
    return dump({"type": "unsubscribe", "id": id, "ts": ts})


def lines(*events: bytes) -> bytes:
    return b"".join(event + b"\n" for event in events)


def expected_of(log: bytes, **more: Any) -> Outcome:
    return replay(log, kinds=BUILT_KINDS, **more)


def check_replay(
    command: Command, log: bytes, *arguments: object, with_data: bool = False, **settings: Any
) -> None:
    """The command's files and summary are the oracle's."""
    expected = expected_of(log, with_data=with_data, settings=settings or None)
    flags = ["--with-data"] if with_data else []
    assert command.replay(command.log(log), *arguments, *flags) == 0, command.err
    assert command.read(command.results) == expected.results
    assert [(d["seq"], d["event"]) for d in command.read(command.dead)] == [
        (d["seq"], d["event"]) for d in expected.dead
    ]
    events = log.count(b"\n") + (not log.endswith(b"\n") and bool(log))
    assert command.counts() == [
        events, len(expected.results), len(expected.dead), expected.idle_unsubscribes,
    ]  # fmt: skip


# --- what a run gives ---

SMALL = lines(subscribe("s1"), placed("o1"), b"bad", unsubscribe("s1"), unsubscribe("s1"))


def test_results_dead_letters_and_summary(command: Command) -> None:
    assert command.replay(command.log(SMALL)) == 0
    assert command.results.read_bytes() == (
        b'{"seq":1,"type":"match","subscription":"s1","object":"o1"}\n'
    )
    (letter,) = command.read(command.dead)
    assert list(letter) == ["seq", "error", "event"]
    assert (letter["seq"], letter["event"]) == (2, "bad")
    assert letter["error"]
    assert command.counts() == [5, 1, 1, 1]


def test_dead_letters_need_not_be_kept(command: Command) -> None:
    log = command.log(SMALL)
    assert command.run("replay", log, "--results", command.results, "--runner", "local") == 0
    assert command.counts() == [5, 1, 1, 1]
    assert sorted(path.name for path in command.folder.iterdir()) == ["log.jsonl", "results.jsonl"]


def test_older_results_are_replaced(command: Command) -> None:
    command.results.write_bytes(b"x" * 10_000)
    command.dead.write_bytes(b"x" * 10_000)
    check_replay(command, SMALL)


@pytest.mark.parametrize("rows", [1, 2, 1000])
@pytest.mark.parametrize(
    "log",
    [
        b"",
        b"\n",
        b"\n\n\n",
        b"bad",
        SMALL[:-1],
        SMALL.replace(b"\n", b"\r\n"),
        SMALL.replace(b"\n", b"\r\n")[:-1],
        b"\r\n" + SMALL,
        SMALL.replace(b"\n", b"\r"),
        b"\xff\xfe\x00binary\n\x00\n" + SMALL + b"\x80",
        SMALL + b"\n" + placed("o2"),
        b"\xef\xbb\xbf" + SMALL,
        bytes(range(256)) * 3 + b"\n" + SMALL,
        SMALL.replace(b"\n", b"\x0b\n").replace(b"coffee", "coffee\u2028".encode()),
    ],
)
def test_logs_of_every_shape(command: Command, log: bytes, rows: int) -> None:
    check_replay(command, log, "--batch-rows", rows)


def test_a_huge_line_is_one_dead_letter(command: Command) -> None:
    huge = b"x" * 3_000_000
    text = placed("o2", "coffee " * 400_000)
    log = lines(subscribe("s1"), huge, placed("o1"), text, b'{"a":"' + huge) + b"\xff" * 100_000
    for rows in (1, 1000):
        check_replay(command, log, "--batch-rows", rows, "--workers", 3)
        assert [len(d["event"]) for d in command.read(command.dead)] == [
            len(huge), len(text), len(huge) + 6, 100_000,
        ]  # fmt: skip


def test_a_line_longer_than_what_is_read_at_once(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placewire.ingest.log.CHUNK_BYTES", 512)
    monkeypatch.setattr("placewire.ingest.log.BLOCK_BYTES", 700)
    log = lines(subscribe("s1"), *(placed(f"o{n}", "coffee " * n) for n in range(200)), b"y" * 5000)
    for rows in (1, 7, 1000):
        check_replay(command, log, "--batch-rows", rows, "--workers", 2)
        check_replay(command, log[:-1], "--batch-rows", rows, "--workers", 1)


def test_results_are_sorted_by_seq_and_id_by_code_point(command: Command) -> None:
    ids = ["b", "a", "B", "aa", "é", "z", "\uffff", "😀", "\ue000", "10", "9", "", '"', "\\", "\n"]
    ids = [id for id in ids if id]
    log = lines(
        *map(subscribe, ids), placed("o1"), placed("o2"), *map(subscribe, ids), placed("o3")
    )
    for rows in (1, 5, 1000):
        check_replay(command, log, "--batch-rows", rows, "--workers", 3)
        found = [result["subscription"] for result in command.read(command.results)]
        assert found == sorted(ids) * 3
    for line in command.results.read_bytes().splitlines():
        seq_first = json.loads(line)
        assert list(seq_first) == ["seq", "type", "subscription", "object"]


def test_data_is_added_when_asked_for(command: Command) -> None:
    values = [None, 0, -0.5, "é\n", [], {}, {"a": [1, {"b": None}]}, 10**30, True]
    log = lines(
        subscribe("s1", data={"matching": "ignores it"}),
        placed("o0"),
        *(placed("o", data=value) for value in values),
    )
    check_replay(command, log, with_data=True)
    results = command.read(command.results)
    assert "data" not in results[0]
    assert [result["data"] for result in results[1:]] == values
    check_replay(command, log)
    assert all("data" not in result for result in command.read(command.results))


def test_deep_data_is_added_too(command: Command) -> None:
    deep = b"[" * 8_192 + b"]" * 8_192
    log = lines(subscribe("s1"), placed("o1", data=7).replace(b'"data":7', b'"data":' + deep))
    assert command.replay(command.log(log), "--with-data") == 0
    assert command.results.read_bytes().endswith(b'"object":"o1","data":' + deep + b"}\n")


def test_one_bad_event_never_stops_a_batch(command: Command) -> None:
    deep = b"[" * 3_000 + b"]" * 3_000
    region = subscribe("s2", region={"box": 7}).replace(b'"box":7', b'"box":' + deep)
    log = lines(subscribe("s1"), region, placed("o1"), region.replace(b"box", b"polygon"))
    check_replay(command, log)


# --- settings ---


@pytest.mark.parametrize("rows", [1, 2, 3, 1000])
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize(
    "stamps",
    [
        ["12:00:00", "12:00:10", "12:00:21", "12:00:20", "12:00:30", "12:00:41", "12:00:40.000001"],
        ["12:00:00", "12:00:11", "12:00:10", "12:00:20", "12:00:30", "12:00:40", "12:00:50"],
        ["13:00:00", "12:00:00", "13:00:10", "13:00:21", "12:00:00", "13:00:20", "13:00:31"],
        ["12:00:00", "15:00:00", "15:00:01", "12:00:10", "15:00:02", "12:00:20", "12:00:30.5"],
        ["12:00:00", "12:00:05", "12:00:12", "12:00:30", "12:00:22", "12:00:33", "12:00:32"],
    ],
)
def test_events_too_far_ahead_are_refused(
    command: Command, stamps: list[str], workers: int, rows: int
) -> None:
    """Leaps inside a block, over blocks and over batches; each event is of every type."""
    events = [subscribe("s1", ts=f"2026-03-01T{stamps[0]}Z")]
    for number, stamp in enumerate(stamps):
        ts = f"2026-03-01T{stamp}Z"
        events += [
            placed(f"o{number}", ts=ts),
            subscribe("s2", ts=ts, expires="2026-03-01T12:00:25Z"),
            placed(f"p{number}", ts=ts),
        ]
        if number % 3 == 2:
            events += [unsubscribe("s2", ts), b"bad"]
    settings = command.settings('max_ahead = "PT10S"')
    check_replay(
        command, lines(*events), "--settings", settings, "--batch-rows", rows,
        "--workers", workers, max_ahead="PT10S",
    )  # fmt: skip


@pytest.mark.parametrize("rows", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    "first", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z"]
)
def test_the_first_event_is_free(command: Command, first: str, rows: int) -> None:
    for opening in ([], [b"bad", b""]):
        log = lines(
            *opening,
            subscribe("s1", ts=first),
            placed("o1", ts=first),
            placed("o2"),
            placed("o3", ts="2027-03-02T12:00:00Z"),
            placed("o4", ts="2027-03-02T12:00:00.000001Z"),
            placed("o5", ts=first),
        )
        check_replay(command, log, "--batch-rows", rows)


def test_max_ahead_by_a_microsecond_and_at_its_longest(command: Command) -> None:
    log = lines(
        subscribe("s1", ts="2026-03-01T12:00:00Z"),
        placed("o1", ts="2026-03-01T12:00:00.000001Z"),
        placed("o2", ts="2026-03-01T12:00:00.000003Z"),
        placed("o3", ts="2126-02-05T12:00:00Z"),
        placed("o4", ts="9999-12-31T23:59:59Z"),
    )
    for span in ("PT0.000001S", "P36500D", "P1D"):
        settings = command.settings(f'max_ahead = "{span}"')
        for rows in (1, 2, 1000):
            check_replay(command, log, "--settings", settings, "--batch-rows", rows, max_ahead=span)


def test_dead_letters_do_not_depend_on_the_batches(command: Command) -> None:
    stamps = ["12:00:00", "12:00:05", "12:00:12", "12:00:30", "12:00:22", "12:00:40", "12:00:32"]
    log = command.log(lines(*(placed("o", ts=f"2026-03-01T{stamp}Z") for stamp in stamps), b"bad"))
    settings = command.settings('max_ahead = "PT10S"')
    seen = set()
    for rows in (1, 2, 3, 1000):
        for workers in (1, 2, 4):
            options = ("--settings", settings, "--batch-rows", rows, "--workers", workers)
            assert command.replay(log, *options) == 0
            seen.add(command.dead.read_bytes())
    assert len(seen) == 1, b"\n---\n".join(sorted(seen)).decode()


def test_all_settings_are_read(command: Command) -> None:
    lexicon = command.folder / "lexicon.json"
    lexicon.write_text('{"documents":10,"df":{"coffee":3}}')
    settings = command.settings(
        f'analyzer = "default"\nlexicon = "{lexicon}"\nwindow = {{time = "PT1H"}}\n'
        'retention = "P2D"\nreach_m = 1000\nmax_ahead = "P1D"\n'
    )
    assert command.replay(command.log(SMALL), "--settings", settings) == 0
    settings = command.settings("[window]\ncount = 5\n")
    assert command.replay(command.log(SMALL), "--settings", settings) == 0


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("max_ahed = 'PT1S'", ["max_ahed"]),
        ("max_ahead = ", ["TOML"]),
        ("max_ahead = 5", ["max_ahead", "5"]),
        ("max_ahead = 'tomorrow'", ["max_ahead", "tomorrow"]),
        ("max_ahead = 'PT0S'", ["max_ahead", "PT0S"]),
        ("max_ahead = 'P36501D'", ["max_ahead", "P36501D"]),
        ("retention = true", ["retention", "True"]),
        ("reach_m = 0", ["reach_m", "0"]),
        ("reach_m = nan", ["reach_m", "nan"]),
        ("reach_m = inf", ["reach_m", "inf"]),
        ("reach_m = '5'", ["reach_m", "5"]),
        ("reach_m = true", ["reach_m", "True"]),
        ("window = 5", ["window", "5"]),
        ("window = {count = 0}", ["window", "0"]),
        ("window = {count = true}", ["window", "True"]),
        ("window = {count = 1, time = 'PT1S'}", ["window"]),
        ("window = {time = 'x'}", ["window.time", "x"]),
        ("analyzer = 'porter'", ["analyzer", "porter"]),
        ("lexicon = 5", ["lexicon", "5"]),
        ("lexicon = 'missing.json'", ["lexicon", "missing.json"]),
        ('"a\\nb" = 1', ["a", "b"]),
        ("reach_m = " + "1" * 5_000, ["settings.toml"]),
        ("a = " + "[" * 5_000, ["settings.toml"]),
        ("workers = 4", ["workers"]),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_bad_settings_are_refused(command: Command, content: str, parts: list[str]) -> None:
    settings = command.settings(content)
    line = command.refused(
        "replay", command.log(SMALL), "--results", command.results, "--settings", settings,
        "--runner", "local",
    )  # fmt: skip
    assert "settings.toml" in line
    for part in parts:
        assert part in line
    assert not command.results.exists()


def test_settings_that_are_no_text_are_refused(command: Command) -> None:
    (command.folder / "settings.toml").write_bytes(b"\xff\xfe")
    for settings in ("settings.toml", "missing.toml", "."):
        command.refused(
            "replay", command.log(SMALL), "--results", command.results, "--runner", "local",
            "--settings", command.folder / settings,
        )  # fmt: skip


# --- what is refused ---


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], ""),
        (["reply"], "reply"),
        (["--bogus"], "bogus"),
        (["replay"], "LOG"),
        (["replay", "LOG"], "results"),
        (["replay", "LOG", "--results"], "results"),
        (["replay", "LOG", "--results", "R", "--bogus"], "bogus"),
        (["replay", "LOG", "more", "--results", "R"], "more"),
        (
            ["replay", "LOG", "--results", "R", "--workers", "0"],
            "workers: must be a whole number, 1..4096, or a range of them as 2..8, got 0",
        ),
        (["replay", "LOG", "--results", "R", "--workers", "-1"], "workers"),
        (
            ["replay", "LOG", "--results", "R", "--workers", "two"],
            "workers: must be a whole number, 1..4096, or a range of them as 2..8, got two",
        ),
        (["replay", "LOG", "--results", "R", "--workers", "1e3"], "workers"),
        (
            ["replay", "LOG", "--results", "R", "--workers", "1000000"],
            "1..4096, or a range of them as 2..8, got 1000000",
        ),
        (
            ["replay", "LOG", "--results", "R", "--batch-rows", "0"],
            "--batch-rows: must be a whole number, 1 or more, got 0",
        ),
        (["replay", "LOG", "--results", "R", "--batch-rows", "1.5"], "1 or more, got 1.5"),
        (["replay", "LOG", "--results", "R", "--plan", "tree"], "tree"),
        (["replay", "LOG", "--results", "R", "--plan", ""], "plan"),
        (["replay", "LOG", "--results", "R", "--runner", "flink"], "flink"),
        (["replay", "missing.jsonl", "--results", "R"], "missing.jsonl"),
        (["replay", ".", "--results", "R"], "directory"),
        (["replay", "LOG.gz", "--results", "R"], "LOG.gz: must be JSON Lines, got a gzip file"),
        (["replay", "objects", "--results", "R"], "objects: must be JSON Lines, got a Parquet"),
        (["replay", "LOG", "--results", "."], "cannot be written"),
        (["replay", "LOG", "--results", "no/such/folder/R"], "no/such/folder/R"),
        (["replay", "LOG", "--results", "LOG/R"], "LOG/R"),
        (["replay", "LOG", "--results", "R", "--dead-letters", "."], "cannot be written"),
        (["replay", "LOG", "--results", "LOG"], "LOG"),
        (["replay", "LOG", "--results", "./LOG"], "LOG"),
        (["replay", "LOG", "--results", "link"], "link"),
        (["replay", "LOG", "--results", "R", "--dead-letters", "LOG"], "LOG"),
        (["replay", "LOG", "--results", "R", "--dead-letters", "R"], "R"),
        (["replay", "LOG", "--results", "R", "--state", "LOG"], "LOG"),
        (["replay", "LOG", "--results", "R", "--state", "LOG/state"], "LOG/state"),
        (["replay", "with\nnewline", "--results", "R"], "newline"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_unusable_commands_are_refused(command: Command, arguments: list[str], part: str) -> None:
    command.patch.chdir(command.folder)
    command.log(SMALL, "LOG")
    (command.folder / "link").symlink_to("LOG")
    command.log(gzip.compress(SMALL), "LOG.gz")
    pq.write_table(pa.table({"id": ["o1"]}), command.folder / "objects")
    if "--runner" not in arguments and len(arguments) > 3:
        arguments = [*arguments, "--runner", "local"]
    if arguments:
        assert part.lower() in command.refused(*arguments).lower()
    else:
        assert command.run() in (0, 2)  # the help, or a word about it
        assert "Traceback" not in command.err
    assert (command.folder / "LOG").read_bytes() == SMALL, "the log was overwritten"
    assert not (command.folder / "R").exists()


@pytest.mark.parametrize(
    ("flag", "given", "wanted"),
    [
        ("--objects", "-1", "a whole number, 0 or more"),
        ("--subscriptions", "1e3", "a whole number, 0 or more"),
        ("--churn", "1.01", "a number, 0..1"),
        ("--churn", "nan", "a number, 0..1"),
        ("--seconds", "long", "a number, 0..31622400"),
    ],
)
def test_numbers_out_of_range_are_named(
    command: Command, flag: str, given: str, wanted: str
) -> None:
    log = command.folder / "city.jsonl"
    line = command.refused("generate", log, flag, given)
    assert line == f"placewire: {flag}: must be {wanted}, got {given}\n"
    assert not log.exists()


def test_the_version_is_told(command: Command) -> None:
    assert command.run("--version") == 0
    assert re.fullmatch(r"placewire \d+\.\d+\.\d+\n", command.out)


def test_help_is_help(command: Command) -> None:
    for arguments in (["--help"], ["replay", "--help"]):
        assert command.run(*arguments) == 0
        assert "Usage" in command.out
    for option in ("results", "dead-letters", "settings", "workers", "plan", "batch-rows", "state"):
        assert f"--{option}" in command.out


def test_a_full_disk_is_one_clear_line(command: Command) -> None:
    log = command.log(SMALL)
    assert command.run("replay", log, "--results", "/dev/full", "--runner", "local") == 2
    assert command.err.splitlines()[-1].startswith("placewire: /dev/full: cannot be written: No sp")
    assert "Traceback" not in command.err


def run_in_child(limit: Callable[[], None] | None, *arguments: object) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "placewire.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        preexec_fn=limit,  # in the child only
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_no_room_for_the_state_is_one_clear_line(command: Command) -> None:
    """A limit on the size of files does what a full disk does."""
    log = command.log(lines(subscribe("s1"), *(placed(f"o{n}") for n in range(2_000))))
    code, out, err = run_in_child(
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)),
        "replay", log, "--results", command.results, "--state", command.folder / "state",
        "--runner", "local",
    )  # fmt: skip
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err.startswith("placewire: ")
    assert err.count("\n") == 1
    # With room again the run goes on.
    options = ("--state", command.folder / "state")
    assert command.replay(log, *options) == 0
    assert len(command.read(command.results)) == 2_000


@pytest.mark.skipif(os.getuid() == 0, reason="root may do everything")
def test_what_may_not_be_touched_is_refused(command: Command) -> None:
    log = command.log(SMALL)
    log.chmod(0)
    assert "cannot be read" in command.refused("replay", log, "--results", command.results)
    log.chmod(0o600)
    command.results.touch(0o400)
    assert "cannot be written" in command.refused("replay", log, "--results", command.results)


# --- a state that is not what it was ---


@pytest.fixture
def finished(command: Command) -> Path:
    """The state of a finished run of SMALL."""
    state = command.folder / "state"
    assert command.replay(command.log(SMALL), "--state", state, "--batch-rows", 2) == 0
    return state


def refused_with(command: Command, state: Path, *more: object, log: str = "log.jsonl") -> str:
    return command.refused(
        "replay", command.folder / log, "--results", command.results, "--runner", "local",
        "--state", state, *more,
    )  # fmt: skip


def test_a_finished_run_can_be_asked_again(command: Command, finished: Path) -> None:
    results, dead = command.results.read_bytes(), command.dead.read_bytes()
    command.results.unlink()
    for more in ([], ["--plan", "grid"], ["--workers", "5"], ["--batch-rows", "1"]):
        assert command.replay(command.folder / "log.jsonl", "--state", finished, *more) == 0
        assert command.counts() == [5, 1, 1, 1]
        assert (command.results.read_bytes(), command.dead.read_bytes()) == (results, dead)


def test_another_log_is_refused(command: Command, finished: Path) -> None:
    command.log(SMALL.replace(b"o1", b"o9"), "other.jsonl")
    assert "another log" in refused_with(command, finished, log="other.jsonl")
    command.log(SMALL[:-1], "shorter.jsonl")
    assert "log" in refused_with(command, finished, log="shorter.jsonl")
    command.log(b"", "empty.jsonl")
    assert "log" in refused_with(command, finished, log="empty.jsonl")


def test_another_log_that_begins_the_same_is_refused(command: Command) -> None:
    """Two logs of one city often share their first subscriptions."""
    head = [subscribe(f"s{n}") for n in range(100)]
    state = command.folder / "state"
    log = command.log(lines(*head, placed("o1"), placed("o2")))
    assert command.replay(log, "--state", state) == 0
    command.log(lines(*head, placed("x1"), placed("x2")), "other.jsonl")
    assert "another log" in refused_with(command, state, log="other.jsonl")
    command.log(lines(*head), "shorter.jsonl")
    refused_with(command, state, log="shorter.jsonl")


@pytest.mark.parametrize("subscriptions", [1, 100])
def test_a_log_that_has_grown_goes_on(command: Command, subscriptions: int) -> None:
    """What was read is unchanged, however short it was."""
    log = lines(*(subscribe(f"s{n:03d}") for n in range(subscriptions)), placed("o1"))
    state = command.folder / "state"
    assert command.replay(command.log(log), "--state", state) == 0
    more = log + lines(placed("o2"), unsubscribe("s000"))
    assert command.replay(command.log(more), "--state", state) == 0
    assert command.read(command.results) == expected_of(more).results


def test_other_settings_are_refused(command: Command, finished: Path) -> None:
    settings = command.settings('max_ahead = "P1D"')
    line = refused_with(command, finished, "--settings", settings)
    assert "max_ahead" in line
    assert "settings" in line


def test_results_with_and_without_data_do_not_mix(command: Command, finished: Path) -> None:
    assert "--with-data" in refused_with(command, finished, "--with-data")


def test_a_foreign_directory_is_refused_and_left_alone(command: Command) -> None:
    foreign = command.folder / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("x")
    command.log(SMALL)
    assert "not empty" in refused_with(command, foreign)
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("version", [1, 2, 4])
def test_another_format_is_refused(command: Command, finished: Path, version: int) -> None:
    mark = finished / "FORMAT"
    mark.write_text(mark.read_text().replace('"version":3', f'"version":{version}'))
    line = refused_with(command, finished)
    assert f"has format {version}" in line
    assert "reads format 3" in line


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}", b"[]", b"\xff", b'{"batch":"x"}'])
@pytest.mark.parametrize("name", ["FORMAT", "sink/cursor.json", "manifests/000000000002.json"])
def test_damaged_notes_are_refused(
    command: Command, finished: Path, name: str, content: bytes
) -> None:
    assert (finished / name).exists()
    if name == "sink/cursor.json" and content == b"{}":
        return  # every field has a default: nothing was delivered yet, and that is harmless
    (finished / name).write_bytes(content)
    refused_with(command, finished)


def test_missing_or_damaged_files_are_refused(command: Command, finished: Path) -> None:
    for path in sorted((finished / "files").iterdir()):
        content = path.read_bytes()
        for damaged in (None, b"", content[:30], b"x" * len(content)):
            path.unlink(missing_ok=True)  # never write into a file that may be mapped
            if damaged is not None:
                path.write_bytes(damaged)
            (finished / "sink" / "cursor.json").unlink(missing_ok=True)  # deliver all again
            command.replay(command.folder / "log.jsonl", "--state", finished)
            assert "Traceback" not in command.err
            if command.out == "":
                assert command.err.splitlines()[-1].startswith("placewire: ")
        path.unlink(missing_ok=True)
        path.write_bytes(content)
    assert command.replay(command.folder / "log.jsonl", "--state", finished) == 0


def test_results_cut_short_are_not_padded(command: Command, finished: Path) -> None:
    (finished / "sink" / "results.jsonl").write_bytes(b"")
    expected = expected_of(SMALL).results
    code = command.replay(command.folder / "log.jsonl", "--state", finished)
    assert code == 2 or command.read(command.results) == expected
