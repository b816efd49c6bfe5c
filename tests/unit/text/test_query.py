"""Query strings and trees: precedence, limits, and InvalidEvent for everything else."""

from __future__ import annotations

import re
import sys
import unicodedata
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewire.model.errors import InvalidEvent
from placewire.model.events import MOST_TERMS
from placewire.model.expression import ALL, ANY, NONE, Node, compile_expression, node_holds
from placewire.text.query import MAX_DEPTH, MAX_PARENTHESES, parse_where


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def parse(where: Any) -> Node:
    return parse_where(where, tokens)


def depth(node: Node) -> int:
    return 1 if isinstance(node, str) else 1 + max(map(depth, node[1]))


def width(node: Node) -> int:
    return 1 if isinstance(node, str) else sum(map(width, node[1]))


def no(node: Node) -> Node:
    return NONE, (node,)


@pytest.mark.parametrize(
    ("where", "node"),
    [
        ("coffee", "coffee"),
        ("  Coffee\t", "coffee"),
        ("coffee AND free", (ALL, ("coffee", "free"))),
        ("coffee free", (ALL, ("coffee", "free"))),
        ("coffee OR tea OR milk", (ANY, ("coffee", "tea", "milk"))),
        ("a OR b AND c", (ANY, ("a", (ALL, ("b", "c"))))),
        ("a b OR c d", (ANY, ((ALL, ("a", "b")), (ALL, ("c", "d"))))),
        ("a AND b c", (ALL, ("a", "b", "c"))),
        ("(a OR b) c", (ALL, ((ANY, ("a", "b")), "c"))),
        ("NOT a b", (ALL, (no("a"), "b"))),
        ("NOT a OR b", (ANY, (no("a"), "b"))),
        ("NOT (a OR b)", no((ANY, ("a", "b")))),
        ("a NOT b", (ALL, ("a", no("b")))),
        ("a AND NOT b", (ALL, ("a", no("b")))),
        ("a OR NOT b", (ANY, ("a", no("b")))),
        ("NOT NOT a", no(no("a"))),
        ("NOT a-b", no((ALL, ("a", "b")))),
        ("a-b", (ALL, ("a", "b"))),
        ('"new york" pizza', (ALL, ((ALL, ("new", "york")), "pizza"))),
        ('"a"', "a"),
        ('"AND"', "and"),
        ('a "OR" b', (ALL, ("a", "or", "b"))),
        ('a"b"c(d)e', (ALL, ("a", "b", "c", "d", "e"))),
        ('NOT"(a"', no("a")),
        ("NOT(a)AND(b)", (ALL, (no("a"), "b"))),
        ("((a))", "a"),
        ("a AND (b AND c)", (ALL, ("a", (ALL, ("b", "c"))))),
        ("and or not", (ALL, ("and", "or", "not"))),
        ("AND! x", (ALL, ("and", "x"))),
        ("ANDROID", "android"),
        ("ＡＮＤ", "and"),
        ("Straße", "strasse"),
        ("a\u3000OR\u00a0b", (ANY, ("a", "b"))),
        ({"all": ["a"]}, (ALL, ("a",))),
        ({"any": ["a OR b", {"none": ["c d"]}]}, (ANY, ((ANY, ("a", "b")), no((ALL, ("c", "d")))))),
    ],
)
def test_what_is_read(where: Any, node: Node) -> None:
    assert parse(where) == node


