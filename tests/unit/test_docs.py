"""Docs are tested like code: examples run, flags and settings exist, files are where they say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest
import Stemmer
import typer

from checkout import ROOT
from placewire.cli.main import INTERRUPTED, UNUSABLE, app
from placewire.importers.elasticsearch import CLAUSES
from placewire.model.settings import STOP_WORDS, parse_settings
from placewire.plans.rebalance.rebalancer import REBALANCERS
from placewire.spark.config import RunConfig, SinkConfig, SourceConfig
from placewire.text.codepoints import CJK

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def commands() -> dict[str, set[str]]:
    """Every command with its options; those of a group under both names."""
    return dict(flags_of(typer.main.get_command(app)))


def flags_of(group: Any, before: str = "") -> Iterator[tuple[str, set[str]]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from flags_of(command, f"{before}{name} ")
            continue
        options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
        yield f"{before}{name}", {flag for p in options for flag in p.opts} - {"--help"}


def test_every_flag_in_the_docs_exists() -> None:
    known = set().union(*commands().values()) | {"--help"}
    known |= {flag for option in typer.main.get_command(app).params for flag in option.opts}
    known |= {
        "--full",
        "--data",
        "--quick",
        "--only",
    }  # of the benchmark, checked by its own parser
    for page in PAGES:
        flags = set(re.findall(r"`(--[a-z][a-z-]*)", page.read_text()))
        assert flags <= known, f"{page.name}: {sorted(flags - known)}"


def test_every_option_of_replay_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "settings.md").read_text()
    missing = [flag for flag in sorted(commands()["replay"]) if f"`{flag}" not in text]
    assert missing == []


def test_every_option_of_status_and_every_rebalancer_is_documented() -> None:
    text = (ROOT / "docs" / "concepts" / "rebalancing.md").read_text()
    assert [flag for flag in sorted(commands()["status"]) if f"`{flag}" not in text] == []
    assert [name for name in REBALANCERS if f"| `{name}` |" not in text] == []
    listed = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert [name for name in REBALANCERS if f"`{name}`" not in listed] == []


def test_every_option_and_every_clause_of_import_is_documented() -> None:
    text = (ROOT / "docs" / "how-to" / "migrate.md").read_text()
    assert [flag for flag in sorted(commands()["import"]) if f"`{flag}" not in text] == []
    assert [clause for clause in CLAUSES if f"`{clause}`" not in text] == []


def test_every_option_of_explain_is_documented() -> None:
    text = (ROOT / "docs" / "how-to" / "explain.md").read_text()
    assert [flag for flag in sorted(commands()["explain"]) if f"`{flag}" not in text] == []


def test_every_option_and_name_of_run_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "streaming-jobs.md").read_text()
    names = {*RunConfig.__struct_fields__} - {"source", "sink"}
    names |= {*SourceConfig.__struct_fields__} | {*SinkConfig.__struct_fields__}
    missing = [name for name in sorted(names) if f"`{name}`" not in text]
    missing += [flag for flag in sorted(commands()["run"]) if f"`{flag}" not in text]
    assert missing == []


def test_every_option_and_every_metric_of_serve_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "http.md").read_text()
    flags = sorted(commands()["serve"] - {"--held"})
    assert [flag for flag in flags if f"`{flag}" not in text] == []
    source = (ROOT / "src" / "placewire" / "serve" / "metrics.py").read_text()
    made = re.findall(r'out\.(counter|gauge)\(\s*"([a-z_]+)"', source)
    names = [f"placewire_{name}" + "_total" * (kind == "counter") for kind, name in made]
    assert len(names) > 20
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_option_of_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text()
    parts = dict(re.findall(r"^### `placewire ([a-z]+)`\n(.*?)(?=^##|\Z)", text, re.M | re.S))
    for name, flags in commands().items():
        part = parts[name.split()[0]]
        assert [flag for flag in sorted(flags) if f"`{flag}" not in part] == [], name
        assert "`--json" in part, name
    assert {name.split()[0] for name in commands()} == set(parts)


def test_every_exit_code_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert re.findall(r"^\| (\d+) \|", text, re.M) == ["0", "1", str(UNUSABLE), str(INTERRUPTED)]


def test_every_command_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    missing = [name for name in commands() if f"placewire {name}" not in text]
    assert missing == []


def test_every_option_of_placewire_itself_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    own = [flag for option in typer.main.get_command(app).params for flag in option.opts]
    assert [flag for flag in own if f"placewire {flag}" not in text] == []


def test_every_setting_in_the_docs_exists_and_the_other_way_round() -> None:
    text = (ROOT / "docs" / "reference" / "settings.md").read_text()
    documented = set(re.findall(r"^\| `([a-z_]+)` \|", text, re.M))
    with pytest.raises(ValueError, match="settings are ") as caught:
        parse_settings({"nothing": 1})
    known = set(str(caught.value).split("settings are ")[1].split(", "))
    assert documented == known


def test_analyzers_are_documented() -> None:
    text = (ROOT / "docs" / "reference" / "analyzers.md").read_text()
    listed = re.search(r"algorithm of that name: ([a-z_,\s]+)\.", text)
    assert listed is not None
    assert listed[1].replace("\n", " ").split(", ") == Stemmer.algorithms()
    blocks = re.findall(r"^\| ([0-9A-F]{4,5}) \| ([0-9A-F]{4,5}) \|", text, re.M)
    assert [(int(first, 16), int(last, 16)) for first, last in blocks] == list(CJK)
    named = re.findall(r"name of a list that comes along: ([^,;]*)", text)
    assert [f'`"{name}"`' for name in STOP_WORDS] == named


def test_files_named_in_docs_and_source_exist() -> None:
    for page in [*PAGES, *sorted(ROOT.glob("src/**/*.py"))]:
        named = re.findall(r"(?<![\w./*-])((?:[\w-]+/)+[\w-]+\.(?:py|md))\b", page.read_text())
        roots = (ROOT, ROOT / "src" / "placewire", page.parent)
        missing = {name for name in named if not any((root / name).is_file() for root in roots)}
        assert missing == set(), page


def test_packages_list_their_modules() -> None:
    package = ROOT / "src" / "placewire"
    for init in sorted(package.rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(init.read_text())) or ""
        assert text, f"{init}: has no docstring"
        lists = re.findall(r"^- ((?:`\w+`(?:, )?)+): ", text, re.M)
        named = set(re.findall(r"`(\w+)`", " ".join(lists)))
        modules = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
        modules |= {path.parent.name for path in init.parent.glob("*/__init__.py")}
        where = init.parent.relative_to(package)
        assert named <= modules, f"{where}: does not have {sorted(named - modules)}"
        assert not lists or modules <= named, f"{where}: does not list {sorted(modules - named)}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
