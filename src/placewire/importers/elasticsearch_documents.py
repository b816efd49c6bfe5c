"""Read percolator documents from dumps, and find which of their fields hold text and place.

Accepted are files with one hit per line, responses of `_search`, bulk files with an action before
each document, and plain documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from placewire.importers.elasticsearch import (
    IGNORED_PLACE_PARAMETERS,
    MOST_CLAUSE_DEPTH,
    PLACE_CLAUSES,
    QueryFields,
)
from placewire.importers.json_files import ReadProgress, Unreadable, read_values
from placewire.importers.report import shown
from placewire.model.errors import Unusable

ACTIONS = ("index", "create", "delete", "update")
ACTION_PARAMETERS = frozenset(
    ["routing", "version", "version_type", "pipeline", "require_alias", "retry_on_conflict",
     "if_seq_no", "if_primary_term", "dynamic_templates", "parent", "op_type"]
)  # fmt: skip
NO_QUERY = "no query in it"
ANALYSED = ("match", "match_phrase", "match_phrase_prefix", "match_bool_prefix")
NOT_ANALYSED = ("term", "terms")
PARAMETERS = frozenset(
    ["boost", "_name", "type", "distance", "unit", "distance_type", *IGNORED_PLACE_PARAMETERS]
)


class Document(NamedTuple):
    """A document with a query, or its deletion, which has no `source`."""

    line: int
    id: str | None
    index_name: str
    source: dict[str, Any] | None
    is_new: bool = False  # no other document may have its id


class DocumentSource:
    """Reads documents from a file; `query_field` names the field that holds the query."""

    def __init__(self, path: Path, query_field: str) -> None:
        self.path = path
        self.query_field = query_field

    def documents(self, progress: ReadProgress) -> Iterator[Document | Unreadable]:
        """Yield every document, and unreadable parts of the file; raises Unusable."""
        action: Document | None = None
        name = ""
        for line, value in read_values(self.path, progress):
            if action is not None:
                if isinstance(value, Unreadable):
                    yield value
                elif not isinstance(value, dict) or name == "update":
                    yield Unreadable(
                        line, f"{name} of a bulk file: only whole documents are followed"
                    )
                else:
                    yield action._replace(line=line, source=value)
                action = None
                continue
            if isinstance(value, Unreadable):
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
            yield from self.read_value(line, value)
        if action is not None:
            yield Unreadable(
                action.line, f"{name} of a bulk file: the document after it is missing"
            )

    def read_value(self, line: int, value: Any) -> Iterator[Document | Unreadable]:
        """Yield the documents in a value: a response, a list, a hit or a plain document."""
        if isinstance(value, list):
            for each in value:
                yield from self.read_document(line, each)
        elif isinstance(value, dict) and isinstance(value.get("hits"), dict):
            hits = value["hits"].get("hits")
            if not isinstance(hits, list):
                yield Unreadable(line, f"hits.hits must be a list, got {shown(hits)}")
                return
            for each in hits:
                yield from self.read_document(line, each)
        else:
            yield from self.read_document(line, value)

    def read_document(self, line: int, value: Any) -> Iterator[Document | Unreadable]:
        if not isinstance(value, dict):
            yield Unreadable(line, f"a document must be an object, got {shown(value)}")
        elif isinstance(value.get("_source"), dict):
            yield Document(line, id_of(value), index_of(value), value["_source"])
        elif has_path(value, self.query_field):
            name = id_of(value)
            if name is None and isinstance(value.get("id"), str | int):
                name = str(value["id"])
            source = {key: each for key, each in value.items() if key not in ("_id", "id")}
            yield Document(line, name, index_of(value), source)
        else:
            yield Unreadable(line, f"{NO_QUERY}, got {shown(value)}")

    def query_of(self, source: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The query of a document, or None, and the other fields."""
        *parents, last = path_of(source, self.query_field)
        inner: Any = source
        for name in parents:
            inner = inner.get(name) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or last not in inner:
            return None, source
        top = parents[0] if parents else last
        return inner[last], {name: value for name, value in source.items() if name != top}


def is_action(value: dict[str, Any]) -> bool:
    """Whether a value is an action of a bulk file, which applies to the next line."""
    if len(value) != 1:
        return False
    ((name, about),) = value.items()
    return (
        name in ACTIONS
        and isinstance(about, dict)
        and all(key.startswith("_") or key in ACTION_PARAMETERS for key in about)
    )


def id_of(value: dict[str, Any]) -> str | None:
    found = value.get("_id")
    return str(found) if isinstance(found, str | int) else None


def index_of(value: dict[str, Any]) -> str:
    return str(value.get("_index", ""))


def path_of(source: dict[str, Any], name: str) -> list[str]:
    """Split a field's name at its dots, unless the name itself is a key."""
    return [name] if name in source else name.split(".")


def has_path(source: dict[str, Any], name: str) -> bool:
    inner: Any = source
    for part in path_of(source, name):
        if not isinstance(inner, dict) or part not in inner:
            return False
        inner = inner[part]
    return True


class FieldSurvey:
    """Counts the fields in queries by the clauses that use them."""

    def __init__(self) -> None:
        self.analysed: Counter[str] = Counter()
        self.terms: Counter[str] = Counter()
        self.places: Counter[str] = Counter()

    def add(self, query: Any) -> None:
        """Count the fields of a query, which need not be valid."""
        for name, body in clauses_of(query):
            if name == "multi_match":
                fields = body.get("fields", [])
                fields = fields if isinstance(fields, list) else [fields]
                self.analysed.update({str(field).partition("^")[0] for field in fields})
                continue
            fields = [field for field in body if field not in PARAMETERS]
            if len(fields) != 1:
                continue
            if name in ANALYSED:
                self.analysed.update(fields)
            elif name in NOT_ANALYSED:
                self.terms.update(fields)
            elif name in PLACE_CLAUSES:
                self.places.update(fields)

    def choose(self, text: Sequence[str], place: Sequence[str]) -> QueryFields:
        """The given fields, or the only candidates; raises Unusable if there are several.

        A field in a match clause holds text. A field that only occurs in term clauses may hold
        anything, so it counts only if no field is matched.
        """
        return QueryFields(
            frozenset(text) or require_one(self.analysed or self.terms, "text", "--text-field"),
            frozenset(place) or require_one(self.places, "place", "--place-field"),
        )


def require_one(fields: Counter[str], what: str, option: str) -> frozenset[str]:
    if len(fields) > 1:
        named = ", ".join(f"{name} ({count:,} times)" for name, count in fields.most_common(5))
        more = f" and {len(fields) - 5} more" if len(fields) > 5 else ""
        raise Unusable(
            f"the {what} may be in several fields: {named}{more}; say which with {option}"
        )
    return frozenset(fields)


def clauses_of(query: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every clause in a query that may have a field, with its name."""
    waiting = [(query, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > 3 * MOST_CLAUSE_DEPTH:
            continue
        if isinstance(part, list):
            waiting += [(each, depth + 1) for each in part]
        elif isinstance(part, dict):
            for name, body in part.items():
                if isinstance(body, dict) and (
                    name in ANALYSED or name in NOT_ANALYSED or name in PLACE_CLAUSES
                    or name == "multi_match"
                ):  # fmt: skip
                    yield name, body
                elif isinstance(body, dict | list):
                    waiting.append((body, depth + 1))