@pytest.mark.parametrize(
    "where",
    [
        "", "   ", "\n", "AND", "OR", "NOT", "AND a", "OR a", "a AND", "a OR", "a NOT", "a OR OR b",
        "a AND AND b", "a AND OR b", "a NOT AND b", "NOT AND", "(", ")", "()", "a ()", "( )", "(a",
        "a)", "a ) b", ")a(", "(a OR)", "(AND a)", "a AND (", "NOT (", '"', '""', '"a', 'a"', '" "',
        'a "', '"a" "', '"!"', "!!!", "a !!! b", "a AND -", "(" * 65 + "a" + ")" * 65,
        "(" * 100_000, ")" * 100_000, "NOT " * 100_000, "NOT " * 100_000 + "a", "NOT (" * 50_000,
        "a " * 100_000, "a OR " * 100_000 + "a", '"' + "a " * 100_000 + '"', '"' * 100_001,
        "(a " * 50_000, "a AND (b OR (" * 20_000, "\ud800", "(" * 64 + ")" * 64,
        {}, {"all": []}, {"any": []}, {"none": []}, {"all": "a"}, {"all": {"any": ["a"]}},
        {"all": None}, {"all": ["a"], "any": ["b"]}, {"ALL": ["a"]}, {"not": ["a"]}, {"": ["a"]},
        {"all": [""]}, {"all": ["a", None]}, {"all": ["a", 1]}, {"all": [["a"]]}, {"all": [{}]},
        {"any": ["a", {"none": ["(b"]}]}, {"all": ["a", True]}, {"x" * 100_000: ["a"]},
        None, True, 1, 1.5, [], ["a"], 10**5000, b"a", {1: ["a"]},
    ],
    ids=lambda where: str(where)[:20] if isinstance(where, str | dict) else type(where).__name__,
)  # fmt: skip
def test_what_is_invalid(where: Any) -> None:
    with pytest.raises(InvalidEvent) as raised:
        parse(where)
    message = str(raised.value)
    assert message.startswith("where")
    assert "got" in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("a OR OR b", "where: OR lacks a word before it, at character 6, got 'a OR OR b'"),
        ("a AND", "where: AND lacks a word after it, at the end, got 'a AND'"),
        ("  ", "where: a word is needed, at the end, got '  '"),
        ({"all": ["a", {"any": ["b )"]}]}, "where.all[1].any[0]: ) closes no parenthesis, at"),
        ({"all": ["a", 7]}, "where.all[1] must be a string or a tree, got a number"),
    ],
)
def test_what_the_error_says(where: Any, message: str) -> None:
    with pytest.raises(InvalidEvent, match=re.escape(message)):
        parse(where)


def nest(kind: str, levels: int, inner: Any) -> Any:
    for _ in range(levels):
        inner = {kind: [inner]}
    return inner


@pytest.mark.parametrize(
    ("deepest", "too_deep"),
    [
        ("NOT " * 7 + "a", "NOT " * 8 + "a"),
        ("NOT " * 6 + "a-b", "NOT " * 7 + "a-b"),
        ("NOT (" * 6 + "a OR b" + ")" * 6, "NOT (" * 7 + "a OR b" + ")" * 7),
        ("(a AND " * 7 + "a" + ")" * 7, "(a AND " * 8 + "a" + ")" * 8),
        ("a (b OR " * 3 + "c d" + ")" * 3, "a (b OR " * 3 + "c d OR e" + ")" * 3 + " OR f"),
        (nest("all", 7, "a"), nest("all", 8, "a")),
        (nest("none", 6, "a b"), nest("none", 7, "a b")),
        (nest("any", 6, "a-b"), nest("any", 7, "a-b")),
        (nest("any", 5, "NOT (a OR b)"), nest("any", 6, "NOT (a OR b)")),
        ({"any": ["a", nest("all", 6, "b")]}, {"any": ["a", nest("all", 7, "b")]}),
    ],
)
def test_depth_at_the_limit_and_past_it(deepest: Any, too_deep: Any) -> None:
    assert depth(parse(deepest)) == MAX_DEPTH
    with pytest.raises(InvalidEvent, match="8 levels deep"):
        parse(too_deep)


def test_nots_side_by_side_do_not_add_up() -> None:
    assert depth(parse("NOT a " * 100)) == 3
    assert depth(parse("NOT (NOT a) " * 100)) == 4


@pytest.mark.parametrize(
    ("widest", "too_wide"),
    [
        (" ".join(["a"] * 256), " ".join(["a"] * 257)),
        (" OR ".join(["a"] * 256), " OR ".join(["a"] * 257)),
        (" AND ".join(["A"] * 256), " AND ".join(["A"] * 257)),
        ('"' + "a " * 256 + '"', '"' + "a " * 257 + '"'),
        ("a-b " * 128, "a-b " * 128 + "c"),
        ({"all": ["a"] * 256}, {"all": ["a"] * 257}),
        ({"any": ["a b", {"none": ["c"] * 254}]}, {"any": ["a b", {"none": ["c"] * 255}]}),
    ],
)
def test_width_at_the_limit_and_past_it(widest: Any, too_wide: Any) -> None:
    assert width(parse(widest)) == MOST_TERMS
    with pytest.raises(InvalidEvent, match="256 tokens wide"):
        parse(too_wide)


