"""The outline of a compiled expression: its branching program read back as a tree.

Segments keep programs, not what was written. The tree is the expression's normal form, or one that
means the same; its leaves are numbers of literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from placewire.model.expression import ACCEPT, ALL, ANY, NONE, REJECT

# A literal's number, or all / any / none of at least one child.
Outline: TypeAlias = "int | tuple[str, tuple[Outline, ...]]"


def outline_program(on_true: Sequence[int], on_false: Sequence[int]) -> Outline | None:
    """The tree of a program with these jumps; None for one without literals, which any text suits.

    A part of the program is literals one after another that is left by two ways only: where it
    goes on if it holds, and where if not.
    """
    if not on_true:
        return None

    def leave(first: int, last: int) -> set[int]:
        """Where literals first:last lead to outside of themselves."""
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
                    return kind, (*flat(kind, one), *flat(kind, rest))
        raise ValueError("the jumps are not those of an expression")

    return read(0, len(on_true), ACCEPT, REJECT)


def flat(kind: str, node: Outline) -> tuple[Outline, ...]:
    """The children of a node of the same kind, or the node itself."""
    return node[1] if isinstance(node, tuple) and node[0] == kind else (node,)
