"""Golden logs: results and dead letters stay byte for byte what was recorded.

`python tests/law/test_golden.py` records the outputs again; see golden/README.md for when to.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from contextlib import chdir, redirect_stdout
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import placewire
from placewire.plans.names import EVERY_KIND, PLANS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).with_name("golden")
INPUTS, OUTPUTS = GOLDEN / "inputs", GOLDEN / "outputs"
PLANNED = "planned"
WITH_DATA = ("mixed", "frames")  # recorded a second time with the data of objects
FILLING = 1_000  # times the 100 lines of planned.filling: a plan is made of 100,000 events
WHOLE = 1_000_000

TOTALS = OUTPUTS / "totals.json"
NAMES = sorted(path.stem for path in INPUTS.glob("*.jsonl"))


class Output(NamedTuple):
    results: bytes
    dead_letters: bytes
    totals: dict[str, int]


def read_table(name: str) -> dict[str, Any]:
    """The settings of a log."""
    path = INPUTS / f"{name}.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


def skip_without_stemmer(name: str) -> None:
    if read_table(name).get("analyzer", "").startswith("snowball:"):
        pytest.importorskip("Stemmer", reason="PyStemmer is not installed")


def run(name: str, log: Path | None = None, **options: Any) -> Output:
    """Replay a golden log with the settings beside it."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder, chdir(INPUTS):
        results, dead = Path(folder) / "results", Path(folder) / "dead"
        counters = placewire.replay(
            log or INPUTS / f"{name}.jsonl",
            results,
            dead_letters=dead,
            settings=read_table(name),
            **options,
        )
        totals = {
            "events": counters.events,
            "results": counters.results,
            "dead_letters": counters.dead_letters,
            "idle_unsubscribes": counters.idle_unsubscribes,
        }
        return Output(results.read_bytes(), dead.read_bytes(), totals)


def plans_in_force(state: Path) -> dict[str, str]:
    """The method of each kind's plan, by the status of a state directory."""
    with redirect_stdout(StringIO()) as printed:
        run_command("status", "--json", "--state", str(state))
    plans = json.loads(printed.getvalue())["plans"]
    return {kind: plan["method"] for kind, plan in plans.items()}


def run_planned(folder: Path, **options: Any) -> Output:
    """Replay the log that is long enough for plans; its tail follows once they are made.

    The second run resumes the first one's state and cuts the tail into several batches.
    """
    head, filling, tail = (
        (INPUTS / f"{PLANNED}.{part}").read_bytes() for part in ("head", "filling", "tail")
    )
    log, state = folder / "log.jsonl", folder / "state"
    log.write_bytes(head + FILLING * filling)
    run(PLANNED, log, state=state, batch_rows=50_075, **options)
    with open(log, "ab") as file:
        file.write(tail)
    return run(PLANNED, log, state=state, batch_rows=50, **options)


def recorded_files(name: str, with_data: bool = False) -> tuple[Path, Path]:
    results = f"{name}.results-with-data.jsonl" if with_data else f"{name}.results.jsonl"
    return OUTPUTS / results, OUTPUTS / f"{name}.dead-letters.jsonl"


def read_recorded(name: str, with_data: bool = False) -> Output:
    results, dead = recorded_files(name, with_data)
    return Output(results.read_bytes(), dead.read_bytes(), json.loads(TOTALS.read_bytes())[name])


def compare(what: str, got: bytes, recorded: bytes) -> None:
    """Fail with the first line that differs."""
    if got == recorded:
        return
    lines = zip_longest(got.split(b"\n"), recorded.split(b"\n"))
    number, (new, old) = next((n, pair) for n, pair in enumerate(lines) if pair[0] != pair[1])
    shown = [
        "nothing" if line is None else f"{line[:2000]!r} ({len(line)} bytes)" for line in (old, new)
    ]
    pytest.fail(f"{what}, line {number}:\nrecorded {shown[0]}\ngot      {shown[1]}", pytrace=False)


def check(name: str, got: Output, with_data: bool = False) -> None:
    recorded = read_recorded(name, with_data)
    compare(f"dead letters of {name}", got.dead_letters, recorded.dead_letters)
    compare(f"results of {name}", got.results, recorded.results)
    assert got.totals == recorded.totals


