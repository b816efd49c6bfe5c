"""Translate queries of other systems into subscriptions: percolator queries and Tile38 fences.

A query is translated exactly, translated with a note of what differs, or refused with the location
of the offending clause; it is never translated in part. `elasticsearch_documents` reads documents
and `elasticsearch` their queries; `tile38` reads fences; `json_files` reads files for both. They
produce `alternatives`: pairs of an area (`areas`, read by `shapes`) and an expression (`words`).
`translate` runs an import and writes the events, `report` collects what became of each query.

    from placewire.importers import ImportOptions, import_queries
"""

from placewire.importers.report import ImportOutcome, ImportReport
from placewire.importers.translate import DIFFERENCES, ImportOptions, import_fences, import_queries

__all__ = [
    "DIFFERENCES",
    "ImportOptions",
    "ImportOutcome",
    "ImportReport",
    "import_fences",
    "import_queries",
]
