"""Peers from elsewhere: what can be tested without them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from peers import need_peers

need_peers("matplotlib")
from bench import workload as workloads
from bench.clock import processor_seconds
from bench.harness import Setup
from bench.peers import Answer, jars, tile38
from bench.peers import boolean as boolean_peers
from bench.peers import lucene_monitor as monitor
from bench.peers.sedona import rows_of_ids
from bench.workload import Workload, analyze
from placewire.kinds.candidates import Matches
from placewire.model.errors import Unusable
from placewire.model.subscriptions import NEVER_US
from placewire.spark import match as matching


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(jars, "CACHE", tmp_path / "cache")


def scan_pairs(workload: Workload) -> set[tuple[int, int]]:
    """Every object against every subscription, by the words of the specification."""
    terms = [set(analyze(text)) for text in workload.objects["text"].to_pylist()]
    lon, lat = (workload.objects[name].to_numpy() for name in ("lon", "lat"))
    found = set()
    for number, s in enumerate(workload.subscriptions.to_pylist()):
        in_box = (lon >= s["west"]) & (lon <= s["east"]) & (lat >= s["south"]) & (lat <= s["north"])
        holds = all if s["operator"] == "AND" else any
        for row in np.flatnonzero(in_box).tolist():
            if holds(word in terms[row] for word in s["keywords"]):
                found.add((number, row))
    return found


def test_pairs_of_our_side_are_those_of_a_scan() -> None:
    workload = workloads.generated(objects=400, subscriptions=600, seed=1)
    pairs = boolean_peers.run_ours(workload, repeats=2).pairs
    assert {tuple(pair) for pair in pairs.tolist()} == scan_pairs(workload)
    assert len(pairs) == len(scan_pairs(workload)) > 100


def test_pairs_that_differ_are_counted() -> None:
    pairs = np.array([[1, 2], [1, 3], [2, 2]])
    assert boolean_peers.count_different(pairs, pairs[::-1]) == 0
    assert boolean_peers.count_different(pairs[:2], pairs) == 1
    assert boolean_peers.count_different(np.array([[1, 2], [1, 3], [3, 2]]), pairs) == 2
    assert boolean_peers.count_different(pairs[[0, 0, 1, 2]], pairs) == 1  # one comes twice


def test_a_peer_that_is_not_there_is_left_out_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(workload: Workload, folder: Path) -> Answer:
        raise Unusable("needs Maven: put `mvn` on the path")

    monkeypatch.setattr(boolean_peers, "PEERS", {
        "One": (missing, {50: 40}), "Ours": (same_as_ours, {50: 40}),
    })  # fmt: skip
    setup = Setup(None, tmp_path)
    table, lines = boolean_peers.compare_peers(setup, ("One", "Ours"), sizes=(50,), objects=60)
    said = capsys.readouterr().err
    assert "One is left out: needs Maven: put `mvn` on the path\n" in said
    assert [row[0] for row in table.rows] == ["50: Placewire, one core", "50: Ours"]
    assert [row[3] for row in table.rows] == [0, 0]
    assert list(lines.series) == ["Placewire, one core", "Ours"]


def same_as_ours(workload: Workload, folder: Path) -> Answer:
    return boolean_peers.run_ours(workload, repeats=1)


def test_without_maven_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unusable, match="needs Maven: put `mvn` on the path"):
        jars.fetch_jars("some", "group:artifact:1")
    with pytest.raises(Unusable, match="needs a JDK of 9999 or later: set JAVA_HOME"):
        jars.find_jdk(9999)


def test_jars_are_asked_for_by_their_coordinates() -> None:
    text = jars.write_pom(["org.one:first:1.2", "org.two:second:3"])
    assert "<artifactId>first</artifactId><version>1.2</version>" in text
    assert text.count("<dependency>") == 2


def test_lines_for_java_keep_the_terms(tmp_path: Path) -> None:
    workload = workloads.generated(objects=30, subscriptions=20, seed=2)
    texts = pa.array(["a\tb\nc d", *workload.objects["text"].to_pylist()[1:]])
    workload = workload._replace(objects=workload.objects.set_column(4, "text", texts))
    monitor.write_lines(workload, tmp_path / "subscriptions", tmp_path / "objects")
    objects = [line.split("\t") for line in (tmp_path / "objects").read_text().splitlines()]
    assert [analyze(parts[3]) for parts in objects] == [analyze(t) for t in texts.to_pylist()]
    assert [float(parts[1]) for parts in objects] == workload.objects["lon"].to_pylist()
    lines = (tmp_path / "subscriptions").read_text().splitlines()
    for line, row in zip(lines, workload.subscriptions.to_pylist(), strict=True):
        _, west, south, east, north, operator, words = line.split("\t")
        box = [row[name] for name in ("west", "south", "east", "north")]
        assert [float(west), float(south), float(east), float(north)] == box
        assert (operator, words.split(" ")) == (row["operator"], row["keywords"])


def test_ids_are_rows() -> None:
    assert rows_of_ids(pa.chunked_array([["s0", "s17"], ["o3"]])).tolist() == [0, 17, 3]


def test_processor_time_grows_with_work() -> None:
    before = processor_seconds()
    while processor_seconds() - before < 0.05:
        sum(range(100_000))


@pytest.mark.parametrize("at_once", [1, 3, 7, 100])
def test_lists_of_matches_have_every_pair_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an object's list goes over the end of a batch."""
    monkeypatch.setattr(matching, "CHUNK_MATCHES", at_once)
    objects, rows = np.array([3, 0, 3, 3, 5, 0, 3], "u4"), np.array([2, 1, 0, 4, 4, 3, 1], "u4")
    found = Matches(objects, rows, NEVER_US, 7)
    event = np.array([10, 11, 12, 13, 14, 15], "u4")
    carried = pa.table({"id": [f"o{n}" for n in range(20)], "kept": list(range(20))})
    ids = pa.array([f"s{n}" for n in range(5)])
    pairs = []
    for batch in matching.write_lists(found, event, ids, carried):
        assert batch.schema.names == ["subscriptions", "object", "kept0"]
        lists = batch.to_pylist()
        assert sum(len(row["subscriptions"]) for row in lists) <= at_once
        assert all(row["subscriptions"] for row in lists)
        assert all(row["object"] == f"o{row['kept0']}" for row in lists)
        pairs += [(s, row["object"]) for row in lists for s in row["subscriptions"]]
    wanted = [(f"s{r}", f"o{event[o]}") for o, r in zip(objects, rows, strict=True)]
    assert sorted(pairs) == sorted(wanted)


