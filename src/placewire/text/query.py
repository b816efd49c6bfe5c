"""Parse `where`, a query string or a tree, and `keywords`, a list of words.

Limits are checked while parsing, so that hostile input (thousands of parentheses, NOTs or nested
lists) fails early: strings are parsed without recursion, trees recurse at most MAX_DEPTH times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from placewire.model.errors import InvalidEvent
from placewire.model.events import MOST_KEYWORDS, MOST_TERMS
from placewire.model.expression import ALL, ANY, NONE, Node

MAX_DEPTH = 8
MAX_PARENTHESES = 64
Tokens: TypeAlias = Callable[[str], list[str]]

# Most strings are a few plain words joined by one operator: one match decides, and the number of
# its last group selects the separator. No lower-case word is an operator.
_WORD = r"[a-z0-9_]{1,32}+"
_MORE = f"{{1,{MOST_TERMS - 1}}}+"
_PLAIN = re.compile(rf"{_WORD}(?:( AND {_WORD}){_MORE}|( OR {_WORD}){_MORE}|( {_WORD}){_MORE})?")
_JOINTS = ("", " AND ", " OR ", " ")

# `\s` is exactly what str.isspace accepts. A single quote is unbalanced.
_LEXEME = re.compile(r'[^\s()"]+|[()]|"[^"]*"|"')
_SIGNS = frozenset(["AND", "OR", "NOT", "(", ")"])
_CACHED_LENGTH = 32

_JSON_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
    int: "a number",
    float: "a number",
}


def parse_where(where: object, tokens: Tokens) -> Node:
    """Read a `where`, a query string or a decoded JSON tree, into an expression.

    `tokens` is the analyzer: a hashable, pure function, because the nodes of short words are
    cached. Raises InvalidEvent.
    """
    if isinstance(where, str):
        node = _parse_plain(where, tokens)
        if node is not None:
            return node
        return _Reader(tokens).parse_string(where, "where", MAX_DEPTH)
    return _Reader(tokens).read_tree(where, "where", MAX_DEPTH)


def parse_keywords(words: object, tokens: Tokens) -> list[str]:
    """Read `keywords`, a list of words, into their distinct terms; raises InvalidEvent."""
    if not isinstance(words, list) or not 1 <= len(words) <= MOST_KEYWORDS:
        count = len(words) if isinstance(words, list) else 0
        raise InvalidEvent(f"keywords must be a list of 1 to {MOST_KEYWORDS} words, got {count}")
    terms: dict[str, None] = {}
    for word in words:
        found = tokens(word)
        if not found:
            raise InvalidEvent(f"keywords: a keyword must have a word in it, got {_clip(word)}")
        terms.update(dict.fromkeys(found))
    return list(terms)


def _analyse(tokens: Tokens, word: str) -> Node | None:
    """Convert a word to its term, an AND of its terms, or None if it has none."""
    terms = tokens(word)
    if len(terms) == 1:
        return terms[0]
    return (ALL, tuple(terms)) if terms else None


# Words repeat: a hit takes a tenth of the analyzer's time. Only short words are kept (~10 MB).
_analyse_cached = lru_cache(maxsize=32_768)(_analyse)


def _parse_plain(text: str, tokens: Tokens) -> Node | None:
    """Parse plain words joined by one operator; None if the text needs the full parser."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    joint = match.lastindex
    if joint is None:
        node = _analyse_cached(tokens, text)
        return node if isinstance(node, str) else None
    nodes = []
    for word in text.split(_JOINTS[joint]):
        node = _analyse_cached(tokens, word)
        if not isinstance(node, str):
            return None
        nodes.append(node)
    return (ANY if joint == 2 else ALL, tuple(nodes))


