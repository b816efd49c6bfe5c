"""What an object's terms are to an expression or to keywords: each word there or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from placewire.engine.seen import Seen
from placewire.engine.subscribed import Subscribed
from placewire.engine.worker import NONE_DEAD
from placewire.index.scan import scan_rows
from placewire.model.expression import ALL, ANY, NONE, Node
from placewire.model.outline import Outline, outline_program
from placewire.model.regions import EVERYWHERE
from placewire.model.subscriptions import NEVER_US, SubscriptionRows

Leaf = Callable[[Any], dict[str, Any]]


def fits(rows: SubscriptionRows, seen: Seen, everywhere: bool = False) -> bool:
    """Whether the object suits the one boolean row, by the kernels of matching; time apart."""
    rows = rows._replace(expires_us=np.array([NEVER_US]))
    if everywhere:
        rows = rows._replace(region_kind=np.array([EVERYWHERE], np.uint8))
    columns = seen.columns(0)[1:]
    return bool(scan_rows(*columns, rows, NONE_DEAD)[0].size)


def explain_where(subscribed: Subscribed, seen: Seen) -> dict[str, Any] | None:
    """The expression as a tree of what holds; None if any text suits.

    It is as it was written if it was given, or else as the state keeps it, in its normal form.
    """
    rows = subscribed.rows
    if rows.literal_term.size == 0:
        return None
    holds = fits(rows, seen, everywhere=True)
    if subscribed.node is not None:
        have = set(seen.words.values())
        tree = mark(subscribed.node, lambda word: {"term": word, "holds": word in have})
    else:
        outline = outline_program(rows.literal_true.tolist(), rows.literal_false.tolist())
        assert outline is not None
        tree = mark(outline, lambda literal: mark_literal(subscribed, seen, literal))
    return {"holds": holds, "as_written": subscribed.node is not None, "tree": tree}


def mark_literal(subscribed: Subscribed, seen: Seen, literal: int) -> dict[str, Any]:
    """A term of a row; its word is None if no retained object has it."""
    term = int(subscribed.rows.literal_term[literal])
    marked: dict[str, Any] = {"term": subscribed.words.get(term), "holds": term in seen.words}
    if marked["term"] is None:
        marked["hash"] = f"{term:016x}"
    return marked


def mark(node: Node | Outline, leaf: Leaf) -> dict[str, Any]:
    """A tree with what holds at every node."""
    if not isinstance(node, tuple):
        return leaf(node)
    kind, children = node
    marked = [mark(child, leaf) for child in children]
    held = [child["holds"] for child in marked]
    holds = {ALL: all(held), ANY: any(held), NONE: not any(held)}[kind]
    return {kind: marked, "holds": holds}


def mark_keywords(subscribed: Subscribed, seen: Seen) -> list[dict[str, Any]]:
    """The keywords of a `nearest` or `relevant` row, each there or not."""
    literals = range(subscribed.rows.literal_term.size)
    marked = [mark_literal(subscribed, seen, literal) for literal in literals]
    return sorted(marked, key=lambda one: one["term"] or "\U0010ffff")
