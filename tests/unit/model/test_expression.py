"""Programs and covers, checked against the plain evaluation of the expression as written."""

from __future__ import annotations

import pickle
from itertools import combinations

import pytest
from hypothesis import given

from expressions import WORDS, nodes
from placewire.model.expression import (
    ACCEPT,
    ALL,
    ANY,
    COVER_ALL,
    COVER_ANY,
    COVER_ONE,
    NONE,
    REJECT,
    Absent,
    Form,
    Group,
    Node,
    compile_expression,
    holds,
    node_holds,
    normal_form,
)

TERM_SETS = [
    frozenset(terms) for count in range(len(WORDS) + 1) for terms in combinations(WORDS, count)
]


def literals(form: Form) -> list[str | Absent]:
    if not isinstance(form, Group):
        return [form]
    return [literal for part in form.parts for literal in literals(part)]


def check_normal(form: Form) -> None:
    """Check that groups alternate, are no groups of one, and repeat no literal."""
    if not isinstance(form, Group):
        return
    assert len(form.parts) > 1
    assert form.size == len(literals(form))
    direct = [part for part in form.parts if not isinstance(part, Group)]
    assert len(set(direct)) == len(direct)
    for part in form.parts:
        assert not (isinstance(part, Group) and part.every == form.every)
        check_normal(part)


@given(nodes)
def test_a_program_accepts_what_the_expression_accepts(node: Node) -> None:
    program = compile_expression(node)
    for terms in TERM_SETS:
        assert holds(program, terms) == node_holds(node, terms)


@given(nodes)
def test_a_program_has_one_entry_a_literal_and_jumps_forward(node: Node) -> None:
    form = normal_form(node)
    check_normal(form)
    program = compile_expression(node)
    assert program.terms == [
        literal.term if isinstance(literal, Absent) else literal for literal in literals(form)
    ]
    assert len(program.on_true) == len(program.on_false) == len(program.terms)
    for jumps in (program.on_true, program.on_false):
        for index, target in enumerate(jumps):
            assert target in (ACCEPT, REJECT) or index < target < len(program.terms)
    assert pickle.loads(pickle.dumps(program)) == program


@given(nodes)
def test_every_satisfying_object_meets_the_cover(node: Node) -> None:
    program = compile_expression(node)
    cover = [program.terms[index] for index in program.cover]
    assert len(set(cover)) == len(cover)
    assert (program.cover_mode == COVER_ANY) == (not cover)
    positive = [part for part in literals(normal_form(node)) if isinstance(part, str)]
    assert set(cover) <= set(positive)
    for terms in TERM_SETS:
        if program.cover_mode != COVER_ANY and node_holds(node, terms):
            need = all if program.cover_mode == COVER_ONE else any
            assert need(term in terms for term in cover)


@given(nodes)
def test_a_cover_names_the_first_positive_literal_of_its_term(node: Node) -> None:
    program = compile_expression(node)
    flat = literals(normal_form(node))
    for index in program.cover:
        assert flat.index(program.terms[index]) == index


@pytest.mark.parametrize(
    ("node", "mode", "cover"),
    [
        ("a", COVER_ONE, ["a"]),
        ((NONE, ("a",)), COVER_ANY, []),
        ((NONE, ((NONE, ("a",)),)), COVER_ONE, ["a"]),
        ((ALL, ("a", "b")), COVER_ONE, ["a", "b"]),
        ((ALL, ("a", "a")), COVER_ONE, ["a"]),
        ((ANY, ("a", "b", "a")), COVER_ALL, ["a", "b"]),
        ((ANY, ("a", "a")), COVER_ONE, ["a"]),
        ((ANY, ("a", (NONE, ("b",)))), COVER_ANY, []),
        ((ALL, ((NONE, ("a",)), "b", (ANY, ("c", "d")))), COVER_ONE, ["b"]),
        ((ALL, ((ANY, ("a", "b", "c")), (ANY, ("d", "e")))), COVER_ALL, ["d", "e"]),
        ((ALL, ((ANY, ("a", "b")), (NONE, ("c",)))), COVER_ALL, ["a", "b"]),
        ((ALL, ((ANY, ("a", (NONE, ("b",)))), (ANY, ("c", "d")))), COVER_ALL, ["c", "d"]),
        ((ANY, ((ALL, ("a", "b")), (ALL, ((NONE, ("c",)), "d")))), COVER_ALL, ["a", "d"]),
        ((ANY, ((ALL, ("a", "b")), (ALL, ("a", "c")))), COVER_ALL, ["a"]),
        ((NONE, ("a", (NONE, ("b", "c")))), COVER_ALL, ["b", "c"]),
        ((ALL, ("a", (NONE, ("a",)))), COVER_ONE, ["a"]),
        ((ANY, ("a", (NONE, ("a",)))), COVER_ANY, []),
    ],
)
def test_covers_by_example(node: Node, mode: int, cover: list[str]) -> None:
    program = compile_expression(node)
    assert program.cover_mode == mode
    assert [program.terms[index] for index in program.cover] == cover


def test_a_program_by_example() -> None:
    program = compile_expression((ALL, ("a", (ANY, ("b", (NONE, ("c",)))))))
    assert program.terms == ["a", "b", "c"]
    assert program.on_true == [1, ACCEPT, REJECT]
    assert program.on_false == [REJECT, 2, ACCEPT]


def test_pairs_are_never_multiplied_out() -> None:
    pairs: list[Node] = [(ANY, (f"a{number}", f"b{number}")) for number in range(128)]
    program = compile_expression((ALL, tuple(pairs)))
    assert len(program.terms) == 256
    assert program.cover_mode == COVER_ALL
    assert len(program.cover) == 2
    assert holds(program, {f"a{number}" for number in range(128)})
    assert not holds(program, {f"a{number}" for number in range(127)})


def test_nesting_is_flattened_and_double_negation_removed() -> None:
    node: Node = (ALL, ("a", (ALL, ("b", (NONE, ((ANY, ("c", "d")),)), (NONE, ((NONE, ("e",)),))))))
    assert normal_form(node) == Group(True, ["a", "b", Absent("c"), Absent("d"), "e"], 5)
