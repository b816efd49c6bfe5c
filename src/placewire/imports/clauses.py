"""Queries of Elasticsearch and OpenSearch: every clause is read into what it means.

`QueryReader.read` takes a query as it stands in a percolator document. Clauses of words are in
`textclauses`, those of places in `placeclauses`, those that join others in `joining`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

from placewire.imports.meaning import Meaning
from placewire.imports.numbers import metres
from placewire.imports.reasons import BOOST, NAMED, Note, Untranslatable, shown
from placewire.imports.shapes import ShapeReader
from placewire.imports.words import WordReader
from placewire.text.query import Tokens

MOST_NESTED = 64
NO_COUNTERPART = "has no counterpart"
OTHER_FIELD = "a field that is neither the text nor the place"


ClauseReader: TypeAlias = "Callable[[QueryReader, dict[str, Any], str], Meaning]"


class Fields(NamedTuple):
    """The fields of a document that hold an object's text and its place."""

    text: frozenset[str]
    place: frozenset[str]


class QueryReader:
    """Reads one query after another; `notes` are those of the last."""

    def __init__(
        self,
        fields: Fields,
        tokens: Tokens,
        readers: Mapping[str, ClauseReader],
        phrases_as_words: bool = False,
    ) -> None:
        self.fields = fields
        self.readers = readers
        self.words = WordReader(tokens)
        self.shapes = ShapeReader(metres, wide=False, tell=self.tell)
        self.phrases_as_words = phrases_as_words
        self.notes: list[Note] = []
        self.depth = 0

    def read(self, query: Any) -> Meaning:
        """What a query means; raises Untranslatable."""
        self.notes = []
        self.depth = 0
        return self.clause(query, "query")

    def tell(self, what: str, where: str) -> None:
        """Add a note, once."""
        if all(note.what != what for note in self.notes):
            self.notes.append(Note(what, where))

    def clause(self, query: Any, where: str) -> Meaning:
        """One clause: an object with its name as the only key."""
        if not isinstance(query, dict) or len(query) != 1:
            raise Untranslatable("a clause must be an object with one key", where, shown(query))
        ((name, body),) = query.items()
        at = f"{where}.{name}"
        read = self.readers.get(name)
        if read is None:
            raise Untranslatable(f"{name[:60]} {NO_COUNTERPART}", at)
        if not isinstance(body, dict):
            raise Untranslatable(f"{name} must be an object", at, shown(body))
        if self.depth == MOST_NESTED:
            raise Untranslatable(f"clauses are nested more than {MOST_NESTED} deep", at)
        self.depth += 1
        try:
            return read(self, body, at)
        except Untranslatable as error:
            error.where = error.where or at
            raise
        finally:
            self.depth -= 1

    def clauses(self, body: dict[str, Any], name: str, where: str) -> list[Meaning]:
        """A clause or a list of them."""
        given = body.get(name, [])
        if isinstance(given, dict):
            return [self.clause(given, f"{where}.{name}")]
        if not isinstance(given, list):
            raise Untranslatable(f"{name} must be a list", f"{where}.{name}", shown(given))
        return [self.clause(each, f"{where}.{name}[{n}]") for n, each in enumerate(given)]

    def check(self, body: dict[str, Any], where: str, known: Collection[str]) -> None:
        """Refuse what is not known; scores and names are only told of."""
        for name, value in body.items():
            if name in known:
                continue
            if name == "boost":
                if value != 1:
                    self.tell(BOOST, f"{where}.{name}")
            elif name == "_name":
                self.tell(NAMED, f"{where}.{name}")
            else:
                raise Untranslatable("an unknown parameter", f"{where}.{name}")

    def one_field(
        self, body: dict[str, Any], where: str, known: Collection[str]
    ) -> tuple[str, Any, str]:
        """The one key of a body that is a field: its name, its value and where it is."""
        names = [name for name in body if name not in known and name not in ("boost", "_name")]
        if len(names) != 1:
            raise Untranslatable("must name one field", where, shown(body))
        self.check(body, where, {names[0], *known})
        return names[0], body[names[0]], f"{where}.{names[0]}"

    def need_text(self, field: str, where: str) -> None:
        if field not in self.fields.text:
            raise Untranslatable(OTHER_FIELD, where, shown(field))

    def need_place(self, field: str, where: str) -> None:
        if field not in self.fields.place:
            raise Untranslatable(OTHER_FIELD, where, shown(field))
