"""Boolean expressions over terms: the tree of a `where`, its normal form and its program.

A `Node` is the expression as written. `compile_expression` brings it to negation normal form (never
to disjunctive normal form: 128 ANDed pairs would become 2^128) and lays the literals out as a
branching program: test a term, jump forward, accept or reject. The program also has a cover: the
terms under which an index posts the expression.

`placewire.text.query` makes nodes and bounds their depth; the functions here recurse.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple, TypeAlias

ALL, ANY, NONE = "all", "any", "none"

# A word, or all / any / none of at least one child. Plain tuples: they are made and read at
# 100,000 subscriptions a second, and named ones cost three times as much to make.
Node: TypeAlias = "str | tuple[str, tuple[Node, ...]]"
ACCEPT, REJECT = -1, -2  # jumps that end a program
COVER_ANY = 0  # no term has to be present; the cover is empty
COVER_ONE = 1  # each term of the cover is in every object that satisfies the expression
COVER_ALL = 2  # every object that satisfies the expression contains one of the cover's terms


class Absent(NamedTuple):
    """A negated literal of the normal form; a positive one is the term itself."""

    term: str


class Group(NamedTuple):
    """Two or more parts of which every one, or at least one, must hold; `size` counts literals.

    No part is a group of the same sort, and no literal is repeated.
    """

    every: bool
    parts: list[Form]
    size: int


Form: TypeAlias = str | Absent | Group


class Program(NamedTuple):
    """A compiled expression: one entry a literal, run from literal 0.

    Literal i tests whether the object contains `terms[i]` and jumps to literal `on_true[i]` or
    `on_false[i]`, always forward, or ends with ACCEPT or REJECT. `cover` holds literal numbers,
    each term once, in canonical order; `cover_mode` says what they mean.
    """

    terms: list[str]
    on_true: list[int]
    on_false: list[int]
    cover_mode: int
    cover: list[int]


ANY_TEXT = Program([], [], [], COVER_ANY, [])  # the program where there is no expression


def normal_form(node: Node, negated: bool = False) -> Form:
    """Push negations down to the words, flatten nested groups, drop repeated literals."""
    if isinstance(node, str):
        return Absent(node) if negated else node
    kind, children = node
    every = (kind != ANY) != negated
    child_negated = (kind == NONE) != negated
    literals: set[str | Absent] = set()
    parts: list[Form] = []
    size = 0
    for child in children:
        form = normal_form(child, child_negated)
        inner = form.parts if isinstance(form, Group) and form.every == every else [form]
        for part in inner:
            if isinstance(part, Group):
                size += part.size
            elif part in literals:
                continue
            else:
                literals.add(part)
                size += 1
            parts.append(part)
    return parts[0] if len(parts) == 1 else Group(every, parts, size)


def compile_expression(node: Node) -> Program:
    """Compile an expression to its branching program and its cover."""
    if isinstance(node, str):
        return Program([node], [ACCEPT], [REJECT], COVER_ONE, [0])
    kind, children = node
    if kind != NONE:
        # Most subscriptions are words joined by one operator: their program is known.
        words: dict[str, None] = {}
        for child in children:
            if not isinstance(child, str):
                break
            words[child] = None
        else:
            return _compile_words(kind, list(words))
    form = normal_form(node)
    terms, on_true, on_false, first_positive = _lay_out(form)
    cover_mode, cover = _choose_cover(form)
    return Program(terms, on_true, on_false, cover_mode, [first_positive[term] for term in cover])


def holds(program: Program, terms: Set[str]) -> bool:
    """Run a program on an object's terms."""
    at = 0
    while at >= 0:
        at = program.on_true[at] if program.terms[at] in terms else program.on_false[at]
    return at == ACCEPT


def node_holds(node: Node, terms: Set[str]) -> bool:
    """Evaluate an expression as written; the reference for compiled programs."""
    if isinstance(node, str):
        return node in terms
    kind, children = node
    if kind == ALL:
        return all(node_holds(child, terms) for child in children)
    some = any(node_holds(child, terms) for child in children)
    return some if kind == ANY else not some


