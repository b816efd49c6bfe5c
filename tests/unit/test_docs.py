"""Check the docs against the code, and their words, length and links; run their commands."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import Stemmer
import typer
from starlette.routing import Route, WebSocketRoute
from typer.testing import CliRunner

import placewire
from bench.catalog import CATALOG
from checkout import ROOT
from placewire.cli.main import INTERRUPTED, UNUSABLE, app, main
from placewire.importers.elasticsearch import CLAUSES
from placewire.model.settings import STOP_WORDS, parse_settings
from placewire.plans.rebalance.rebalancer import REBALANCERS
from placewire.serve.http.app import ROUTES
from placewire.spark.config import RunConfig, SinkConfig, SourceConfig, read_config
from placewire.text.codepoints import CJK
from service import Service, serving

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md")])
USER_PAGES = [page for page in PAGES if DOCS in page.parents and "decisions" not in page.parts]
DECISIONS = sorted(DOCS.glob("decisions/0*.md"))
MOST_WORDS = {"README.md": 900, "benchmarks.md": 1_500}  # of one page; 2,000 for the others
MOST_WORDS_OF_A_DECISION = 300
MOST_WORDS_IN_ALL = 35_000
# Words for which the field has better ones, or that say nothing.
AVOIDED = (
    *("anew", "are told", "clerk", "everybody", "folio", "for a while", "goes over", "heir"),
    *("heirs", "is told", "keeper", "lately", "nobody", "of its own", "patience", "roster"),
    *("so long", "spell", "spells", "strata", "stratum", "sunk", "tenure", "tenures", "tweet"),
    *("tweets", "whoever"),
)
AVOIDED_IN_PROSE = (*AVOIDED, "beside", "comes along", "micro-batch", "micro-batches")
RUN_BY = "<!-- run by tests/spark/test_docs_examples.py -->\n"
# Pages whose commands need a server.
SERVED = (
    "README.md",
    "docs/get-started/first-subscription.md",
    "docs/how-to/migrate.md",
    "docs/how-to/secure.md",
    "docs/how-to/webhooks.md",
    "docs/reference/commands.md",
    "docs/reference/http.md",
)


def page(name: str) -> str:
    return (DOCS / name).read_text()


def blocks(language: str) -> Iterator[tuple[Path, str]]:
    """Every fenced block of a language, with its page."""
    for where in [ROOT / "README.md", *USER_PAGES]:
        for code in re.findall(rf"^```{language}\n(.*?)^```", where.read_text(), re.M | re.S):
            yield where, code


def commands() -> dict[str, set[str]]:
    """Every command with its options; those of a group under both names."""
    found = {}
    for name, command in leaves_of(typer.main.get_command(app)):
        options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
        found[name] = {flag for p in options for flag in p.opts} - {"--help"}
    return found


def leaves_of(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves_of(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


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


def test_every_option_of_every_command_is_documented() -> None:
    text = page("reference/commands.md")
    parts = dict(re.findall(r"^### `placewire ([a-z]+)`\n(.*?)(?=^##|\Z)", text, re.M | re.S))
    for name, flags in commands().items():
        part = parts[name.split()[0]]
        flags -= {"--held"}  # between the processes of a server
        assert [flag for flag in sorted(flags) if f"`{flag}" not in part] == [], name
        assert "`--json" in part, name
    assert {name.split()[0] for name in commands()} == set(parts)
    own = [flag for option in typer.main.get_command(app).params for flag in option.opts]
    assert [flag for flag in own if f"placewire {flag}" not in text] == []


def test_the_help_of_every_command_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ["", *commands()]:
        told = CliRunner().invoke(app, [*name.split(), "--help"]).stdout.splitlines()
        assert "Options:" in told, name
        assert len(told) <= 40, name
        assert max(map(len, told)) <= 80, name


def test_every_exit_code_is_documented() -> None:
    codes = re.findall(r"^\| (\d+) \|", page("reference/commands.md"), re.M)
    assert codes == ["0", "1", str(UNUSABLE), str(INTERRUPTED)]


def test_every_rebalancer_is_documented() -> None:
    text, replay = page("concepts/rebalancing.md"), page("reference/commands.md")
    assert [name for name in REBALANCERS if f"| `{name}` |" not in text] == []
    assert [name for name in REBALANCERS if f"`{name}`" not in replay] == []


def test_every_option_and_every_clause_of_import_is_documented() -> None:
    text = page("how-to/migrate.md")
    assert [flag for flag in sorted(commands()["import"]) if f"`{flag}" not in text] == []
    assert [clause for clause in CLAUSES if f"`{clause}`" not in text] == []


def test_every_option_of_explain_is_documented() -> None:
    text = page("how-to/explain.md")
    assert [flag for flag in sorted(commands()["explain"]) if f"`{flag}" not in text] == []


def test_every_name_of_a_job_is_documented() -> None:
    names = {*RunConfig.__struct_fields__} - {"source", "sink"}
    names |= {*SourceConfig.__struct_fields__} | {*SinkConfig.__struct_fields__}
    text = page("reference/streaming-jobs.md")
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_every_metric_of_a_server_is_documented() -> None:
    text = page("reference/metrics.md")
    source = (ROOT / "src" / "placewire" / "serve" / "metrics.py").read_text()
    made = re.findall(r'out\.(counter|gauge)\(\s*"([a-z_]+)"', source)
    names = [f"placewire_{name}" + "_total" * (kind == "counter") for kind, name in made]
    assert len(names) > 20
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_route_is_documented() -> None:
    text = page("reference/http.md")
    for route in ROUTES:
        assert isinstance(route, Route | WebSocketRoute)
        path = route.path.replace(":int", "")
        for method in sorted(set(getattr(route, "methods", None) or ()) - {"HEAD"}):
            listed = path == "/explain" or f"`{method} {path}`" in text
            assert listed, f"{method} {path}"


def test_every_public_name_is_documented() -> None:
    text = page("reference/python.md")
    assert [name for name in placewire.__all__ if f"`{name}" not in text] == []


def test_every_setting_in_the_docs_exists_and_the_other_way_round() -> None:
    documented = set(re.findall(r"^\| `([a-z_]+)` \|", page("reference/settings.md"), re.M))
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
    named = re.findall(r"name of a built-in list: ([^,;]*)", text)
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


def slugs(text: str) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s+", "-", heading) for heading in plain}


def test_links_lead_somewhere() -> None:
    for where in [*PAGES, *ROOT.glob("bench/**/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", where.read_text()):
            if "://" in target:
                continue
            found = where.parent / target if target else where
            assert found.exists(), f"{where.name}: {target}"
            if anchor:
                assert anchor in slugs(found.read_text()), f"{where.name}: {target}#{anchor}"


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    expected = {str(where.relative_to(DOCS)) for where in USER_PAGES} | {"decisions/README.md"}
    assert {name.lstrip("/") for name in listed if "*" not in name and "0" not in name} == expected


def words_of(where: Path) -> int:
    return len(where.read_text().split())


def test_pages_are_short() -> None:
    lengths = {where: words_of(where) for where in [ROOT / "README.md", *USER_PAGES]}
    long = {where.name: n for where, n in lengths.items() if n > MOST_WORDS.get(where.name, 2_000)}
    assert long == {}
    assert sum(map(words_of, DOCS.glob("**/*.md"))) <= MOST_WORDS_IN_ALL


def test_decisions_are_short_and_have_the_same_sections() -> None:
    listed = page("decisions/README.md")
    for where in DECISIONS:
        text = where.read_text()
        sections = re.findall(r"^## (.*)$", text, re.M)
        assert sections == ["Context", "Decision", "Consequences"], where.name
        assert len(text.split()) <= MOST_WORDS_OF_A_DECISION, where.name
        assert f"({where.name})" in listed


def avoided(text: str, words: tuple[str, ...]) -> list[str]:
    return [word for word in words if re.search(rf"\b{word}\b", text, re.I)]


def test_pages_use_plain_words() -> None:
    for where in PAGES:
        prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", where.read_text(), flags=re.M | re.S)
        assert avoided(prose, AVOIDED_IN_PROSE) == [], where.name


def strings_of(path: Path) -> Iterator[str]:
    """The strings of a module that can be prose: help, messages and docstrings."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def test_help_and_messages_use_plain_words() -> None:
    source = ROOT / "src" / "placewire"
    found = {
        str(path.relative_to(source)): avoided("\n".join(strings_of(path)), AVOIDED)
        for path in source.rglob("*.py")
    }
    assert {name: words for name, words in found.items() if words} == {}


