"""Run the Python examples of the docs."""

from __future__ import annotations

import re

import pytest

from checkout import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EXAMPLE = re.compile(r"<!-- run by tests/\S+ -->\n```python\n(.*?)```", re.S)
EXAMPLES = [
    pytest.param(
        code,
        id=f"{page.name}-{number}",
        marks=[pytest.mark.slow, pytest.mark.spark] if "spark" in code else [],
    )
    for page in PAGES
    for number, code in enumerate(EXAMPLE.findall(page.read_text()))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(code: str, request: pytest.FixtureRequest) -> None:
    names = {"spark": request.getfixturevalue("spark")} if "spark" in code else {}
    exec(compile(code, "example", "exec"), names)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
