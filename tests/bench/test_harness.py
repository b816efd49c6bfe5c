"""The harness of the benchmarks: names, parameters, what is printed, saved and written as JSON."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import __main__ as command
from bench import figures, harness
from bench.catalog import CATALOG, markdown_list
from bench.figures import BarPlot, Figures, LinePlot, Table
from bench.harness import DEFAULT, FULL, QUICK, Experiment, Setup, run_experiments, select
from checkout import ROOT
from peers import need_peers
from placewire.model.errors import Unusable

need_peers("duckdb", "matplotlib")


def count_up(setup: Setup, size: int = 3, step: float = 0.5) -> Figures:
    """An experiment."""
    yield Table(
        "counts", ("number", "half", "odd"), [(n, n * step, n % 2 == 1) for n in range(size)]
    )
    yield LinePlot("counts", {"line": [(1, 1), (2, 2)]}, x_label="x", y_label="y")
    yield BarPlot("counts-bars", {"bars": {"a": 1.0}}, y_label="y")


@pytest.fixture(autouse=True)
def own_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "OUT", tmp_path / "out")


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.setattr(harness, "count_up", count_up, raising=False)
    return Experiment(
        "counting",
        "Can it count?",
        "harness:count_up",
        default={"step": 2.0},
        quick={"size": 1},
        full={"size": 5},
    )


@pytest.mark.parametrize("experiment", CATALOG.values(), ids=list(CATALOG))
def test_every_experiment_has_the_parameters_it_declares(experiment: Experiment) -> None:
    parameters = inspect.signature(experiment.load()).parameters
    first, *others = parameters.values()
    assert first.annotation == "Setup"
    assert all(parameter.default is not parameter.empty for parameter in others)
    for declared in (experiment.default, experiment.quick, experiment.full):
        assert set(declared) <= {parameter.name for parameter in others}
    assert experiment.quick, "there is a quick size"
    assert experiment.question.endswith("?")


def test_names_are_unique_and_listed() -> None:
    listed = markdown_list()
    assert all(f"| `{name}`" in listed for name in CATALOG)
    readme = (Path(command.__file__).parent / "README.md").read_text()
    assert listed in readme, "run `python -m bench list` and put it into bench/README.md"


def test_all_leaves_out_what_downloads_or_is_large() -> None:
    names = [experiment.name for experiment in select(CATALOG, ["all", "kernel"])]
    assert "kernel" in names
    assert len(names) == len(set(names))
    assert not {"peers", "nearest-10m"} & set(names)
    with pytest.raises(Unusable, match="unknown experiment 'kernels'"):
        select(CATALOG, ["kernels"])


def test_sizes_choose_parameters(counting: Experiment) -> None:
    assert counting.parameters(DEFAULT) == {"size": 3, "step": 2.0}
    assert counting.parameters(QUICK) == {"size": 1, "step": 2.0}
    assert counting.parameters(FULL) == {"size": 5, "step": 2.0}


def test_a_run_shows_saves_and_reports(
    counting: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    file = tmp_path / "report.json"
    run_experiments([counting], json_file=file, show=lambda _, table: shown.append(table.cells()))
    assert shown == [[["0", "0", "False"], ["1", "2", "True"], ["2", "4", "False"]]]
    assert (tmp_path / "out" / "counts.md").read_text().startswith("| number | half |")
    assert {path.name for path in (tmp_path / "out").glob("*.png")} <= {
        "counts.png",
        "counts-bars.png",
    }
    report = json.loads(file.read_text())
    assert {"date", "commit", "machine", "data", "size"} <= set(report)
    [entry] = report["experiments"]
    assert entry["parameters"] == {"size": 3, "step": 2.0}
    assert entry["tables"][0]["rows"][1] == {"number": 1, "half": 2.0, "odd": True}
    assert "counting (1/1, default): Can it count?" in capsys.readouterr().err


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*arguments: str) -> str:
        assert command.main(["run", *arguments]) == 2
        [line] = capsys.readouterr().err.splitlines()
        return line

    assert fails("nothing").startswith("bench: unknown experiment 'nothing'")
    assert fails("kernel", "--data", str(tmp_path / "none")).endswith("none: no such directory")
    assert "posts_us.parquet, which is missing" in fails("kernel", "--data", str(tmp_path))
    file = tmp_path / "posts_us.parquet"
    file.write_text("no Parquet")
    assert "not a readable Parquet file" in fails("kernel", "--data", str(tmp_path))
    pq.write_table(pa.table({"ts": [1], "lon": [1.0], "text": ["a"]}), file)
    assert "no column 'lat'; has ts, lon, text" in fails("kernel", "--data", str(tmp_path))
    assert "--json" in fails("kernel", "--json", str(tmp_path / "none" / "report.json"))


def test_a_table_gives_numbers_and_points() -> None:
    table = Table(
        "t", ("plan", "workers", "speed"), [("a", 2, 10.0), ("b", 2, 2e6), ("a", 4, 0.123456)]
    )
    assert table.at("speed", "a", 4) == 0.123456
    assert table.points("workers", "speed", of=2) == [(2.0, 10.0), (2.0, 2e6)]
    assert table.markdown().splitlines()[3] == "| b    |       2 | 2,000,000 |"


def test_the_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list"]) == 0
    assert "### bench/papers/tornado" in capsys.readouterr().out


def test_a_closed_pipe_ends_the_list_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "bench", "list"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