def run_command(*arguments: str) -> None:
    """Run the command line in this process."""
    from placewire.cli.main import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["placewire", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 0


def save_plan(name: str, method: str, workers: int, folder: Path) -> str:
    """Make a plan of a log's boolean subscriptions; a saved plan is in force from the start."""
    log = str(INPUTS / f"{name}.jsonl")
    given = ["--objects", log, "--subscriptions", log, "--workers", str(workers)]
    run_command("plan", *given, "--plan", method, "--out", str(folder), "--json")
    return str(folder / f"{method}.plan")


@pytest.mark.parametrize("name", NAMES)
def test_one_batch(name: str) -> None:
    skip_without_stemmer(name)
    check(name, run(name, batch_rows=WHOLE))


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_seventeen(name: str) -> None:
    skip_without_stemmer(name)
    check(name, run(name, batch_rows=17, workers=2))


@pytest.mark.parametrize("name", ["lives", "frames"])
def test_each_event_in_its_own_batch(name: str) -> None:
    check(name, run(name, batch_rows=1))


@pytest.mark.parametrize("name", ["mixed", "window-count", "window-time", "retention", "reports"])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_rows": 60, "workers": 7, "slice": "PT10S", "buffer": "kmax"},
        {"batch_rows": 71, "workers": 2, "plan": "scan", "buffer": "skyband"},
        {"batch_rows": 90, "workers": "1..3", "plan": "boolean=kdt,nearest=kop,relevant=location"},
    ],
    ids=["seven-workers", "scan", "hashed"],
)
def test_workers_and_buffers(name: str, options: dict[str, Any]) -> None:
    check(name, run(name, **options))


@pytest.mark.parametrize("method", ["kdt", "qt", "metric"])
def test_saved_plans(method: str, tmp_path: Path) -> None:
    for name in ("space", "words"):
        plan = save_plan(name, method, 3, tmp_path)
        check(name, run(name, plan=plan, batch_rows=100))


@pytest.mark.parametrize("plan", ["shared", "auto"])
def test_plans_of_every_kind(plan: str, tmp_path: Path) -> None:
    check(PLANNED, run_planned(tmp_path, plan=plan, workers=3))


def name_plans() -> list[Any]:
    """Combine the plan names of all kinds so that each occurs once; all but two runs are slow."""
    named = [[name for name in names if name not in EVERY_KIND] for names in PLANS.values()]
    runs = max(map(len, named))
    combined = [{k: n[i % len(n)] for k, n in zip(PLANS, named, strict=True)} for i in range(runs)]
    return [
        pytest.param(
            plans,
            id=",".join(f"{kind}={name}" for kind, name in plans.items()),
            marks=() if plans["boolean"] in ("kdt", "qt") else pytest.mark.slow,
        )
        for plans in combined
    ]


@pytest.mark.parametrize("plans", name_plans())
def test_plans_made_of_the_log(plans: dict[str, str], tmp_path: Path) -> None:
    plan = ",".join(f"{kind}={name}" for kind, name in plans.items())
    check(PLANNED, run_planned(tmp_path, plan=plan, workers=3))
    assert plans_in_force(tmp_path / "state") == plans


@pytest.mark.parametrize("name", WITH_DATA)
def test_results_with_data(name: str) -> None:
    check(name, run(name, with_data=True, batch_rows=40, workers=2), with_data=True)


def test_command(tmp_path: Path) -> None:
    """The command reads the settings from the file and writes the same bytes."""
    name = "ahead"
    results, dead = tmp_path / "results", tmp_path / "dead"
    targets = ["--results", str(results), "--dead-letters", str(dead), "--runner", "local"]
    settings = ["--settings", str(INPUTS / f"{name}.toml")]
    run_command("replay", str(INPUTS / f"{name}.jsonl"), *targets, *settings)
    recorded = read_recorded(name)
    compare("dead letters", dead.read_bytes(), recorded.dead_letters)
    compare("results", results.read_bytes(), recorded.results)


def test_every_output_has_its_input() -> None:
    files = {TOTALS, *(f for name in (*NAMES, PLANNED) for f in recorded_files(name))}
    files |= {recorded_files(name, with_data=True)[0] for name in WITH_DATA}
    assert set(OUTPUTS.iterdir()) == files


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mixed", {"batch_rows": 250, "workers": 2}),
        ("mixed", {"batch_rows": WHOLE, "workers": 3, "plan": "scan"}),
        ("window-time", {"batch_rows": WHOLE, "workers": 7}),
        ("lives", {"batch_rows": 110, "workers": 2}),
        ("dead-letters", {"batch_rows": 600, "workers": 2}),
        ("words", {"batch_rows": WHOLE, "workers": 2}),
    ],
)
def test_spark(spark: SparkSession, name: str, options: dict[str, Any]) -> None:
    check(name, run(name, session=spark, **options))


def record() -> None:
    """Write the outputs of every log."""
    OUTPUTS.mkdir(exist_ok=True)
    for old in OUTPUTS.iterdir():
        old.unlink()
    totals = {}
    for name in (*NAMES, PLANNED):
        if name == PLANNED:
            with tempfile.TemporaryDirectory() as folder:
                output = run_planned(Path(folder))
        else:
            output = run(name)
        totals[name] = output.totals
        results, dead = recorded_files(name)
        results.write_bytes(output.results)
        dead.write_bytes(output.dead_letters)
        if name in WITH_DATA:
            more, _ = recorded_files(name, with_data=True)
            more.write_bytes(run(name, with_data=True).results)
    TOTALS.write_text(json.dumps(totals, indent=1) + "\n")


if __name__ == "__main__":
    record()
