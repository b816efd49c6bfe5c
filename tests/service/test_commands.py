"""The commands of the service: against a server, against a state directory, and what goes wrong."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checkout import ROOT
from placewire.cli.main import main
from placewire.serve import processes
from placewire.serve.client.client import read_chunks
from placewire.storage.journal import journal_folder, read_entries
from placewire.storage.layout import StateDir
from ports import free_port
from service import Service, serving
from waits import WAIT_S

HERE = {"lon": -73.98, "lat": 40.75}
CIRCLE = "-73.98,40.75,2000"


class Told(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """Runs commands in this process, as typed."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.patch = patch
        self.capsys = capsys

    def __call__(self, *words: str, typed: str = "") -> Told:
        read, write = os.pipe()
        os.write(write, typed.encode())
        os.close(write)
        self.patch.setattr(sys, "stdin", os.fdopen(read, encoding="utf-8"))
        self.patch.setattr(sys, "argv", ["placewire", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self.capsys.readouterr()
        assert "Traceback" not in said.err
        return Told(int(ended.value.code or 0), said.out, said.err)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    for name in ("PLACEWIRE_SERVER", "PLACEWIRE_STATE", "PLACEWIRE_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("commands") / "state") as running:
        yield running


def line(name: str, text: str = "free coffee", **more: Any) -> str:
    return json.dumps({"id": name, "text": text, **HERE, **more}) + "\n"


def journal_ids(root: Path) -> list[str]:
    folder = journal_folder(StateDir(root))
    return [json.loads(entry)["id"] for _, entry in read_entries(folder, 0)]


def test_from_a_subscription_to_its_result_in_words(shell: Shell, service: Service) -> None:
    at = ("--server", service.url)
    made = shell("subscribe", "coffee", "--circle", CIRCLE, "--where", "coffee", *at)
    assert (made.code, made.out.startswith("subscribed coffee, seq ")) == (0, True)
    again = shell("subscribe", "coffee", "--circle", CIRCLE, "--where", "coffee", "--json", *at)
    assert again.json["replaced"] is True
    one = shell(
        "publish", "--text", "Free coffee\u2028here", "--lon", "-73.98", "--lat", "40.75",
        "--id", "o1", *at,
    )  # fmt: skip
    assert (one.code, one.out.startswith("published o1, seq ")) == (0, True)
    told = shell("tail", "coffee", "--after", "0", "--count", "1", *at)
    assert told.out == '1 "Free coffee here" at (-73.980, 40.750) (o1)\n'
    told = shell("tail", "--after", "0", "--count", "1", "--json", *at)
    assert told.json["result"]["object"] == "o1"
    assert told.json["subscription"] == "coffee"
    listed = shell("subscriptions", *at).out
    assert "coffee (boolean, 1 result): coffee within 2 km of (-73.980, 40.750)" in listed
    asked = shell("query", '{"kind":"boolean","where":"coffee","last":"PT1H"}', *at)
    assert asked.json["total"] == 1
    assert shell("unsubscribe", "coffee", *at).out.startswith("ended coffee, seq ")
    assert "coffee" not in shell("subscriptions", *at).out
    assert "coffee (boolean, ended" in shell("subscriptions", "--all", *at).out


def test_lines_are_published_and_the_wrong_ones_told(
    shell: Shell, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "objects.jsonl"
    file.write_text(
        line("p1") + '{"id":"p2"}\n' + line("p3") + '{"id":"p4","lon":NaN,"lat":0,"text":""}\n\n'
    )
    told = shell("publish", str(file), "--server", service.url)
    assert told.code == 1
    assert "line 2: " in told.err
    assert "line 4: " in told.err
    assert "line 5: " not in told.err
    assert told.out.startswith("objects 2, seq ")
    assert ", rejected 2, " in told.out
    told = shell("publish", "-", "--json", "--server", service.url, typed=line("p5") + "x\n")
    assert told.code == 1
    facts = told.json
    assert (facts["accepted"], facts["rejected"], facts["errors"][0]["line"]) == (1, 1, 2)
    assert facts["first_seq"] == facts["last_seq"]
    nothing = shell("publish", "-", "--server", service.url)
    assert (nothing.code, nothing.out.startswith("objects 0, rejected 0")) == (0, True)


def test_one_leap_of_time_rejects_one_line(shell: Shell, service: Service) -> None:
    lines = [line(f"t{n}") for n in range(40)]
    lines[17] = line("t17", ts="9999-01-01T00:00:00Z")
    told = shell("publish", "-", "--json", "--server", service.url, typed="".join(lines))
    assert (told.code, told.json["accepted"], told.json["rejected"]) == (1, 39, 1)
    assert told.json["errors"][0]["line"] == 18
    assert "max_ahead" in told.json["errors"][0]["error"]
    ids = journal_ids(service.root)
    assert [name for name in ids if name.startswith("t")] == [f"t{n}" for n in range(40) if n != 17]


def test_the_same_name_takes_nothing_twice(shell: Shell, service: Service) -> None:
    typed = "".join(line(f"once{n}") for n in range(20))
    words = ("publish", "-", "--idempotency-key", "monday", "--json", "--server", service.url)
    first, again = shell(*words, typed=typed), shell(*words, typed=typed)
    assert first.json["first_seq"] == again.json["first_seq"]
    assert journal_ids(service.root).count("once7") == 1


def test_a_file_that_has_grown_gives_its_new_lines(
    shell: Shell, service: Service, tmp_path: Path
) -> None:
    feed = tmp_path / "feed.jsonl"
    words = ("publish", str(feed), "--idempotency-key", "feed", "--server", service.url)
    for count in (3, 5, 5, 9):
        feed.write_text("".join(line(f"grown{n}") for n in range(count)))
        told = shell(*words, "--json")
        assert (told.code, told.json["accepted"]) == (0, count), told.err
    grown = [name for name in journal_ids(service.root) if name.startswith("grown")]
    assert grown == [f"grown{n}" for n in range(9)]
    feed.write_text(line("other") + "".join(line(f"grown{n}") for n in range(1, 9)))
    told = shell(*words)
    assert told.code == 2
    assert told.err.startswith(
        "placewire: idempotency-key: lines from line 1 on differ from the 3 that were sent"
    )
    assert "other" not in journal_ids(service.root)


def test_a_pipe_under_a_name_is_cut_by_its_lines_alone() -> None:
    lines = [line(f"piped{n}").encode() for n in range(5_010)]

    class Dripping(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return super().read1(7_001)

    whole, dripped = (
        list(read_chunks(source, "-", lambda _: None, steady=True))
        for source in (io.BytesIO(b"".join(lines)), Dripping(b"".join(lines)))
    )
    assert [len(chunk) for chunk in whole] == [5_000, 10]
    assert dripped == whole


@pytest.mark.parametrize("name", [".", "..", "a/..", "%2e"])
def test_ids_may_look_like_paths(shell: Shell, service: Service, name: str) -> None:
    at = ("--server", service.url)
    assert shell("subscribe", name, "--where", "tea", *at).code == 0
    told = shell("unsubscribe", name, "--json", *at)
    assert (told.code, told.json["id"]) == (0, name), told.err


def test_one_object_under_a_name_is_one(shell: Shell, service: Service) -> None:
    words = ("publish", "--text", "tea", "--lon", "1", "--lat", "2", "--json")
    at = ("--idempotency-key", "one", "--server", service.url)
    first, again = shell(*words, *at), shell(*words, *at)
    assert first.json == again.json
    other = shell("publish", "--text", "cocoa", "--lon", "1", "--lat", "2", *at)
    assert (other.code, "use another name" in other.err) == (2, True)


def test_many_subscriptions_come_from_a_file(shell: Shell, service: Service) -> None:
    typed = "".join(
        json.dumps({"id": f"many{n}", "kind": "boolean", "where": "tea"}) + "\n" for n in range(3)
    )
    told = shell("subscribe", "--file", "-", "--server", service.url, typed=typed + "{}\n")
    assert told.code == 1
    assert told.out.startswith("subscriptions 3, seq ")
    ended = shell("unsubscribe", "many0", "none", "many1", "--server", service.url)
    assert (ended.code, "subscription 'none': is not known" in ended.err) == (1, True)
    assert len(ended.out.splitlines()) == 2


def test_every_kind_can_be_typed(shell: Shell, service: Service, tmp_path: Path) -> None:
    at = ("--server", service.url)
    ring = [[-74.1, 40.6], [-73.8, 40.6], [-73.8, 40.9], [-74.1, 40.6]]
    geo = tmp_path / "area.geojson"
    geo.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    kinds = {
        "k-box": ["--box", "-74.1,40.6,-73.8,40.9", "--expires", "2100-01-01T00:00:00Z"],
        "k-ring": ["--polygon", json.dumps(ring), "--data", '{"a":1}'],
        "k-geo": ["--polygon", str(geo), "--where", "tea"],
        "k-near": [
            "--kind", "nearest", "--lon", "-73.98", "--lat", "40.75", "--keywords", "tea,cocoa",
            "-k", "2", "--mode", "all", "--within-m", "500",
        ],
        "k-rel": [
            "--kind", "relevant", "--lon", "-73.98", "--lat", "40.75", "--keywords", "tea",
            "--keywords", "cocoa", "-k", "2", "--alpha", "0.4", "--reach-m", "5000",
        ],
        "k-trend": ["--kind", "trending", "-k", "3", "--window", "PT20M", "--every", "PT10M"],
        "k-body": ["--json-body", '{"kind":"boolean","where":{"any":["tea","cocoa"]}}'],
    }  # fmt: skip
    for name, words in kinds.items():
        told = shell("subscribe", name, *words, *at)
        assert told.code == 0, told.err
    kept = {one["id"]: one for one in shell("subscriptions", "--json", *at).lines}
    assert kept["k-ring"]["subscription"]["region"] == {"polygon": [ring]}
    assert kept["k-geo"]["subscription"]["region"] == {"polygon": [ring]}
    assert kept["k-near"]["subscription"]["keywords"] == ["tea", "cocoa"]
    assert kept["k-rel"]["subscription"]["keywords"] == ["tea", "cocoa"]
    service.publish({"id": "cup", "text": "tea and cocoa", **HERE})
    service.until(lambda: service.results("k-near"))
    assert "1. 0 m  cup" in shell("subscriptions", "k-near", *at).out
    near = shell("tail", "k-near", "--after", "0", "--count", "1", *at).out
    assert near == '1 0 m: "tea and cocoa" at (-73.980, 40.750) (cup)\n'


WRONG = [
    (["publish", "x.jsonl"], "x.jsonl: cannot be read: no such file"),
    (["publish", "/"], "/: cannot be read: is a directory"),
    (["publish"], "give either a FILE (- for standard input) or --text"),
    (["publish", "-", "--text", "a"], "give either"),
    (["publish", "-", "--lon", "1"], "--lon needs --text"),
    (["publish", "--text", "a"], "--text needs --lon and --lat"),
    (["publish", "--text", "a", "--lon", "nan", "--lat", "0"], "--lon: must be a number"),
    (["publish", "--text", "a", "--lon", "0", "--lat", "91"], "--lat: must be a number, -90..90"),
    (["publish", "--text", "a", "--lon", "0", "--lat", "0", "--ts", "now"], "ts"),
    (["publish", "--text", "a", "--lon", "0", "--lat", "0", "--data", "{"], "data: must be JSON"),
    (["subscribe", "s"], "needs fields"),
    (["subscribe", "s", "--box", "1,2,3"], "box: must be WEST,SOUTH,EAST,NORTH, got '1,2,3'"),
    (["subscribe", "s", "--box", "0,nan,1,1"], "box: must be WEST"),
    (["subscribe", "s", "--circle", "0,0,x"], "circle: must be LON,LAT,RADIUS_M"),
    (["subscribe", "s", "--box", "0,0,1,1", "--circle", "0,0,1"], "region: must be one"),
    (["subscribe", "s", "--polygon", "nowhere.json"], "polygon nowhere.json: cannot be read"),
    (["subscribe", "s", "--json-body", "[1]"], "json-body: must be one JSON object, got list"),
    (["subscribe", "s", "--json-body", '{"a":NaN}'], "must be finite, got NaN"),
    (["subscribe", "s", "--where", "a", "--json-body", "{}"], "give either"),
    (["subscribe", "s", "--kind", "none", "--where", "a"], "kind"),
    (["subscribe", "s", "--where", "AND"], "where"),
    (["unsubscribe", "nobody"], "subscription 'nobody': is not known"),
    (["tail", "nobody"], "subscription 'nobody': is not known"),
    (["tail", "--after", "x"], "after: must be a number or 'latest', got 'x'"),
    (["tail", "--for", "-1"], "--for: must be a number, 0 or more, got -1"),
    (["subscriptions", "nobody"], "subscription 'nobody': is not known"),
    (["query", '{"kind":"boolean","last":"PT1H"}'], "region"),
    (["keys", "add", "x", "--role", "king"], "roles: must be some of publish, subscribe, admin"),
    (["keys", "end", "nobody"], "key 'nobody': is not known"),
    (["status", "--map", "x.png"], "--map needs a state directory"),
]  # fmt: skip


@pytest.mark.parametrize("where", ["server", "state"])
@pytest.mark.parametrize(("words", "says"), WRONG)
def test_what_cannot_be_done_is_one_line(
    shell: Shell, service: Service, words: list[str], says: str, where: str
) -> None:
    place = service.url if where == "server" else str(service.root)
    if where == "state" and (words[0] == "status" or words[0] == "query"):
        return
    told = shell(*words, f"--{where}", place)
    assert (told.code, told.out) == (2, "")
    assert says in told.err
    assert told.err.startswith("placewire: ")
    assert told.err.count("\n") == 1


ADDRESSES = [
    "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://me:secret@127.0.0.1:1",
    "http://127.0.0.1:1/?x=1", "::::", "http://exa mple", "",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_wrong_addresses_are_told(shell: Shell, address: str) -> None:
    told = shell("status", "--server", address)
    assert told.code == 2
    assert "server: must be http://HOST:PORT, got " in told.err
    assert "secret" not in told.err


def test_a_state_that_cannot_be_served_is_said_before_anything_starts(
    shell: Shell, service: Service, tmp_path: Path
) -> None:
    shell.patch.setattr(signal, "signal", lambda *_: None)
    shell.patch.setattr(processes.Child, "start", lambda _: pytest.fail("it was started"))
    service.subscribe("settled", kind="boolean", where="any")
    service.caught_up()
    other = tmp_path / "other.toml"
    other.write_text("window = {count = 5}\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("milk")
    replayed, log = tmp_path / "replayed", tmp_path / "log.jsonl"
    log.write_text(json.dumps({"type": "object", "id": "o", "ts": "2026-03-01T12:00:00Z",
                               "text": "", **HERE}) + "\n")  # fmt: skip
    words = ("--results", str(tmp_path / "out"), "--state", str(replayed), "--runner", "local")
    assert shell("replay", str(log), *words).code == 0
    served = str(service.root)
    for words, why in (
        (("--state", served), f"state {served}: is already served at {service.url}"),
        (("--state", str(tmp_path / "notes")), "is not a placewire state directory"),
        (("--state", str(replayed)), "belongs to a replay or a run and cannot be served"),
        (("--state", str(tmp_path / "new"), "--ledger", "mysql://me:secret@host/x"),
         "ledger: must be a postgresql:// URL, or left out for a file in the state, got mysql://."),
        (("--state", str(tmp_path / "new"), "--ledger", "sqlite:///x"), "got sqlite://..."),
    ):  # fmt: skip
        told = shell("serve", *words, "--port", str(free_port()))
        assert (told.code, told.out, why in told.err) == (2, "", True), told.err
        assert told.err.count("\n") == 1
        assert "secret" not in told.err
    copied = tmp_path / "copied"
    shutil.copytree(service.root, copied)
    told = shell("serve", "--state", str(copied), "--settings", str(other))
    assert (told.code, "was made with other settings: window" in told.err) == (2, True)


def test_what_was_mistyped_is_said_in_ones_own_words(shell: Shell, service: Service) -> None:
    at = ("--server", service.url)
    typed = "\n   \n" + line("kept") + '{"id":"far","lon":1e400,"lat":2,"text":""}\n\n'
    told = shell("publish", "-", "--json", *at, typed=typed)
    assert (told.json["accepted"], told.json["rejected"]) == (1, 1)
    assert told.json["errors"] == [{"line": 4, "error": "lon: a number must be finite, got 1e400"}]
    assert shell("publish", "-", *at, typed="\n \n").code == 0
    for words, why in (
        (("--json-body", '{"king":"boolean","where":"x"}'), "`king`, did you mean `kind`?"),
        (("--json-body", '{"kind":"boolaen","where":"x"}'), "got 'boolaen'"),
        (('{"kind":"boolean","where":"x"}',), "pass JSON as --json-body"),
    ):
        told = shell("subscribe", *words, *at)
        assert (told.code, why in told.err) == (2, True), told.err
    told = shell("keys", "add", "kim", "--role", "king", *at)
    assert (told.code, told.err.rstrip().endswith("admin, got 'king'")) == (2, True), told.err


def test_what_is_asked_for_by_hand_is_shown_until_it_is_taken_up(
    shell: Shell, tmp_path: Path
) -> None:
    with serving(tmp_path / "state") as service:
        at = ("--server", service.url)
        service.subscribe("s", kind="boolean", where="any")
        service.caught_up()
        asked = shell("rebalance", "--plan", "shared", "--wait", "0", *at)
        assert "which needs new events" in asked.out
        assert service.http.get("/v1/plan").json()["asked"] == {"plan": "shared"}
        assert shell("status", "--json", *at).json["asked"] == {"plan": "shared"}
        for words in (("status",), ("plan",)):
            assert "plan shared is requested: " in shell(*words, *at).out
        for number in range(3):
            service.publish(json.loads(line(f"o{number}")))
            service.caught_up()
        assert "asked" not in service.http.get("/v1/plan").json()
        assert "is requested" not in shell("status", *at).out


def test_a_server_that_is_not_there(shell: Shell) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    for words in (["status"], ["publish", "-"], ["tail"], ["subscribe", "s", "--where", "a"]):
        began = time.monotonic()
        told = shell(*words, "--server", url, typed=line("a"))
        assert told.code == 2
        assert f"server {url}: cannot be reached: connection refused; start one with" in told.err
        assert time.monotonic() - began < 60


def test_a_server_that_is_something_else(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            while True:
                try:
                    found, _ = listening.accept()
                except OSError:
                    return
                found.recv(65_536)
                found.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
                found.close()

        threading.Thread(target=answer, daemon=True).start()
        url = f"127.0.0.1:{listening.getsockname()[1]}"
        for words in (["status"], ["subscribe", "s", "--where", "a"], ["tail"]):
            told = shell(*words, "--server", url)
            assert told.code == 2
            assert "is not a Placewire server, got 200 OK" in told.err


def test_where_to_is_said_once(
    shell: Shell, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = shell("tail")
    assert "needs --server URL (such as http://127.0.0.1:7878) or --state DIR" in told.err
    told = shell("tail", "--server", service.url, "--state", str(service.root))
    assert "give --server or --state, not both" in told.err
    monkeypatch.setenv("PLACEWIRE_SERVER", service.url)
    assert shell("subscriptions").code == 0
    # What is typed counts, whatever the environment says.
    assert "does not exist" in shell("subscriptions", "--state", "nowhere").err
    monkeypatch.setenv("PLACEWIRE_STATE", str(service.root))
    assert "are both set" in shell("subscriptions").err
    assert shell("subscriptions", "--state", str(service.root)).code == 0


def test_keys(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(tmp_path / "state")
    made = shell("keys", "add", "root", "--role", "admin", "--state", root)
    assert (made.code, made.out.startswith("pw_")) == (0, True)
    assert "shown only once" in made.err
    again = shell("keys", "add", "root", "--role", "admin", "--state", root)
    assert "key 'root': already exists" in again.err
    with serving(Path(root), require_keys=True) as service:
        at = ("--server", service.url)
        told = shell("status", *at)
        assert told.code == 2
        assert "an API key is required, got none; set --key or PLACEWIRE_KEY" in told.err
        told = shell("status", "--key", "pw_wrong", *at)
        assert (told.code, "pw_wrong" in told.err) == (2, False)
        told = shell("status", "--key", "schlüssel", *at)
        assert "key: must be printable ASCII" in told.err
        monkeypatch.setenv("PLACEWIRE_KEY", made.out.strip())
        told = shell("keys", "add", "a/b", "--role", "publish", "--json", *at)
        assert told.json["roles"] == ["publish"]
        limited = told.json["key"]
        assert shell("keys", "list", *at).out == "a/b: publish\nroot: admin\n"
        told = shell("subscribe", "s", "--where", "a", "--key", limited, *at)
        assert (told.code, "needs the role 'subscribe'" in told.err) == (2, True)
        # A key that only publishes may publish by the address that the state has.
        told = shell("publish", "-", "--key", limited, "--state", root, typed=line("k1"))
        assert told.code == 0
        assert shell("keys", "end", "root", "--state", root).out == "ended root\n"
        service.gateway.authenticator.invalidate()  # type: ignore[union-attr]
        assert shell("keys", "list", *at).code == 2
    assert shell("keys", "list", "--state", root, "--json").json["name"] == "a/b"


def test_a_state_that_nobody_serves_takes_events(shell: Shell, tmp_path: Path) -> None:
    root = tmp_path / "state"
    at = ("--state", str(root))
    assert "does not exist" in shell("publish", "-", *at, typed=line("a")).err
    with serving(root, pipeline=False):
        pass
    assert shell("subscribe", "s", "--circle", CIRCLE, "--where", "coffee", *at).code == 0
    told = shell("publish", "-", "--json", *at, typed=line("o1") + "{}\n" + line("o2"))
    assert (told.code, told.json["accepted"], told.json["errors"][0]["line"]) == (1, 2, 2)
    again = shell("publish", "-", "--idempotency-key", "n", "--json", *at, typed=line("o3"))
    once = shell("publish", "-", "--idempotency-key", "n", "--json", *at, typed=line("o3"))
    assert again.json["first_seq"] == once.json["first_seq"]
    assert shell("subscribe", "gone", "--where", "tea", *at).code == 0
    assert shell("unsubscribe", "gone", *at).code == 0
    assert shell("unsubscribe", "gone", *at).err == ("placewire: subscription 'gone': has ended\n")
    assert journal_ids(root) == ["s", "o1", "o2", "o3", "gone", "gone"]
    assert "s (boolean, 0 results)" in shell("subscriptions", *at).out
    with serving(root) as service:
        service.until(lambda: len(service.results("s")) == 3)
        # What is served is written by its server, found by itself.
        assert shell("publish", "-", *at, typed=line("o4")).code == 0
        service.until(lambda: len(service.results("s")) == 4)
        told = shell("tail", "s", "--after", "1", "--count", "3", "--json", *at)
        assert [one["result"]["object"] for one in told.lines] == ["o2", "o3", "o4"]
    told = shell("tail", "--after", "0", "--for", "0", *at)
    assert told.out.splitlines()[0] == 's 1 "free coffee" at (-73.980, 40.750) (o1)'
    assert len(told.out.splitlines()) == 4


def test_a_journal_that_is_held_without_an_address(shell: Shell, tmp_path: Path) -> None:
    root = tmp_path / "state"
    with serving(root, pipeline=False):
        (root / "SERVER.json").unlink()
        told = shell("publish", "-", "--state", str(root), typed=line("a"))
        assert told.err == f"placewire: state {root}: is in use: use --server ADDRESS\n"


def test_the_state_of_a_replay_takes_no_events(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(line("a", type="object", ts="2026-03-01T12:00:00Z"))
    state = str(tmp_path / "state")
    words = ["replay", str(tmp_path / "log.jsonl"), "--results", str(tmp_path / "r")]
    told = shell(*words, "--state", state, "--runner", "local", "--json")
    assert (told.json["events"], told.json["dead_letters"]) == (1, 0)
    told = shell("publish", "-", "--state", state, typed=line("b"))
    assert (told.code, "belongs to a replay or a run" in told.err) == (2, True)
    assert not (tmp_path / "state" / "journal").exists()
    told = shell("tail", "--state", state)
    assert "has no ledger" in told.err


def test_a_lost_server_doubles_nothing(shell: Shell, tmp_path: Path) -> None:
    """The gateway goes away in the middle of publishing and of following, and comes again."""
    root = tmp_path / "state"
    service = Service(root)
    service.start_gateway()
    service.start_pipeline()
    service.subscribe("all", kind="boolean", where="coffee")
    got: list[dict[str, Any]] = []

    def follow() -> None:
        from placewire import connect

        with connect(service.url) as client:
            for result in client.tail("all", seconds=2 * WAIT_S):
                got.append(result)
                if len(got) == 1_200:
                    return

    following = threading.Thread(target=follow)
    following.start()
    service.until(lambda: service.gateway is not None and service.gateway.broadcaster.listeners)

    def restart() -> None:
        for number in (150, 450, 750):
            service.until(lambda number=number: len(got) >= number)
            service.stop_gateway()
            before = len(refused)
            service.until(lambda before=before: len(refused) > before or published.is_set())
            service.start_gateway()

    refused: list[str] = []
    published = threading.Event()
    restarting = threading.Thread(target=restart)
    restarting.start()
    for part in range(40):
        typed = "".join(line(f"o{30 * part + n}") for n in range(30))
        deadline = time.monotonic() + WAIT_S
        while True:
            told = shell("publish", "-", "--server", service.url, typed=typed)
            if "cannot be reached" not in told.err or time.monotonic() > deadline:
                break
            refused.append(told.err)  # nothing was sent
        assert told.code == 0, told.err
    published.set()
    restarting.join()
    following.join(WAIT_S)
    assert [one["number"] for one in got] == list(range(1, 1_201))
    assert [one["result"]["object"] for one in got] == [f"o{n}" for n in range(1_200)]
    service.stop_pipeline()
    service.stop_gateway()


def test_status_and_plan_of_a_server(shell: Shell, service: Service) -> None:
    at = ("--server", service.url)
    service.publish({"id": "s", "text": "x", **HERE})
    service.caught_up()
    shown = shell("status", *at).out
    assert "pipeline running, 0 events behind" in shown
    assert "batch " in shown
    assert shell("status", "--json", *at).json["service"]["pipeline"] == "running"
    assert shell("plan", *at).out.startswith("plan shared: version ")
    facts = shell("plan", "--json", *at).json
    assert facts["leaves"][0]["box"] == [-180.0, -90.0, 180.0, 90.0]
    state = shell("plan", "--json", "--state", str(service.root)).json
    assert state["leaves"] == facts["leaves"]
    told = shell("rebalance", "--workers", "1", "--json", *at)
    assert told.json["outcome"] == "there already"
    told = shell("rebalance", "--plan", "nothing", *at)
    assert told.code == 2
    told = shell("plan", "--objects", "x", *at)
    assert "not both" in told.err
    told = shell("plan", "--objects", "x", "--workers", "2")
    assert "--subscriptions is missing" in told.err


def test_an_interrupted_command_ends_with_130(service: Service) -> None:
    command = [sys.executable, "-m", "placewire.cli.main", "tail", "--after", "0",
               "--server", service.url]  # fmt: skip
    service.subscribe("loud", kind="boolean", where="interrupted")
    service.publish({"id": "i", "text": "interrupted", **HERE})
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(2)
    _, said = process.communicate(timeout=WAIT_S)
    assert (process.returncode, said) == (130, "placewire: interrupted\n")


def test_bench_runs_where_the_benchmarks_are(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = shell("bench", "--only", "nothing-like-this")
    assert (told.code, "unknown experiment 'nothing-like-this'" in told.err) == (2, True)
    told = shell("bench", "--only", "kernel", "--data", str(tmp_path))
    assert (told.code, "posts_us.parquet, which is missing" in told.err) == (2, True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    told = shell("bench")
    assert told.code == 2
    assert "no benchmarks found" in told.err


def test_help_is_quick_and_completion_knows_names(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    heavy = "import sys; import placewire.cli.main; print([m for m in ('numpy', 'numba', 'httpx',"
    heavy += " 'pyspark', 'starlette', 'msgspec') if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", heavy], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
    service.subscribe("complete-me", kind="boolean", where="x")
    for where in (["--server", service.url], ["--state", str(service.root)]):
        words = ["placewire", "tail", *where, "compl"]
        environment = {
            **os.environ,
            "_PLACEWIRE_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        run = "import sys; sys.argv = ['placewire']; from placewire.cli.main import main; main()"
        found = subprocess.run(
            [sys.executable, "-c", run],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert "complete-me" in found.stdout.split(), found.stderr


def test_the_example_of_the_client_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[2].split("```")[0], names)
    with serving(tmp_path / "state") as service:
        assert names["watch"](service.url)["total"] == 1