def test_the_live_map_uses_plain_words() -> None:
    files = ROOT / "src" / "placewire" / "serve" / "page"
    for path in (files / "index.html", *sorted(files.glob("js/*.js"))):
        assert avoided(path.read_text(), AVOIDED_IN_PROSE) == [], path.name


def test_questions_of_experiments_use_plain_words() -> None:
    for name, experiment in CATALOG.items():
        assert avoided(experiment.question, AVOIDED_IN_PROSE) == [], name


def test_every_option_has_a_help_text() -> None:
    for name, command in leaves_of(typer.main.get_command(app)):
        assert re.match(r"[A-Z][a-z]+(?<!ing) ", command.help or ""), name
        shown = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
        assert [p.name for p in shown if not p.help] == [], name


def test_glossary_has_each_term_once() -> None:
    rows = re.findall(r"^\| ([a-z][a-z ]*) \|", page("glossary.md"), re.M)
    terms = [row for row in rows if row != "term"]
    terms.append("term")
    assert len(terms) == len(set(terms))
    assert 35 <= len(terms) <= 50


def test_environment_variables_are_documented() -> None:
    source = "".join(path.read_text() for path in ROOT.glob("src/**/*.py"))
    text = "".join(where.read_text() for where in USER_PAGES)
    names = set(re.findall(r"\bPLACEWIRE_[A-Z_]+", source))
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_site_builds_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    for path in tmp_path.rglob("*.html"):
        tags = re.findall(r"<(?:script|img)[^>]*>|<link[^>]*stylesheet[^>]*>", path.read_text())
        assert [tag for tag in tags if "//" in tag] == [], path.name


