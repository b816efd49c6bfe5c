"""Queries of other systems as subscriptions: percolator queries, and Tile38's fences.

A query is translated exactly, or with a note of what differs, or it is refused and the place of the
offending clause is told; nothing is translated by half. `documents` and `commands` read the files
that people have, over `reading`. `clauses`, `joining`, `textclauses` and `placeclauses` read
queries, `fences` reads fences, each into a `meaning`: alternatives of an `areas` area and an
expression. `subscriptions` makes events of it, `importing` runs the whole, `ledger` keeps account.

    from placewire.imports import ImportOptions, import_queries
"""

from placewire.imports.importing import (
    DIFFERENCES,
    ImportOptions,
    import_fences,
    import_queries,
)
from placewire.imports.ledger import Ledger, Outcome

__all__ = [
    "DIFFERENCES",
    "ImportOptions",
    "Ledger",
    "Outcome",
    "import_fences",
    "import_queries",
]
