"""Prunings of the search for `relevant` rows, each to be switched off, and what it counts.

docs/decisions/0010 says what they are and what each is worth.
"""

from __future__ import annotations

# Prunings, each a bit.
CELL_PRUNING = 1  # Lemma 6
GROUP_PRUNING = 2  # Theorem 3
EARLY_TERMINATION = 4  # Theorem 4
OUTER_BOUND = 8  # the object's distance from a cell
INNER_BOUND = 16  # the row's place in the cell
PREFIX = 32  # Lemma 3
MAX_WEIGHT = 64  # Theorem 1
UNSEEN_BOUND = 128  # Theorem 2
HINTS = 256  # terms that the object surely lacks
ALL_PRUNINGS = 511
COUNT_POSTINGS = 512  # say which pruning skips a posting; slow

# Counters: cells and groups met and skipped; the postings in them, those that a search of a group
# ended before, and those looked at; of these, those that each bound skipped (the first three only
# with COUNT_POSTINGS); and candidates whose threshold has risen since, and that were scored.
COUNTER_NAMES = (
    *("cells", "cells_skipped", "groups", "groups_skipped"),
    *("in_cells", "in_groups", "cut", "looked"),
    *("by_prefix", "by_inner", "by_unseen", "by_hints"),
    *("raised", "verified"),
)
CELLS, CELLS_SKIPPED, GROUPS, GROUPS_SKIPPED = 0, 1, 2, 3
IN_CELLS, IN_GROUPS, CUT, LOOKED = 4, 5, 6, 7
BY_PREFIX, BY_INNER, BY_UNSEEN, BY_HINTS = 8, 9, 10, 11
RAISED, VERIFIED = 12, 13