STAND_IN = '''#!PYTHON
"""Understands what the peer says to Tile38: SET with BOUNDS, INTERSECTS with BOUNDS."""
import socketserver, sys

fences = {}

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.readline():
            parts = []
            for _ in range(int(head[1:])):
                size = int(self.rfile.readline()[1:])
                parts.append(self.rfile.read(size + 2)[:-2].decode())
            if parts[0] == "SET":
                assert parts[3] == "BOUNDS"
                fences[parts[2]] = [float(part) for part in parts[4:]]
                self.wfile.write(b"+OK\\r\\n")
                continue
            assert parts[2] == "LIMIT" and parts[4:6] == ["IDS", "BOUNDS"]
            lat, lon = float(parts[6]), float(parts[7])
            found = [i for i, (s, w, n, e) in fences.items() if s <= lat <= n and w <= lon <= e]
            said = b"*2\\r\\n:0\\r\\n*%d\\r\\n" % len(found)
            for name in found:
                said += b"$%d\\r\\n%s\\r\\n" % (len(name), name.encode())
            self.wfile.write(said)

port = int(sys.argv[sys.argv.index("-p") + 1])
socketserver.ThreadingTCPServer(("127.0.0.1", port), Handler).serve_forever()
'''


def test_tile38_is_asked_for_places_and_words_are_compared_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a stand-in that speaks its protocol: the server itself may not be to be had."""
    server = tmp_path / "tile38-server"
    server.write_text(STAND_IN.replace("PYTHON", sys.executable))
    server.chmod(0o755)
    monkeypatch.setenv("PLACEWIRE_TILE38", str(server))
    workload = workloads.generated(objects=300, subscriptions=500, seed=1)
    answer = tile38.run(workload, tmp_path, repeats=1)
    assert {tuple(pair) for pair in answer.pairs.tolist()} == scan_pairs(workload)
    assert len(answer.pairs) == len(scan_pairs(workload)) > 50
    assert min(answer.seconds, answer.processor_s, answer.prepare_s) > 0


def test_without_tile38_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLACEWIRE_TILE38", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tile38, "CACHE", tmp_path)
    with pytest.raises(Unusable, match=r"no tile38-server; put tile38-server on the path, or name"):
        tile38.run(workloads.generated(objects=1, subscriptions=1, seed=1), tmp_path)
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho nothing to be had >&2; exit 1\n")
    go.chmod(0o755)
    with pytest.raises(Unusable, match=r"go does not give it \(nothing to be had\); put tile38"):
        tile38.find_server()
