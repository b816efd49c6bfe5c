"""Code outside `kinds` finds kinds in the registry and names none of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkout import ROOT
from placewire.model.errors import Unusable
from placewire.model.kinds import all_kinds, check_buffer, kind_names

PACKAGE = ROOT / "src" / "placewire"
KIND_FREE = (
    "api.py", "batch", "explainer", "ingest", "model/events.py", "objects", "queries", "segments",
    "serve", "sinks", "spark", "status.py", "storage", "text", "warm.py",
)  # fmt: skip
CONSTANTS = {name.upper() for name in kind_names()}
ALLOWED = {("serve/http/schemas.py", "boolean")}  # a type of JSON Schema


def modules() -> Iterator[Path]:
    for name in KIND_FREE:
        path = PACKAGE / name
        assert path.exists(), name
        yield from [path] if path.is_file() else path.rglob("*.py")


def named(tree: ast.AST) -> Iterator[str]:
    """Constants, attributes and strings of a module that are the name of a kind."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in CONSTANTS:
            yield node.id
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from (alias.name for alias in node.names if alias.name in CONSTANTS)
        elif isinstance(node, ast.Attribute) and node.attr in (*CONSTANTS, *kind_names()):
            yield node.attr
        elif isinstance(node, ast.Constant) and node.value in kind_names():
            yield str(node.value)


def test_a_kind_is_named_only_in_its_package() -> None:
    found = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in modules()
        for name in named(ast.parse(path.read_text("utf-8")))
    }
    assert found == ALLOWED


def test_the_check_finds_each_way_to_name_a_kind() -> None:
    text = "from m import BOOLEAN\nx = NEAREST, m.TRENDING, plans.relevant, 'trending'"
    assert list(named(ast.parse(text))) == [
        "BOOLEAN",
        "NEAREST",
        "TRENDING",
        "relevant",
        "trending",
    ]


def test_contracts_forbid_imports_of_every_kind() -> None:
    contracts = (ROOT / "pyproject.toml").read_text("utf-8")
    for kind in all_kinds():
        assert f'"placewire.kinds.{kind.name}"' in contracts


def test_an_unknown_buffer_is_rejected() -> None:
    with pytest.raises(Unusable, match="buffer: must be one of cskyband, skyband, kmax, got 'x'"):
        check_buffer("x")
    assert check_buffer("kmax") == "kmax"