def test_python_examples_are_run() -> None:
    for where in [ROOT / "README.md", *USER_PAGES]:
        text = where.read_text()
        if where.name != "adding-a-kind.md":  # test_adding_a_kind.py runs it
            run = text.count(f"{RUN_BY}```python\n")
            assert text.count("\n```python\n") == run, where.name


def shell_commands() -> Iterator[tuple[Path, list[str]]]:
    """Every command of every shell block, as words."""
    for where, code in blocks("sh"):
        for line in re.sub(r"<<'END'\n.*?\nEND", "", code, flags=re.S).splitlines():
            words = shlex.shlex(line, posix=True, punctuation_chars="|&;")
            words.whitespace_split = True
            command: list[str] = []
            for word in [*words, ";"]:
                if set(word) <= set("|&;"):
                    if command:
                        yield where, command
                    command = []
                else:
                    command.append(word)


def test_commands_in_the_docs_parse() -> None:
    checked = 0
    for where, words in shell_commands():
        if not words[0].endswith("placewire"):
            continue
        command: Any = typer.main.get_command(app)
        arguments = words[1 : words.index(">") if ">" in words else None]
        while hasattr(command, "commands") and not arguments[0].startswith("-"):
            command = command.commands[arguments.pop(0)]
        if hasattr(command, "commands"):
            assert arguments[0] in {flag for p in command.params for flag in p.opts}, where
        else:
            command.make_context(command.name, arguments)
        checked += 1
    assert checked > 40


