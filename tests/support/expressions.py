"""Strategies for expressions."""

from __future__ import annotations

from hypothesis import strategies as st

from placewire.model.expression import (
    ALL,
    ANY,
    NONE,
    Node,
)

WORDS = "abcdef"


def branches(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    kinds = st.sampled_from([ALL, ANY, NONE])
    return st.tuples(kinds, st.lists(children, min_size=1, max_size=4).map(tuple))


nodes: st.SearchStrategy[Node] = st.recursive(st.sampled_from(WORDS), branches, max_leaves=16)
