"""The former name of `placewire.importers`."""

from placewire.importers import ImportOptions, import_fences, import_queries

__all__ = ["ImportOptions", "import_fences", "import_queries"]
