"""Percolator documents in the files that people have of them.

Dumps with a hit a line, responses of `_search`, bulk files with an action before each document,
and documents by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from placewire.imports.reading import Broken, Moved, read_values
from placewire.imports.reasons import shown

ACTIONS = ("index", "create", "delete", "update")
OF_ACTIONS = frozenset(
    ["routing", "version", "version_type", "pipeline", "require_alias", "retry_on_conflict",
     "if_seq_no", "if_primary_term", "dynamic_templates", "parent", "op_type"]
)  # fmt: skip
NO_QUERY = "no query in it"


class Document(NamedTuple):
    """A document with a query, or the end of one: `source` is None then."""

    line: int
    id: str | None
    index_name: str
    source: dict[str, Any] | None
    is_new: bool = False  # that there may be no other with its id


class DocumentSource:
    """Reads a file into documents; `query_field` is where a document has its query."""

    def __init__(self, path: Path, query_field: str) -> None:
        self.path = path
        self.query_field = query_field

    def documents(self, moved: Moved) -> Iterator[Document | Broken]:
        """Every document, and whatever is none; raises Unusable."""
        action: Document | None = None
        name = ""
        for line, value in read_values(self.path, moved):
            if action is not None:
                if isinstance(value, Broken):
                    yield value
                elif not isinstance(value, dict) or name == "update":
                    yield Broken(line, f"{name} of a bulk file: only whole documents are followed")
                else:
                    yield action._replace(line=line, source=value)
                action = None
                continue
            if isinstance(value, Broken):
                yield value
                continue
            if isinstance(value, dict) and is_action(value):
                ((name, about),) = value.items()
                found = Document(line, id_of(about), index_of(about), None, name == "create")
                if name == "delete":
                    yield found
                else:
                    action = found
                continue
            yield from self.spread(line, value)
        if action is not None:
            yield Broken(action.line, f"{name} of a bulk file: the document after it is missing")

    def spread(self, line: int, value: Any) -> Iterator[Document | Broken]:
        """The documents in a value: a response, a list, a hit or a document by itself."""
        if isinstance(value, list):
            for each in value:
                yield from self.spread_one(line, each)
        elif isinstance(value, dict) and isinstance(value.get("hits"), dict):
            hits = value["hits"].get("hits")
            if not isinstance(hits, list):
                yield Broken(line, f"hits.hits must be a list, got {shown(hits)}")
                return
            for each in hits:
                yield from self.spread_one(line, each)
        else:
            yield from self.spread_one(line, value)

    def spread_one(self, line: int, value: Any) -> Iterator[Document | Broken]:
        if not isinstance(value, dict):
            yield Broken(line, f"a document must be an object, got {shown(value)}")
        elif isinstance(value.get("_source"), dict):
            yield Document(line, id_of(value), index_of(value), value["_source"])
        elif has_path(value, self.query_field):
            name = id_of(value)
            if name is None and isinstance(value.get("id"), str | int):
                name = str(value["id"])
            source = {key: each for key, each in value.items() if key not in ("_id", "id")}
            yield Document(line, name, index_of(value), source)
        else:
            yield Broken(line, f"{NO_QUERY}, got {shown(value)}")

    def query_of(self, source: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The query of a document, or None, and the rest of it."""
        *parents, last = path_of(source, self.query_field)
        inner: Any = source
        for name in parents:
            inner = inner.get(name) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or last not in inner:
            return None, source
        top = parents[0] if parents else last
        return inner[last], {name: value for name, value in source.items() if name != top}


def is_action(value: dict[str, Any]) -> bool:
    """Whether a line of a bulk file says what is to happen to the next one."""
    if len(value) != 1:
        return False
    ((name, about),) = value.items()
    return (
        name in ACTIONS
        and isinstance(about, dict)
        and all(key.startswith("_") or key in OF_ACTIONS for key in about)
    )


def id_of(value: dict[str, Any]) -> str | None:
    found = value.get("_id")
    return str(found) if isinstance(found, str | int) else None


def index_of(value: dict[str, Any]) -> str:
    return str(value.get("_index", ""))


def path_of(source: dict[str, Any], name: str) -> list[str]:
    """A field's name with dots is a path, unless there is a key with dots."""
    return [name] if name in source else name.split(".")


def has_path(source: dict[str, Any], name: str) -> bool:
    inner: Any = source
    for part in path_of(source, name):
        if not isinstance(inner, dict) or part not in inner:
            return False
        inner = inner[part]
    return True
