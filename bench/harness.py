"""Run experiments: choose their parameters, print and save what they yield, write JSON."""

from __future__ import annotations

import inspect
import json
import math
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bench.clock import say
from bench.figures import Figures, Table
from bench.workload import Workload, generated, real
from placewire.model.errors import Unusable

SEED = 7
STOP_WORDS = 100
COLUMNS = ("ts", "lon", "lat", "text")
POSTS, VENUES, TRAFFIC = "posts_us", "venues_us", "traffic_nsw"
QUICK, DEFAULT, FULL = SIZES = ("quick", "default", "full")


class Setup(NamedTuple):
    """What every experiment gets: the directory of real data, if any, and a scratch folder."""

    data: Path | None
    folder: Path

    @property
    def name(self) -> str:
        return POSTS if self.data else "generated"

    def workload(self, objects: int, subscriptions: int, skip: int = STOP_WORDS) -> Workload:
        """Objects and subscriptions; the `skip` most frequent terms are never keywords."""
        if self.data is None:
            return generated(objects, subscriptions, SEED, skip)
        return real(self.data, POSTS, objects, subscriptions, SEED, skip)


@dataclass(frozen=True)
class Experiment:
    """One question, and the function that answers it.

    `function` is `module:name` below `bench`. It takes a `Setup` and keyword parameters, whose
    defaults fit into ten minutes; `default`, and then `quick` or `full`, override some of them. It
    yields `Table`, `LinePlot` and `BarPlot`. `data` names the sets it reads from `--data`; without
    `--data` it generates its input. `external` experiments download and start other systems and
    run only when named; so do `large` ones, which need up to 16 GB of memory.
    """

    name: str
    question: str
    function: str
    data: tuple[str, ...] = (POSTS,)
    default: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    full: Mapping[str, Any] = field(default_factory=dict)
    external: bool = False
    large: bool = False

    @property
    def package(self) -> str:
        """The package below `bench`, as a path."""
        module = self.function.partition(":")[0]
        return module.rpartition(".")[0].replace(".", "/")

    def load(self) -> Callable[..., Figures]:
        """The function; raises Unusable if a package it needs is not installed."""
        module, _, name = self.function.partition(":")
        try:
            loaded = import_module(f"bench.{module}")
        except ImportError as error:
            if error.name is None or error.name.startswith("bench"):
                raise
            raise Unusable(
                f"{self.name} needs {error.name}: pip install 'placewire[bench]'"
            ) from None
        function: Callable[..., Figures] = getattr(loaded, name)
        return function

    def parameters(self, size: str) -> dict[str, Any]:
        """The parameters of a run of this size."""
        signature = inspect.signature(self.load())
        defaults = {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.default is not parameter.empty
        }
        chosen = {QUICK: self.quick, FULL: self.full}.get(size, {})
        return defaults | dict(self.default) | dict(chosen)


def select(catalog: Mapping[str, Experiment], names: Sequence[str]) -> list[Experiment]:
    """Experiments by name; `all` selects those that are neither external nor large."""
    chosen: list[Experiment] = []
    for name in names:
        if name == "all":
            chosen += [one for one in catalog.values() if not one.external and not one.large]
        elif name in catalog:
            chosen.append(catalog[name])
        else:
            raise Unusable(f"unknown experiment {name!r}; `python -m bench list` shows all names")
    return list({one.name: one for one in chosen}.values())


def check_data(experiments: Sequence[Experiment], data: Path | None) -> None:
    """Raise Unusable if a file that an experiment reads is missing or not as expected."""
    if data is None:
        return
    if not data.is_dir():
        raise Unusable(f"--data {data}: no such directory")
    for experiment in experiments:
        for name in experiment.data:
            path = data / f"{name}.parquet"
            if not path.is_file():
                raise Unusable(f"{experiment.name} needs {path}, which is missing")
            try:
                columns = pq.read_schema(path).names
            except (OSError, pa.ArrowInvalid) as error:
                reason = str(error).splitlines()[0]
                raise Unusable(f"{path}: not a readable Parquet file: {reason}") from None
            missing = [column for column in COLUMNS if column not in columns]
            if missing:
                raise Unusable(f"{path}: no column {missing[0]!r}; has {', '.join(columns)}")


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    data: Path | None = None,
    size: str = DEFAULT,
    json_file: Path | None = None,
    show: Callable[[Experiment, Table], None] | None = None,
) -> dict[str, Any]:
    """Run experiments one after another; `show` gets each table as soon as it is there.

    Returns the report. The JSON file is rewritten after each experiment, so that an interrupted
    run keeps what it has measured.
    """
    check_data(experiments, data)
    report = describe_run(data, size)
    if json_file is not None:
        write_report(report, json_file)
    for number, experiment in enumerate(experiments, 1):
        say(f"{experiment.name} ({number}/{len(experiments)}, {size}): {experiment.question}")
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="placewire-bench-") as folder:
            entry = run_one(experiment, Setup(data, Path(folder)), size, show)
        entry["seconds"] = round(time.monotonic() - started, 1)
        report["experiments"].append(entry)
        say(f"{experiment.name}: done in {entry['seconds']:.0f} s")
        if json_file is not None:
            write_report(report, json_file)
    return report


def run_one(
    experiment: Experiment,
    setup: Setup,
    size: str,
    show: Callable[[Experiment, Table], None] | None,
) -> dict[str, Any]:
    """Run one experiment, save its figures, and give its entry of the report."""
    function, parameters = experiment.load(), experiment.parameters(size)
    tables = []
    for figure in function(setup, **parameters):
        try:
            figure.save()
        except ImportError as error:
            say(f"{figure.name}: no plot without {error.name}")
        if isinstance(figure, Table):
            tables.append({"name": figure.name, "rows": figure.records()})
            if show is not None:
                show(experiment, figure)
    return {
        "name": experiment.name,
        "package": experiment.package,
        "parameters": {name: _jsonable(value) for name, value in parameters.items()},
        "tables": tables,
    }


def describe_run(data: Path | None, size: str) -> dict[str, Any]:
    """Date, commit and machine of a run."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": find_commit(),
        "machine": {
            "system": platform.platform(),
            "processor": find_processor(),
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "python": platform.python_version(),
        },
        "data": "generated" if data is None else "real",
        "size": size,
        "experiments": [],
    }


def find_commit() -> str | None:
    """The commit that is checked out, with `-dirty` if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def find_processor() -> str:
    """The model of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def write_report(report: dict[str, Any], path: Path) -> None:
    """Write the report; raises Unusable if that is not possible."""
    try:
        path.write_text(json.dumps(_jsonable(report), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise Unusable(f"--json {path}: {error.strerror or error}") from None


def _jsonable(value: Any) -> Any:
    """A value as JSON has it: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