def _compile_words(kind: str, terms: list[str]) -> Program:
    """Compile all or any of some different words without a normal form."""
    count = len(terms)
    numbers = list(range(count))
    onward = numbers[1:]
    if kind == ALL:
        onward.append(ACCEPT)
        return Program(terms, onward, [REJECT] * count, COVER_ONE, numbers)
    onward.append(REJECT)
    cover_mode = COVER_ONE if count == 1 else COVER_ALL
    return Program(terms, [ACCEPT] * count, onward, cover_mode, numbers)


def _lay_out(form: Form) -> tuple[list[str], list[int], list[int], dict[str, int]]:
    """Place the literals from the last to the first, so that every jump's target is known.

    Returns the terms, the two jumps and the first positive literal of each term.
    """
    terms: list[str] = []
    on_true: list[int] = []
    on_false: list[int] = []
    first_positive: dict[str, int] = {}
    free = form.size if isinstance(form, Group) else 1

    def place(form: Form, yes: int, no: int) -> int:
        """Place a form that jumps to `yes` if it holds and to `no` if not; return its entry."""
        nonlocal free
        if isinstance(form, Group):
            every = form.every
            for part in reversed(form.parts):
                entry = place(part, yes, no)
                if every:
                    yes = entry
                else:
                    no = entry
            return entry
        free -= 1
        if isinstance(form, str):
            terms.append(form)
            on_true.append(yes)
            on_false.append(no)
            first_positive[form] = free
        else:
            terms.append(form.term)
            on_true.append(no)
            on_false.append(yes)
        return free

    place(form, ACCEPT, REJECT)
    terms.reverse()
    on_true.reverse()
    on_false.reverse()
    return terms, on_true, on_false, first_positive


def _choose_cover(form: Form) -> tuple[int, list[str]]:
    """Choose the cover's mode and terms; of a top-level `all`, every positive word is offered."""
    direct = form.parts if isinstance(form, Group) and form.every else [form]
    words = [part for part in direct if isinstance(part, str)]
    if words:
        return COVER_ONE, words
    cover = _smallest_cover(form)
    return (COVER_ALL, cover) if cover else (COVER_ANY, [])


def _smallest_cover(form: Form) -> list[str]:
    """Find few terms of which every satisfying object has one; empty when it may have none."""
    if isinstance(form, str):
        return [form]
    if isinstance(form, Absent):
        return []
    if form.every:
        # A word cannot be beaten.
        for part in form.parts:
            if isinstance(part, str):
                return [part]
        return min(filter(None, map(_smallest_cover, form.parts)), key=len, default=[])
    union: dict[str, None] = {}
    for part in form.parts:
        cover = _smallest_cover(part)
        if not cover:
            return []
        union.update(dict.fromkeys(cover))
    return list(union)


# A literal's number, or all / any / none of at least one child.
Outline: TypeAlias = "int | tuple[str, tuple[Outline, ...]]"


def outline_program(on_true: Sequence[int], on_false: Sequence[int]) -> Outline | None:
    """Return the tree of a program with these jumps; None if it has no literals.

    A subtree is a run of literals with two exits: one if it holds and one if it does not.
    """
    if not on_true:
        return None

    def leave(first: int, last: int) -> set[int]:
        """Return the jump targets of literals first:last outside that range."""
        jumps = {*on_true[first:last], *on_false[first:last]}
        return {to for to in jumps if not first <= to < last}

    def read(first: int, last: int, yes: int, no: int) -> Outline:
        if last - first == 1:
            return first if on_true[first] == yes else (NONE, (first,))
        for end in range(first + 1, last):
            ways = leave(first, end)
            if end not in ways:
                continue
            for kind, other in ((ALL, no), (ANY, yes)):
                if ways <= {end, other}:
                    one = read(first, end, *((end, no) if kind == ALL else (yes, end)))
                    rest = read(end, last, yes, no)
                    return kind, (*flatten(kind, one), *flatten(kind, rest))
        raise ValueError("the jumps are not those of an expression")

    return read(0, len(on_true), ACCEPT, REJECT)


def flatten(kind: str, node: Outline) -> tuple[Outline, ...]:
    """Return the children of a node of the same kind, or the node itself."""
    return node[1] if isinstance(node, tuple) and node[0] == kind else (node,)