class _Reader:
    """The state of reading one `where`: the analyzer and the number of tokens so far."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.width = 0

    def read_tree(self, tree: object, place: str, room: int) -> Node:
        """Read a tree or string that may be `room` deep; `place` is its path, for errors."""
        if isinstance(tree, str):
            return self.parse_string(tree, place, room)
        if not isinstance(tree, dict):
            got = _JSON_NAMES.get(type(tree), type(tree).__name__)
            raise InvalidEvent(f"{place} must be a string or a tree, got {got}")
        if len(tree) != 1:
            raise InvalidEvent(f"{place} must have one key, got {len(tree)}")
        ((kind, children),) = tree.items()
        if kind not in (ALL, ANY, NONE):
            raise InvalidEvent(f"{place}: the key must be all, any or none, got {_clip(str(kind))}")
        if not isinstance(children, list):
            got = _JSON_NAMES.get(type(children), type(children).__name__)
            raise InvalidEvent(f"{place}.{kind} must be a list, got {got}")
        if not children:
            raise InvalidEvent(f"{place}.{kind} must not be empty, got []")
        if room <= 1:
            raise _too_deep(place)
        nodes = [
            self.read_tree(child, f"{place}.{kind}[{position}]", room - 1)
            for position, child in enumerate(children)
        ]
        return kind, tuple(nodes)

    def parse_string(self, text: str, place: str, room: int) -> Node:
        """Parse a query string that may be `room` deep.

        `ors` holds the finished alternatives of the open parenthesis, `ands` the current run of
        ANDs, `nots` the NOTs before the next operand; each also stores the depth below it.
        """
        opened: list[tuple[list[Node], int, list[Node], int, int]] = []
        ors: list[Node] = []
        ands: list[Node] = []
        ors_depth = ands_depth = nots = all_nots = 0
        wanting: str | None = ""  # the sign that lacks an operand; empty at the start
        for number, lexeme in enumerate(_split_lexemes(text)):
            if lexeme not in _SIGNS:
                if lexeme == '"':
                    raise _wrong(place, "a quote is not closed", text, number)
                word = lexeme[1:-1] if lexeme[0] == '"' else lexeme
                analyse = _analyse_cached if len(word) <= _CACHED_LENGTH else _analyse
                found = analyse(self.tokens, word)
                if found is None:
                    raise _wrong(place, f"{_clip(lexeme)} has no token", text, number)
                node, depth = found, 1 if isinstance(found, str) else 2
                self.width += 1 if isinstance(found, str) else len(found[1])
                if self.width > MOST_TERMS:
                    raise InvalidEvent(
                        f"where must be at most {MOST_TERMS} tokens wide, got more at {place}"
                    )
            elif lexeme == "NOT":
                nots += 1
                all_nots += 1
                if all_nots >= room:
                    raise _too_deep(place)
                wanting = lexeme
                continue
            elif lexeme == "(":
                if len(opened) == MAX_PARENTHESES:
                    what = f"parentheses must nest at most {MAX_PARENTHESES} deep"
                    raise _wrong(place, what, text, number)
                opened.append((ors, ors_depth, ands, ands_depth, nots))
                ors, ors_depth, ands, ands_depth, nots = [], 0, [], 0, 0
                wanting = lexeme
                continue
            elif lexeme == ")" and not opened:
                raise _wrong(place, ") closes no parenthesis", text, number)
            elif wanting is not None:
                raise _wrong(place, f"{lexeme} lacks a word before it", text, number)
            elif lexeme == "AND":
                wanting = lexeme
                continue
            else:
                node, depth = _join(ALL, ands, ands_depth)
                ors.append(node)
                ors_depth = max(ors_depth, depth)
                if lexeme == "OR":
                    ands, ands_depth = [], 0
                    wanting = lexeme
                    continue
                node, depth = _join(ANY, ors, ors_depth)
                ors, ors_depth, ands, ands_depth, nots = opened.pop()
            # Here an operand, a word or a parenthesis, is complete.
            if nots:
                for _ in range(nots):
                    node = (NONE, (node,))
                depth += nots
                all_nots -= nots
                nots = 0
            ands.append(node)
            ands_depth = max(ands_depth, depth)
            wanting = None
        if wanting is not None:
            what = f"{wanting} lacks a word after it" if wanting else "a word is needed"
            raise _wrong(place, what, text)
        if opened:
            raise _wrong(place, "a parenthesis is not closed", text)
        node, depth = _join(ALL, ands, ands_depth)
        if ors:
            ors.append(node)
            node, depth = (ANY, tuple(ors)), max(ors_depth, depth) + 1
        if depth > room:
            raise _too_deep(place)
        return node


def _split_lexemes(text: str) -> Iterable[str]:
    """Split a string into words, quoted words and parentheses."""
    if len(text) <= 4096:
        return _LEXEME.findall(text)  # half the time of finding them one by one
    # A long text is most likely hostile: read no more of it than the limits allow.
    return (match.group() for match in _LEXEME.finditer(text))


def _join(kind: str, nodes: list[Node], depth: int) -> tuple[Node, int]:
    """Make one node of a run; a single node is returned unchanged."""
    return (nodes[0], depth) if len(nodes) == 1 else ((kind, tuple(nodes)), depth + 1)


def _clip(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}..."


def _wrong(place: str, what: str, text: str, number: int | None = None) -> InvalidEvent:
    """Return an error at a lexeme of a string, or at its end."""
    if number is None:
        where = "at the end"
    else:
        match = next(islice(_LEXEME.finditer(text), number, None))
        where = f"at character {match.start() + 1}"
    return InvalidEvent(f"{place}: {what}, {where}, got {_clip(text)}")


def _too_deep(place: str) -> InvalidEvent:
    return InvalidEvent(f"where must be at most {MAX_DEPTH} levels deep, got more at {place}")