def test_experiments_in_the_docs_exist() -> None:
    for where in [ROOT / "README.md", *USER_PAGES]:
        for names in re.findall(r"python -m bench run ([a-z0-9 -]+)", where.read_text()):
            asked = re.sub(r" --(full|quick|data|json).*", "", names).split()
            assert set(asked) <= {*CATALOG, "all"}, f"{where.name}: {names}"


def test_requests_in_the_docs_have_a_route() -> None:
    routes = [route for route in ROUTES if isinstance(route, Route)]
    for where, words in shell_commands():
        if words[0] != "curl":
            continue
        url = next(word for word in words if "localhost" in word)
        posts = "POST" if "-d" in words else "GET"
        method = words[words.index("-X") + 1] if "-X" in words else posts
        path = url.partition("?")[0].partition("7878")[2]
        found = [r for r in routes if r.path_regex.match(path) and method in (r.methods or ())]
        assert found, f"{where.name}: {method} {path}"


def test_events_in_the_docs_are_valid() -> None:
    events = []
    for where, code in blocks("json"):
        for line in code.splitlines():
            fields = json.loads(line)
            assert isinstance(fields, dict), where
            of_event = fields.get("type") in ("object", "subscribe", "unsubscribe", "query")
            if of_event and fields.get("kind") != "count":  # the sample of adding-a-kind.md
                events.append(line)
    assert len(events) > 5
    assert placewire.run(events).dead_letters == []


def test_configurations_in_the_docs_are_valid(tmp_path: Path) -> None:
    for _, code in blocks("toml"):
        table = tomllib.loads(code)
        if "source" in table:
            (tmp_path / "wire.toml").write_text(code)
            read_config(tmp_path / "wire.toml")
        else:
            parse_settings(table)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLACEWIRE_SERVER", raising=False)
    with serving(tmp_path / "state") as service:
        yield service


@pytest.mark.parametrize("name", SERVED)
def test_commands_against_a_server_run(
    name: str, service: Service, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if name.endswith("webhooks.md"):
        service.http.put("/v1/subscriptions/coffee", json={"kind": "boolean", "where": "coffee"})
    Path("objects.jsonl").write_text('{"id":"o","lon":1,"lat":2,"text":"Free coffee"}\n')
    Path("subscriptions.jsonl").write_text('{"id":"tea","kind":"boolean","where":"tea"}\n')
    text = (ROOT / name).read_text()
    code = "".join(re.findall(r"(?<!-->\n)^```sh\n(.*?)^```", text, re.M | re.S))
    code = re.sub(r"\b(localhost|127\.0\.0\.1):7878", service.url[7:], code)
    ran = 0
    for statement in re.findall(r"[^\n]*<<'END'\n.*?\nEND\n|[^\n]+\n", code, re.S):
        words = shlex.split(statement.partition("<<")[0], comments=True)
        if words[0] == "export":
            monkeypatch.setenv(*words[1].split("=", 1))
        elif words[0] == "cat":
            subprocess.run(["bash", "-ec", statement], check=True)
        elif words[0] == "curl":
            limited = ["curl", "-sS", "--fail-with-body", "--max-time", "2", *words[1:]]
            found = subprocess.run(limited, check=False, capture_output=True, text=True)
            ended = 28 if "-N" in words else 0  # a stream ends by the time limit
            assert found.returncode == ended, f"{statement}{found.stdout}{found.stderr}"
            ran += 1
        elif words[0].endswith("placewire") and words[1] != "serve":
            monkeypatch.setattr(sys, "argv", ["placewire", *words[1:]])
            with pytest.raises(SystemExit) as exited:
                main()
            expected = 1 if words[1] == "import" else 0  # one query has no counterpart
            assert (exited.value.code or 0) == expected, statement + capfd.readouterr().err
            ran += 1
        else:
            assert words[0] in {"make", "source", "placewire"}, statement
    assert ran > 0


def test_example_of_the_client_runs(service: Service) -> None:
    code = next(code for _, code in blocks("python") if "def watch(" in code)
    names: dict[str, Any] = {}
    exec(compile(code, "example", "exec"), names)
    assert names["watch"](service.url)["total"] == 1