def test_parentheses_at_the_limit_and_past_it() -> None:
    def nested(count: int) -> str:
        return "(" * count + "a" + ")" * count

    assert parse(nested(MAX_PARENTHESES)) == "a"
    assert parse({"all": [nested(MAX_PARENTHESES)] * 2}) == (ALL, ("a", "a"))
    with pytest.raises(InvalidEvent, match="nest at most 64"):
        parse(nested(MAX_PARENTHESES + 1))


def test_deeply_nested_json_ends_early() -> None:
    with pytest.raises(InvalidEvent, match="8 levels deep"):
        parse(nest("all", 50_000, "a"))
    endless: dict[str, list[Any]] = {"any": []}
    endless["any"].append(endless)
    with pytest.raises(InvalidEvent, match="8 levels deep"):
        parse(endless)


def test_words_end_at_any_white_space_and_at_nothing_else() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        if character.isspace():
            assert parse(f"a{character}OR{character}b") == (ANY, ("a", "b"))
    for character in ("\u200b", "\ufeff", "\u2060", ",", "'", "\u201c"):
        assert parse(f"a{character}OR{character}b") == (ALL, ("a", "or", "b"))


def test_pairs_of_256_tokens_compile_to_256_literals() -> None:
    where = " AND ".join(f"(a{number} OR b{number})" for number in range(128))
    program = compile_expression(parse(where))
    assert (len(program.terms), len(program.cover)) == (256, 2)


def test_another_analyzer_is_asked_for_plain_words_too() -> None:
    def stem(text: str) -> list[str]:
        return [word.rstrip("s") for word in text.split() if word != "the"]

    assert parse_where("cats OR dogs", stem) == (ANY, ("cat", "dog"))
    assert parse("cats OR dogs") == (ANY, ("cats", "dogs"))
    with pytest.raises(InvalidEvent, match="'the' has no token"):
        parse_where("the cats", stem)


WORDS = ["a", "b", "c", "d"]
TERM_SETS = [set(terms) for count in range(5) for terms in combinations(WORDS, count)]


def branches(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    kinds = st.sampled_from([ALL, ANY, NONE])
    return st.tuples(kinds, st.lists(children, min_size=1, max_size=3).map(tuple))


nodes = st.recursive(st.sampled_from(WORDS), branches, max_leaves=10).filter(
    lambda node: depth(node) <= 4
)


def render(node: Node, joint: str = " AND ") -> str:
    """Write an expression as a string with the parentheses it needs and no others."""
    if isinstance(node, str):
        return node
    kind, children = node
    if kind == ALL:
        return joint.join(
            f"({render(child, joint)})" if child[0] == ANY else render(child, joint)
            for child in children
        )
    some = " OR ".join(render(child, joint) for child in children)
    return some if kind == ANY else f"NOT ({some})"


def render_tree(node: Node) -> Any:
    return node if isinstance(node, str) else {node[0]: [render_tree(child) for child in node[1]]}


@given(nodes, st.sampled_from([" AND ", " "]))
def test_a_rendered_expression_means_the_same(node: Node, joint: str) -> None:
    assert parse(render_tree(node)) == node
    read = parse(render(node, joint))
    for terms in TERM_SETS:
        assert node_holds(read, terms) == node_holds(node, terms)


PIECES = ["a", "B", "c-d", "AND", "OR", "NOT", "(", ")", '"', '"a b"', " ", "\u3000", "!", "é", "ﬁ"]


@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.text(max_size=40))
def test_any_string_is_read_or_invalid(text: str) -> None:
    try:
        node = parse(text)
    except InvalidEvent:
        return
    assert depth(node) <= MAX_DEPTH
    assert width(node) <= MOST_TERMS
    # The quick way for plain words and the whole parser agree: parentheses force the latter.
    assert parse(f"({text})") == node


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["a", "b OR c", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([ALL, ANY, NONE, "x"]), inner, max_size=2)
        | st.fixed_dictionaries({ALL: st.lists(inner, max_size=3)})
    ),
)


@given(json_values)
def test_any_json_is_read_or_invalid(value: Any) -> None:
    try:
        node = parse(value)
    except InvalidEvent:
        return
    assert depth(node) <= MAX_DEPTH
